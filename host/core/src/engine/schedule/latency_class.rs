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

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use parking_lot::Mutex;
use toolcell_contract::controls::bound;

use super::fair_queue::FlowState;
use crate::tenant::state::{PerTenant, TenantPart, TenantState};

/// The share that means that all calls were interrupted.
const FULL_SHARE: u32 = 1 << 16;
/// The share from which on calls begin in the slow lane. It is less than half, so that a short call
/// before each loop does not hide the loops.
const SLOW_SHARE: u32 = FULL_SHARE / 3;
/// The weight of one call is one in this many: a tenant whose calls begin to loop moves to the slow
/// lane after seven of them.
const WEIGHT: u32 = 16;
/// Tenants of a component above which tenants without a running call are forgotten.
const TENANTS: usize = 1024;

/// A flow, the unit of fair queueing: a tenant, or a component's calls without a tenant.
#[derive(Debug, Default)]
pub(in crate::engine) struct Flow {
    pub(super) fast_lane: Arc<FlowState>,
    pub(super) slow_lane: Arc<FlowState>,
}

/// The latency class of one tenant's calls to one component.
#[derive(Debug, Default)]
pub(in crate::engine) struct LatencyClass {
    /// The share of them that was interrupted, of [`FULL_SHARE`].
    stopped: AtomicU32,
    pub(super) flow: Arc<TenantPart<Flow>>,
}

/// The latency classes of the calls to one component.
#[derive(Debug, Default)]
pub(in crate::engine) struct Habits {
    without_tenant: Arc<LatencyClass>,
    tenants: PerTenant<Arc<LatencyClass>>,
    /// The classes that are remembered.
    classes: Mutex<Vec<Arc<TenantPart<Arc<LatencyClass>>>>>,
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
    /// Returns the latency class of this tenant's calls. `flows` are those of the engine's tenants.
    pub(in crate::engine) fn of(
        &self,
        tenant: &Arc<TenantState>,
        flows: &PerTenant<Flow>,
    ) -> Arc<LatencyClass> {
        if tenant.name().is_none() {
            return Arc::clone(&self.without_tenant);
        }
        let mut classes = self.classes.lock();
        if let Some(known) = self.tenants.find(tenant) {
            return Arc::clone(&**known);
        }
        if classes.len() >= TENANTS {
            classes.retain(|class| Arc::strong_count(&***class) > 1);
        }
        let flow = flows.get(tenant, Flow::default);
        let class = || Arc::new(LatencyClass { flow, ..LatencyClass::default() });
        let part = self.tenants.get(tenant, class);
        classes.push(Arc::clone(&part));
        Arc::clone(&**part)
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    fn class(habits: &Habits, tenant: Option<&str>, flows: &PerTenant<Flow>) -> Arc<LatencyClass> {
        habits.of(&TenantState::of(tenant), flows)
    }

    /// Cases: calls in order (`s`: interrupted), and true if the next one begins in the fast lane.
    /// Fails without: latency classes.
    #[test]
    fn mostly_interrupted_calls_leave_the_fast_lane() {
        let table = rows::<(Vec<(&str, usize)>, bool)>("engine/schedule/latency_class", "calls");
        for (parts, is_quick) in table {
            let calls: String = parts.iter().map(|(calls, times)| calls.repeat(*times)).collect();
            let latency_class = LatencyClass::default();
            calls.chars().for_each(|call| latency_class.note(call == 's'));
            assert_eq!(latency_class.is_short(), is_quick, "{calls:.20} ({})", calls.len());
        }
    }

    #[test]
    fn class_is_per_component_and_tenant_flow_per_tenant() {
        let (flows, [one, other]) = (PerTenant::default(), [Habits::default(), Habits::default()]);
        (0..100).for_each(|_| class(&one, Some("a"), &flows).note(true));
        let all = [(&one, Some("a")), (&one, Some("b")), (&one, None), (&other, Some("a"))];
        let are_quick = all.map(|(habits, tenant)| class(habits, tenant, &flows).is_short());
        assert_eq!(are_quick, [false, true, true, true]);
        let is_one = |a: Option<&str>, b: Option<&str>| {
            Arc::ptr_eq(&class(&one, a, &flows).flow, &class(&other, b, &flows).flow)
        };
        assert!(is_one(Some("a"), Some("a")) && !is_one(Some("a"), Some("b")));
        assert!(!is_one(None, None), "without a tenant, a component is its own");
    }

    #[test]
    fn idle_tenants_are_forgotten() {
        let (flows, habits) = (PerTenant::default(), Habits::default());
        let kept = class(&habits, Some("running"), &flows);
        for number in 0..10 * TENANTS {
            class(&habits, Some(&number.to_string()), &flows).note(true);
        }
        assert!(habits.classes.lock().len() <= TENANTS);
        assert!(flows.find(&TenantState::of(Some("0"))).is_none());
        assert!(Arc::ptr_eq(&kept, &class(&habits, Some("running"), &flows)));
    }
}
