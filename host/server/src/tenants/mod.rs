//! Tenants: the sender of a request, quotas, and each tenant's share of what is bounded.
//!
//! A tenant is a customer of the server, whose data and use are kept apart from those of others.
//! `principal` is the authenticated sender that acts for a tenant. `quota` limits a tenant's use in
//! time, `account` charges it and counts [`TenantUsage`]. `share` divides resources of the
//! server between tenants, and `refused` has the reasons why a call is not made. The service and
//! the protocols use all of them.

pub(crate) mod account;
pub(crate) mod principal;
pub(crate) mod quota;
pub(crate) mod refused;
pub(crate) mod share;

pub use account::TenantUsage;
pub use quota::QuotaKind;
