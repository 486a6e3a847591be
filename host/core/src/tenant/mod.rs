//! Tenants: their limits and overlays, their API keys, and each one's share of what all use.
//!
//! A tenant is a customer of the embedder, whose calls must not disturb those of others. The
//! embedder defines a [`Tenant`] for an executor: limits and an overlay (rules that can only narrow
//! rights), both applied to every call that names the tenant. `state` has one object for each
//! tenant, and `share` divides a bounded resource by a rule. The other modules divide
//! resources of the host between tenants: loads of components, open files, bytes in memory,
//! connections. A call without a tenant is the embedder's own.

pub(crate) mod api_keys;
pub(crate) mod compile_quota;
pub(crate) mod descriptors;
pub(crate) mod limit_reached;
pub(crate) mod share;
pub(crate) mod shared_bytes;
pub(crate) mod slots;
pub(crate) mod state;

use std::sync::Arc;

use toolcell_contract::grants::Overlay;
use toolcell_contract::limits::Limits;

pub use api_keys::{ApiKey, ApiKeys, InvalidDigest, KeyDigest, KnownKey};
// The server divides its own resources by the same rules.
#[doc(hidden)]
pub use share::{Reservation, Share, ShareFull, ShareRule};
#[doc(hidden)]
pub use state::{PerTenant, TenantPart, TenantState};

/// The limits and rights of one tenant. They only narrow what its calls could do without them.
///
/// Once an executor defines a tenant ([`Executor::with_tenant`](crate::Executor::with_tenant)), it
/// refuses calls without a tenant ([`Refusal::NoTenant`](crate::Refusal::NoTenant)) and calls for
/// tenants that it does not define ([`Refusal::UnknownTenant`](crate::Refusal::UnknownTenant)).
/// [`Executor::with_anonymous`](crate::Executor::with_anonymous) allows calls without a tenant.
///
/// # Defaults
/// Nothing is narrowed.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Tightens the limits of the tenant's calls.
    pub limits: Limits,
    /// Narrows the rights of the tenant's calls.
    pub overlay: Option<Arc<Overlay>>,
}

impl Default for Tenant {
    fn default() -> Self {
        Self { limits: Limits::unlimited(), overlay: None }
    }
}
