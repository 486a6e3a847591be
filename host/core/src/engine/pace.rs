//! How far the calls of a tenant to a component come before a tick stops them.
//!
//! In: how each slice of a call ended. Out: whether the next call gains anything by beginning in the quick lane.
//! Invariants: the record is a tenant's own: what one has a component do slows nobody else's calls to it; it is a guess of how
//! a call will go, and a wrong one costs time, never an answer.
//! Source: security design, rows 1 and 56.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::defence::{Defence, stands};

/// All of a pace's slices were stopped.
const ALWAYS: u32 = 1 << 16;
/// What one slice weighs among those before it. A component that turns to loops is known for it after a dozen slices.
const WEIGHT: u32 = 16;
/// Tenants of a component before those are forgotten that are as good as new.
const TENANTS: usize = 64;

/// The calls of one tenant to one component.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Which share of its slices was stopped lately, of [`ALWAYS`].
    stopped: AtomicU32,
    /// Its last turn in the quick lane.
    pub(super) turn: AtomicU64,
}

impl Pace {
    /// A tick stopped a slice.
    pub(super) fn stopped(&self) {
        let share = self.stopped.load(Relaxed);
        // Two at once may count as one: it is a guess.
        self.stopped.store(share + (ALWAYS - share) / WEIGHT, Relaxed);
    }

    /// A slice was a call's last.
    pub(super) fn ended(&self) {
        let share = self.stopped.load(Relaxed);
        if share > 0 {
            self.stopped.store(share - share.div_ceil(WEIGHT), Relaxed);
        }
    }

    /// Whether its calls mostly end before a tick.
    pub(super) fn is_quick(&self) -> bool {
        self.stopped.load(Relaxed) < ALWAYS / 2 || !stands(Defence::Paces)
    }
}

/// The calls to one component.
#[derive(Debug, Default)]
pub(super) struct Paces {
    nobodys: Arc<Pace>,
    tenants: Mutex<HashMap<String, Arc<Pace>>>,
}

impl Paces {
    /// Those of this tenant.
    pub(super) fn of(&self, tenant: Option<&str>) -> Arc<Pace> {
        let Some(tenant) = tenant else { return Arc::clone(&self.nobodys) };
        let mut tenants = self.tenants.lock();
        if let Some(known) = tenants.get(tenant) {
            return Arc::clone(known);
        }
        if tenants.len() >= TENANTS {
            tenants.retain(|_, pace| Arc::strong_count(pace) > 1 || pace.stopped.load(Relaxed) > 0);
        }
        Arc::clone(tenants.entry(tenant.to_owned()).or_default())
    }
}
