//! Approval: the lock, signatures, trust in found configurations, earlier versions.
//!
//! A component is used only in a form that a person approved, since it is code of others. Three
//! questions are answered here. Is the component unchanged? The lock, which is the lock file
//! `toolcell.lock`, has the approved digests and definitions. Did its publisher sign it? Signatures
//! are those of `ssh-keygen`. May this configuration be used, which was found in a folder and not
//! named? The user's own record tells. Approved versions are kept, so that they can be served and
//! restored after a change. Components in development need no approval.

pub(crate) mod dev;
pub(crate) mod difference;
pub(crate) mod lock;
pub(crate) mod signature;
pub(crate) mod signed;
pub(crate) mod trust;
pub(crate) mod versions;

pub use crate::error::Unapproved;
pub use dev::Development;
pub use difference::{ApprovalState, Difference, LoadPermit, Page, RebuiltComponent};
pub use lock::ApprovedVersion;
pub use signature::Signer;
pub use signed::SignatureRequirement;
pub use trust::{Approval, FoundConfiguration};
pub use versions::Rollback;
