//! What an embedder defines for a tenant: limits and an overlay of grants.

use std::sync::Arc;

use crate::grants::Overlay;
use crate::limits::Limits;

/// What narrows every call of one tenant.
///
/// # Defaults
/// Nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tenant {
    /// Tightens the limits.
    pub limits: Limits,
    /// Tightens the rights.
    pub overlay: Option<Arc<Overlay>>,
}

impl Default for Tenant {
    fn default() -> Self {
        Self { limits: Limits::unlimited(), overlay: None }
    }
}

impl Tenant {
    /// With these limits in addition to the executor's: the tighter ones apply.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With this overlay: a tool keeps only the rights that it leaves.
    #[must_use]
    pub fn with_overlay(mut self, overlay: impl Into<Arc<Overlay>>) -> Self {
        self.overlay = Some(overlay.into());
        self
    }
}
