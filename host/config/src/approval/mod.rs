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
