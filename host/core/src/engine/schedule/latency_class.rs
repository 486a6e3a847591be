//! Predicts whether a tenant's next call to a component is short, from how its recent calls ended.
//!
//! `guest` notes for each call if its first slice was interrupted by a tick (about a millisecond);
//! a slice that ended in a wait for the host does not count. [`LatencyClass::is_short`] then says
//! if the next call should begin in the fast lane. The reason: loops that begin together would fill
//! the fast lane with first slices. After seven interrupted calls in a row, calls of the class
//! begin in the slow lane, until enough of them are short again.
//! A class belongs to one tenant and one component, so calls of one tenant slow no other tenant's
//! calls. It also names the [`Flow`], by which the lanes serve tenants in turn. A wrong prediction
//! costs time, never an answer. Idle tenants are forgotten.
//! Source: docs/threat-model.md, rows 1 and 56.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use toolcell_contract::controls::bound;

use super::fair_queue::FlowState;

/// The share that means that all calls were interrupted.
const FULL_SHARE: u32 = 1 << 16;
/// The share from which on calls begin in the slow lane. It is less than half, so that a short call
/// before each loop does not hide the loops.
const SLOW_SHARE: u32 = FULL_SHARE / 3;
/// The weight of one call is one in this many: a tenant whose calls begin to loop moves to the slow
/// lane after seven of them.
const WEIGHT: u32 = 16;
/// Tenants of a component, and half of those of an engine, above which tenants without a running
/// call are forgotten.
const TENANTS: usize = 1024;

/// A flow, the unit of fair queueing: a tenant, or a component's calls without a tenant.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) fast_lane: Arc<FlowState>,
    pub(super) slow_lane: Arc<FlowState>,
}

/// The flows of an engine's tenants, as long as they are in use.
#[derive(Debug, Default)]
pub(in crate::engine) struct Parties(Mutex<HashMap<Arc<str>, Weak<Flow>>>);

/// The latency class of one tenant's calls to one component.
#[derive(Debug, Default)]
pub(in crate::engine) struct LatencyClass {
    /// The share of them that was interrupted, of [`FULL_SHARE`].
    stopped: AtomicU32,
    pub(super) flow: Arc<Flow>,
}

/// The latency classes of the calls to one component.
#[derive(Debug, Default)]
pub(in crate::engine) struct Habits {
    without_tenant: Arc<LatencyClass>,
    tenants: Mutex<HashMap<Arc<str>, Arc<LatencyClass>>>,
}

impl Parties {
    fn of(&self, tenant: &Arc<str>) -> Arc<Flow> {
        let mut parties = self.0.lock();
        if let Some(known) = parties.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        if parties.len() >= 2 * TENANTS {
            parties.retain(|_, party| party.strong_count() > 0);
        }
        let party = Arc::default();
        parties.insert(Arc::clone(tenant), Arc::downgrade(&party));
        party
    }
}

impl LatencyClass {
    /// Counts a call whose first slice was interrupted, or ended the call. Not for calls that ended
    /// the slice in a wait for the host.
    pub(super) fn note(&self, was_stopped: bool) {
        let share = self.stopped.load(Relaxed);
        // One of two concurrent updates may be lost, which a prediction tolerates.
        if was_stopped {
            self.stopped.store(share + (FULL_SHARE - share) / WEIGHT, Relaxed);
        } else if share > 0 {
            self.stopped.store(share - share.div_ceil(WEIGHT), Relaxed);
        }
    }

    /// Returns true if most calls end before they are interrupted.
    pub(in crate::engine) fn is_short(&self) -> bool {
        self.stopped.load(Relaxed) < bound!(Habits, SLOW_SHARE)
    }
}

impl Habits {
    /// Returns the latency class of this tenant's calls.
    pub(in crate::engine) fn of(
        &self,
        tenant: Option<&str>,
        parties: &Parties,
    ) -> Arc<LatencyClass> {
        let Some(tenant) = tenant else { return Arc::clone(&self.without_tenant) };
        let mut tenants = self.tenants.lock();
        if let Some(known) = tenants.get(tenant) {
            return Arc::clone(known);
        }
        if tenants.len() >= TENANTS {
            tenants.retain(|_, habit| Arc::strong_count(habit) > 1);
        }
        let tenant = Arc::from(tenant);
        let habit = Arc::new(LatencyClass { flow: parties.of(&tenant), ..LatencyClass::default() });
        tenants.insert(tenant, Arc::clone(&habit));
        habit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases: calls in order (`s`: interrupted), and true if the next one begins in the fast lane.
    /// Fails without: latency classes.
    #[test]
    fn mostly_interrupted_calls_leave_the_fast_lane() {
        for (calls, is_quick) in [
            (String::new(), true),
            ("s".repeat(6), true),
            ("s".repeat(7), false),
            ("se".repeat(100), false),
            ("esee".repeat(1000), true),
            // Short calls bring a tenant back to the fast lane.
            ("s".repeat(1_000_000) + &"e".repeat(15), false),
            ("s".repeat(1_000_000) + &"e".repeat(19), true),
        ] {
            let habit = LatencyClass::default();
            calls.chars().for_each(|call| habit.note(call == 's'));
            assert_eq!(habit.is_short(), is_quick, "{calls:.20} ({})", calls.len());
        }
    }

    #[test]
    fn class_is_per_component_and_tenant_flow_per_tenant() {
        let (parties, [one, other]) = (Parties::default(), [Habits::default(), Habits::default()]);
        (0..100).for_each(|_| one.of(Some("a"), &parties).note(true));
        for (habits, tenant, is_quick) in [
            (&one, Some("a"), false),
            (&one, Some("b"), true),
            (&one, None, true),
            (&other, Some("a"), true),
        ] {
            assert_eq!(habits.of(tenant, &parties).is_short(), is_quick, "{tenant:?}");
        }
        let is_one = |a: Option<&str>, b: Option<&str>| {
            Arc::ptr_eq(&one.of(a, &parties).flow, &other.of(b, &parties).flow)
        };
        assert!(is_one(Some("a"), Some("a")) && !is_one(Some("a"), Some("b")));
        assert!(!is_one(None, None), "without a tenant, a component is its own");
    }

    #[test]
    fn idle_tenants_are_forgotten() {
        let (parties, habits) = (Parties::default(), Habits::default());
        let kept = habits.of(Some("running"), &parties);
        for number in 0..10 * TENANTS {
            habits.of(Some(&number.to_string()), &parties).note(true);
        }
        assert!(habits.tenants.lock().len() <= TENANTS && parties.0.lock().len() <= 2 * TENANTS);
        assert!(Arc::ptr_eq(&kept, &habits.of(Some("running"), &parties)));
    }
}
