//! Tenants: the sender of a request, quotas, and each tenant's share of what is bounded.

pub(crate) mod account;
pub(crate) mod places;
pub(crate) mod principal;
pub(crate) mod quota;
pub(crate) mod refused;
pub(crate) mod share;

pub use account::TenantUsage;
pub use quota::{Quota, QuotaKind};
