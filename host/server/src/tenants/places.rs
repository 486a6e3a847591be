//! Counts and limits the sessions, streams or questions that each tenant has open.
//!
//! The MCP code has one [`Places`] for each of the three. [`Places::enter`] takes a principal (the
//! authenticated sender: a key or user of a tenant) and returns a [`Place`], which counts until it
//! is dropped, or `None` if the tenant has as many as it may. Principals without a tenant count
//! together as one. The limit of one tenant does not depend on the others; for a total that tenants
//! share, see `tenants/share.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::principal::Principal;

type Counts = Arc<Mutex<HashMap<Option<String>, usize>>>;

/// Slots counted by tenant.
pub(crate) struct Places {
    counts: Counts,
    most: usize,
}

/// A slot of a tenant, freed on drop.
pub(crate) struct Place {
    counts: Counts,
    tenant: Option<String>,
}

impl Places {
    /// Allows at most this many slots for each tenant.
    pub(crate) fn new(most: usize) -> Self {
        Self { counts: Arc::default(), most }
    }

    /// Takes one more slot for the principal's tenant. `None`: the tenant is at its limit.
    pub(crate) fn enter(&self, principal: &Principal) -> Option<Place> {
        let tenant = principal.tenant().map(str::to_owned);
        let mut counts = self.counts.lock();
        let count = counts.get(&tenant).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        counts.insert(tenant.clone(), count + 1);
        Some(Place { tenant, counts: Arc::clone(&self.counts) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}
