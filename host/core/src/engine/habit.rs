//! How calls mostly go, and whose they are: where the next one begins, and when it is its turn.
//!
//! In: how each slice of a call ended. Out: whether the next call gains anything by beginning in the quick lane.
//! Invariants: a habit is a tenant's own: what one has a component do slows nobody else's calls to it. It is a guess of how a
//! call will go: a wrong one costs time, never an answer.
//! Source: security design, rows 1 and 56.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::fair::LastTurn;
use crate::defence::{Defence, stands};

/// All slices are stopped.
const ALWAYS: u32 = 1 << 16;
/// A slice's weight is one of so many: whoever turns to loops is known for it after a dozen.
const WEIGHT: u32 = 16;
/// Tenants of a component before those are forgotten that are as good as new.
const TENANTS: usize = 64;

/// Who takes turns with others: a tenant, or the calls to a component without one.
#[derive(Debug, Default)]
pub(super) struct Party {
    pub(super) quick: LastTurn,
    pub(super) slow: LastTurn,
}

/// The tenants of an engine, as long as anybody remembers them.
#[derive(Debug, Default)]
pub(super) struct Parties(Mutex<HashMap<Arc<str>, Weak<Party>>>);

/// The calls of one tenant to one component.
#[derive(Debug, Default)]
pub(super) struct Habit {
    /// Which share of their slices a tick stopped, of [`ALWAYS`].
    stopped: AtomicU32,
    pub(super) party: Arc<Party>,
}

/// The calls to one component.
#[derive(Debug, Default)]
pub(super) struct Habits {
    nobodys: Arc<Habit>,
    tenants: Mutex<HashMap<Arc<str>, Arc<Habit>>>,
}

impl Parties {
    fn of(&self, tenant: &Arc<str>) -> Arc<Party> {
        let mut parties = self.0.lock();
        if let Some(known) = parties.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        parties.retain(|_, party| party.strong_count() > 0);
        let party = Arc::default();
        parties.insert(Arc::clone(tenant), Arc::downgrade(&party));
        party
    }
}

impl Habit {
    /// A tick stopped a slice.
    pub(super) fn stopped(&self) {
        let share = self.stopped.load(Relaxed);
        // Of two at once one may be lost: it is a guess.
        self.stopped.store(share + (ALWAYS - share) / WEIGHT, Relaxed);
    }

    /// A slice was a call's last.
    pub(super) fn ended(&self) {
        let share = self.stopped.load(Relaxed);
        if share > 0 {
            self.stopped.store(share - share.div_ceil(WEIGHT), Relaxed);
        }
    }

    /// Whether slices mostly end by themselves.
    pub(super) fn is_quick(&self) -> bool {
        self.stopped.load(Relaxed) < ALWAYS / 2 || !stands(Defence::Habits)
    }

    fn is_new(&self) -> bool {
        self.stopped.load(Relaxed) == 0
    }
}

impl Habits {
    /// The habit of this tenant's calls.
    pub(super) fn of(&self, tenant: Option<&str>, parties: &Parties) -> Arc<Habit> {
        let Some(tenant) = tenant else { return Arc::clone(&self.nobodys) };
        let mut tenants = self.tenants.lock();
        if let Some(known) = tenants.get(tenant) {
            return Arc::clone(known);
        }
        if tenants.len() >= TENANTS {
            tenants.retain(|_, habit| Arc::strong_count(habit) > 1 || !habit.is_new());
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

    /// Slices in their order, `s` those that were stopped, and whether the next call begins in the quick lane. Seen to fail
    /// with every call as quick as any other.
    #[test]
    fn who_mostly_outlasts_a_tick_is_not_quick() {
        let times = |slices: &str, times| slices.repeat(times);
        for (slices, is_quick) in [
            (String::new(), true),
            // One long call does not make a habit, many loops do, and so do calls a few ticks long.
            (times("s", 10) + "e", true),
            (times("s", 12), false),
            (times("sse", 30), false),
            // As long as half of the slices end by themselves.
            (times("se", 1000), true),
            (times("esee", 1000), true),
            // It is never too late to mend.
            (times("s", 1_000_000) + &times("e", 10), false),
            (times("s", 1_000_000) + &times("e", 12), true),
        ] {
            let habit = Habit::default();
            for slice in slices.chars() {
                if slice == 's' { habit.stopped() } else { habit.ended() }
            }
            assert_eq!(habit.is_quick(), is_quick, "{:.20} ({})", slices, slices.len());
            (0..1000).for_each(|_| habit.ended());
            assert!(habit.is_new(), "in the end it is forgotten");
        }
    }

    #[test]
    fn a_habit_is_a_tenants_and_a_turn_is_for_all_its_components() {
        let (parties, [one, other]) = (Parties::default(), [Habits::default(), Habits::default()]);
        (0..100).for_each(|_| one.of(Some("a"), &parties).stopped());
        for (habits, tenant, is_quick) in
            [(&one, Some("a"), false), (&one, Some("b"), true), (&one, None, true), (&other, Some("a"), true)]
        {
            assert_eq!(habits.of(tenant, &parties).is_quick(), is_quick, "{tenant:?}");
        }
        let is_one =
            |a: Option<&str>, b: Option<&str>| Arc::ptr_eq(&one.of(a, &parties).party, &other.of(b, &parties).party);
        assert!(is_one(Some("a"), Some("a")) && !is_one(Some("a"), Some("b")));
        assert!(!is_one(None, None), "without a tenant, a component is its own");
    }

    #[test]
    fn tenants_that_are_as_good_as_new_are_forgotten() {
        let (parties, habits) = (Parties::default(), Habits::default());
        habits.of(Some("slow"), &parties).stopped();
        let kept = habits.of(Some("running"), &parties);
        for number in 0..10 * TENANTS {
            habits.of(Some(&number.to_string()), &parties);
        }
        assert!(habits.tenants.lock().len() <= TENANTS && parties.0.lock().len() <= TENANTS);
        assert!(Arc::ptr_eq(&kept, &habits.of(Some("running"), &parties)));
        assert!(!habits.of(Some("slow"), &parties).is_new());
    }
}
