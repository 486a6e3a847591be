//! Approval: the lock, signatures, trust in found configurations, earlier versions.

mod approve;
pub(crate) mod dev;
pub(crate) mod difference;
pub(crate) mod lock;
pub(crate) mod rollback;
pub(crate) mod signature;
pub(crate) mod signed;
pub(crate) mod trust;
pub(crate) mod versions;
pub(crate) mod vet;

pub use crate::error::Unapproved;
pub use dev::Development;
pub use difference::{ApprovalState, Difference, Page};
pub use lock::Approved;
pub use rollback::RolledBack;
pub use signature::Signer;
pub use signed::Demand;
pub use trust::{Approval, FoundConfiguration};
pub use vet::{Rebuilt, Vetted};
