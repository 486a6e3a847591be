//! The sender of a request, as authenticated by the server.
//!
//! The authenticator returns a [`Principal`] for the key or token of a request: the tenant, an id
//! of the key or the user, and possibly the time at which the credential expires. The service and
//! all protocols take it to choose tools, quotas and artifacts (stored content). A server without
//! authentication has one principal, which has no tenant.
//!
//! Sessions, sealed questions (encrypted for the client), idempotency keys and cancellation are
//! bound to a principal: another principal, even of the same tenant, cannot use them. A user with a
//! new token is the same principal, because the expiry is not compared.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use toolcell::tenant::TenantState;

/// The sender of a request: a tenant, and the key or the user that acts for it. Cheap to clone.
///
/// Two principals of the same tenant and id are equal, whatever their expiry: a user with a new
/// token is the same principal.
#[derive(Debug, Clone)]
pub struct Principal {
    tenant: Arc<TenantState>,
    id: Arc<str>,
    /// Seconds since 1970. `None`: never.
    expires: Option<u64>,
}

impl Principal {
    /// Creates a principal of this tenant. The id is unique within the server, for example `key:`
    /// and the id of an API key.
    #[must_use]
    pub fn new(tenant: Option<&str>, id: &str) -> Self {
        Self { tenant: TenantState::of(tenant), id: Arc::from(id), expires: None }
    }

    /// Sets the expiry, in seconds since 1970: then the principal's streams and sessions end.
    #[must_use]
    pub fn with_expiry(mut self, expires: u64) -> Self {
        self.expires = Some(expires);
        self
    }

    /// Returns true if the credentials of its request have expired.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        let now =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.expires.is_some_and(|expires| expires < now())
    }

    /// Returns true if this principal expires later than the other.
    pub(crate) fn expires_after(&self, other: &Self) -> bool {
        let expiry = |of: &Self| of.expires.unwrap_or(u64::MAX);
        expiry(self) > expiry(other)
    }

    fn key(&self) -> (Option<&str>, &str) {
        (self.tenant(), self.id())
    }

    /// Returns the only principal of a server without authentication. It has no tenant.
    #[must_use]
    pub fn local() -> Self {
        Self::new(None, "local")
    }

    /// Returns the tenant of the principal.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.name()
    }

    /// Returns the tenant's object. Principals without a tenant have one object together.
    pub(crate) fn state(&self) -> &Arc<TenantState> {
        &self.tenant
    }

    /// Returns the id of the key or the user.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
