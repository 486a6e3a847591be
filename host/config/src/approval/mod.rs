//! Approval: the lock, signatures, trust in found configurations, earlier versions.

pub(crate) mod dev;
pub(crate) mod difference;
pub(crate) mod lock;
pub(crate) mod signature;
pub(crate) mod signed;
pub(crate) mod trust;
pub(crate) mod versions;

pub use crate::error::Unapproved;
pub use dev::Development;
pub use difference::{ApprovalState, Difference, Page, Rebuilt, Vetted};
pub use lock::Approved;
pub use signature::Signer;
pub use signed::Demand;
pub use trust::{Approval, FoundConfiguration};
pub use versions::RolledBack;
