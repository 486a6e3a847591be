//! A queue in which everybody has a turn after everybody else's.
//!
//! Invariants: whoever puts in many waits for the second until all others that wait have had one; who had none for a while
//! does not get those that it missed.
//! Source: start-time fair queuing (Goyal, Vin and Cheng, 1996), with turns of equal weight.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::defence::{Defence, stands};

/// The queue.
pub(super) struct FairQueue<T> {
    places: BinaryHeap<Place<T>>,
    /// The turn that is being served.
    now: u64,
    /// How many were put in: within a turn it is first come, first served.
    tickets: u64,
}

/// The last turn of somebody's in one queue. Changed in the queue's own lock only.
#[derive(Debug, Default)]
pub(super) struct LastTurn(AtomicU64);

struct Place<T> {
    order: Reverse<(u64, u64)>,
    item: T,
}

impl<T> FairQueue<T> {
    pub(super) fn push(&mut self, last: &LastTurn, item: T) {
        let before = if stands(Defence::Turns) { last.0.load(Relaxed) } else { 0 };
        let turn = (before + 1).max(self.now);
        last.0.store(turn, Relaxed);
        self.tickets += 1;
        self.places.push(Place { order: Reverse((turn, self.tickets)), item });
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let Place { order: Reverse((turn, _)), item } = self.places.pop()?;
        self.now = turn;
        Some(item)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { places: BinaryHeap::new(), now: 0, tickets: 0 }
    }
}

impl<T> PartialEq for Place<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for Place<T> {}

impl<T> PartialOrd for Place<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Place<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters go in, `-` takes one out, and at the end all are taken out. Seen to fail with first come, first served.
    #[test]
    fn everybody_has_a_turn_after_everybody_elses() {
        for (steps, expected) in [
            ("aaa", "aaa"),
            ("aaab", "abaa"),
            ("aaaabbc", "abcabaa"),
            ("cbacba", "cbacba"),
            // Who comes later is next, however many are there already, ...
            ("aaaa-b-c-", "abcaaa"),
            ("aaaa--bb", "aababa"),
            // ... and who paused, or was never there, has no more turns than others.
            ("b-aaaaaa----bbbb", "baaaabababb"),
            ("aaaa----ab", "aaaaba"),
        ] {
            let mut queue = FairQueue::default();
            let last = [LastTurn::default(), LastTurn::default(), LastTurn::default()];
            let mut served = String::new();
            for step in steps.chars() {
                match step {
                    '-' => served.extend(queue.pop()),
                    letter => queue.push(&last[letter as usize - 'a' as usize], letter),
                }
            }
            served.extend(std::iter::from_fn(|| queue.pop()));
            assert_eq!((served.as_str(), queue.len()), (expected, 0), "{steps}");
        }
    }
}
