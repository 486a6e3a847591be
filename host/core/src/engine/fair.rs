//! A queue in which everybody has a turn after everybody else's.
//!
//! Invariants: whoever puts in many waits for the second until all others have had one; who had none for a while does not get
//! those that it missed.
//! Source: start-time fair queuing, with turns of equal weight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering::Relaxed;

use super::pace::Pace;
use crate::defence::{Defence, stands};

/// The queue.
pub(super) struct FairQueue<T> {
    places: BinaryHeap<Place<T>>,
    /// The turn that is being served.
    now: u64,
    /// How many were put in: within a turn, first come, first served.
    tickets: u64,
}

struct Place<T> {
    order: Reverse<(u64, u64)>,
    item: T,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { places: BinaryHeap::new(), now: 0, tickets: 0 }
    }
}

impl<T> FairQueue<T> {
    pub(super) fn push(&mut self, whose: &Pace, item: T) {
        let last = if stands(Defence::QuickTurns) { whose.turn.load(Relaxed) } else { 0 };
        let turn = last.max(self.now) + 1;
        whose.turn.store(turn, Relaxed);
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

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl<T> PartialEq for Place<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for Place<T> {}

impl<T> PartialOrd for Place<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Place<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}
