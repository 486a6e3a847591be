//! Tenants: their settings, their API keys, and each one's share of what all use.
//!
//! A tenant is a customer of the embedder, whose calls must not disturb those of others. The
//! embedder defines a [`Tenant`] for an executor: limits, an overlay (rules that can only narrow
//! rights) and a list of tools, all applied to every call that names the tenant, and a quota, which
//! a server enforces. `state` has one object for each tenant, and `share` divides a bounded
//! resource by a rule. The other modules divide resources of the host between tenants: loads of
//! components, cells and threads, open files, bytes in memory, connections. A call without a tenant
//! is the embedder's own.

pub(crate) mod api_keys;
pub(crate) mod compile_quota;
pub(crate) mod descriptors;
pub(crate) mod limit_reached;
pub(crate) mod queue;
pub(crate) mod share;
pub(crate) mod shared_bytes;
pub(crate) mod slots;
pub(crate) mod state;

use std::sync::Arc;

use serde::Serialize;
use toolcell_contract::grants::{InvokeRule, Overlay};
use toolcell_contract::limits::Limits;

pub use api_keys::{ApiKey, ApiKeys, InvalidDigest, KeyDigest, KnownKey};
// The server divides its own resources by the same rules.
#[doc(hidden)]
pub use share::{Reservation, Share, ShareFull, ShareRule};
#[doc(hidden)]
pub use state::{PerTenant, TenantPart, TenantState};

/// The settings of one tenant. They only narrow what its calls could do without them. Its own
/// values of secrets are not among them: the engine asks its
/// [`SecretSource`](crate::secrets::SecretSource) for the value of a tenant, where the cells run,
/// also in worker processes.
///
/// Once an executor defines a tenant ([`Executor::with_tenant`](crate::Executor::with_tenant)), it
/// refuses calls without a tenant ([`Refusal::NoTenant`](crate::Refusal::NoTenant)) and calls for
/// tenants that it does not define ([`Refusal::UnknownTenant`](crate::Refusal::UnknownTenant)).
/// [`Executor::with_anonymous`](crate::Executor::with_anonymous) allows calls without a tenant.
///
/// # Defaults
/// Nothing is narrowed.
///
/// ```
/// use toolcell::{Executor, Limits, Tenant};
///
/// let acme = Tenant {
///     limits: Limits { fuel: 1_000_000, ..Limits::unlimited() },
///     tools: Some(vec!["greet".parse()?, "notes_*".parse()?]),
///     ..Tenant::default()
/// };
/// assert!(acme.offers("notes_add") && !acme.offers("pay"));
/// let executor = Executor::new().with_tenant("acme", acme);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Tightens the limits of the tenant's calls.
    pub limits: Limits,
    /// Narrows the rights of the tenant's calls.
    pub overlay: Option<Arc<Overlay>>,
    /// The tools that the tenant sees and may call: names, and prefixes such as `notes_*`. `None`:
    /// all. An executor refuses calls of others
    /// ([`Refusal::NotVisible`](crate::Refusal::NotVisible)); `own` in a rule has no effect.
    pub tools: Option<Vec<InvokeRule>>,
    /// The limits of the tenant's use. The service of `toolcell-server` enforces them; an executor
    /// alone does not.
    pub quota: Quota,
}

/// The limits of a tenant's use.
///
/// # Defaults
/// No limit, except for that of the artifact store.
///
/// # Shape
/// As JSON: its fields by name.
///
/// # Units
/// Calls and fuel a minute, as token buckets: a tenant that was idle for a minute can use a
/// minute's worth at once. Fuel is charged when a call ends; while a tenant is in debt, its calls
/// are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Quota {
    /// Calls a minute.
    pub calls_per_minute: Option<u64>,
    /// Fuel a minute.
    pub fuel_per_minute: Option<u64>,
    /// Calls at once.
    pub concurrent_calls: Option<u64>,
    /// The most bytes of all artifacts. `None`: as the artifact store says.
    pub artifact_bytes: Option<u64>,
}

impl Tenant {
    /// Returns true if the tenant sees the tool of this name and may call it.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        let covers = |rules: &Vec<InvokeRule>| rules.iter().any(|rule| rule.covers(tool, false));
        self.tools.as_ref().is_none_or(covers)
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Self { limits: Limits::unlimited(), overlay: None, tools: None, quota: Quota::default() }
    }
}
