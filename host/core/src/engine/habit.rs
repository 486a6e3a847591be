//! How calls mostly go, and whose they are: where the next one begins, and when it is its turn.
//!
//! In: how the first slice of each call ended that did not end in a wait for the host. Out: whether
//! the next call gains anything by beginning in the quick lane.
//! Invariants: a habit is a tenant's own: what one tenant has a component do slows no other
//! tenant's calls to it. It is a guess of how a call will go: a wrong one costs time, never an
//! answer.
//! Source: docs/threat-model.md, rows 1 and 56.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::fair::Turns;
use crate::defence::{Defence, stands};

/// All calls are stopped.
const ALWAYS: u32 = 1 << 16;
/// From here on they mostly are. It is less than half: an innocent question before each loop makes
/// no short calls of them.
const MOSTLY: u32 = ALWAYS / 3;
/// A call's weight is one of so many: a tenant whose calls begin to loop is known for it after
/// seven of them.
const WEIGHT: u32 = 16;
/// Tenants of a component, or of an engine, before those are forgotten that have no call running.
const TENANTS: usize = 1024;

/// Who takes turns with others: a tenant, or the calls to a component without one.
#[derive(Debug, Default)]
pub(super) struct Party {
    pub(super) quick: Arc<Turns>,
    pub(super) slow: Arc<Turns>,
}

/// The tenants of an engine, as long as anybody remembers them.
#[derive(Debug, Default)]
pub(super) struct Parties(Mutex<HashMap<Arc<str>, Weak<Party>>>);

/// The calls of one tenant to one component.
#[derive(Debug, Default)]
pub(super) struct Habit {
    /// Which share of them was stopped, of [`ALWAYS`].
    stopped: AtomicU32,
    pub(super) party: Arc<Party>,
}

/// The calls to one component.
#[derive(Debug, Default)]
pub(super) struct Habits {
    without_tenant: Arc<Habit>,
    tenants: Mutex<HashMap<Arc<str>, Arc<Habit>>>,
}

impl Parties {
    fn of(&self, tenant: &Arc<str>) -> Arc<Party> {
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

impl Habit {
    /// The first slice of a call was stopped, or the call ended with it. Those that end in a wait
    /// for the host do not say.
    pub(super) fn note(&self, was_stopped: bool) {
        let share = self.stopped.load(Relaxed);
        // Of two at once one may be lost: it is a guess.
        if was_stopped {
            self.stopped.store(share + (ALWAYS - share) / WEIGHT, Relaxed);
        } else if share > 0 {
            self.stopped.store(share - share.div_ceil(WEIGHT), Relaxed);
        }
    }

    /// Whether calls are mostly over before they are stopped.
    pub(super) fn is_quick(&self) -> bool {
        self.stopped.load(Relaxed) < MOSTLY || !stands(Defence::Habits)
    }
}

impl Habits {
    /// The habit of this tenant's calls.
    pub(super) fn of(&self, tenant: Option<&str>, parties: &Parties) -> Arc<Habit> {
        let Some(tenant) = tenant else { return Arc::clone(&self.without_tenant) };
        let mut tenants = self.tenants.lock();
        if let Some(known) = tenants.get(tenant) {
            return Arc::clone(known);
        }
        if tenants.len() >= TENANTS {
            tenants.retain(|_, habit| Arc::strong_count(habit) > 1);
        }
        let tenant = Arc::from(tenant);
        let habit = Arc::new(Habit { party: parties.of(&tenant), ..Habit::default() });
        tenants.insert(tenant, Arc::clone(&habit));
        habit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls in their order, `s` those that were stopped, and whether the next one begins in the
    /// quick lane. Seen to fail with every call as quick as any other.
    #[test]
    fn who_is_mostly_stopped_is_not_quick() {
        for (calls, is_quick) in [
            (String::new(), true),
            ("s".repeat(6), true),
            ("s".repeat(7), false),
            ("se".repeat(100), false),
            ("esee".repeat(1000), true),
            // It is never too late to mend.
            ("s".repeat(1_000_000) + &"e".repeat(15), false),
            ("s".repeat(1_000_000) + &"e".repeat(19), true),
        ] {
            let habit = Habit::default();
            calls.chars().for_each(|call| habit.note(call == 's'));
            assert_eq!(habit.is_quick(), is_quick, "{calls:.20} ({})", calls.len());
        }
    }

    #[test]
    fn a_habit_is_a_tenants_and_a_turn_is_for_all_its_components() {
        let (parties, [one, other]) = (Parties::default(), [Habits::default(), Habits::default()]);
        (0..100).for_each(|_| one.of(Some("a"), &parties).note(true));
        for (habits, tenant, is_quick) in [
            (&one, Some("a"), false),
            (&one, Some("b"), true),
            (&one, None, true),
            (&other, Some("a"), true),
        ] {
            assert_eq!(habits.of(tenant, &parties).is_quick(), is_quick, "{tenant:?}");
        }
        let is_one = |a: Option<&str>, b: Option<&str>| {
            Arc::ptr_eq(&one.of(a, &parties).party, &other.of(b, &parties).party)
        };
        assert!(is_one(Some("a"), Some("a")) && !is_one(Some("a"), Some("b")));
        assert!(!is_one(None, None), "without a tenant, a component is its own");
    }

    #[test]
    fn tenants_without_a_running_call_are_forgotten() {
        let (parties, habits) = (Parties::default(), Habits::default());
        let kept = habits.of(Some("running"), &parties);
        for number in 0..10 * TENANTS {
            habits.of(Some(&number.to_string()), &parties).note(true);
        }
        assert!(habits.tenants.lock().len() <= TENANTS && parties.0.lock().len() <= 2 * TENANTS);
        assert!(Arc::ptr_eq(&kept, &habits.of(Some("running"), &parties)));
    }
}
