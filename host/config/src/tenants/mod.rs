//! Tenants: the tools that each is offered, its quota, the issuer of its tokens.

pub(crate) mod issuer;
pub(crate) mod offered;
pub(crate) mod quota;

pub use issuer::IssuerKeys;
pub use offered::OfferedTools;
pub use quota::TenantQuota;
