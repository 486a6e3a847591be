//! Who sends a request, as far as the server knows.
//!
//! Sessions, sealed questions, idempotency keys and cancellation are bound to a principal: another principal, also one of the
//! same tenant, cannot use them.

use std::sync::Arc;

/// The sender of a request: a tenant, and the key or the user that acts for it. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal {
    tenant: Option<Arc<str>>,
    id: Arc<str>,
}

impl Principal {
    /// A principal of this tenant. The id is unique within the server, for example `key:` and the id of an API key.
    #[must_use]
    pub fn new(tenant: Option<&str>, id: &str) -> Self {
        Self { tenant: tenant.map(Arc::from), id: Arc::from(id) }
    }

    /// The only principal of a server without authentication. It has no tenant.
    #[must_use]
    pub fn local() -> Self {
        Self::new(None, "local")
    }

    /// The tenant that the principal belongs to.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// The id of the key or the user.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}
