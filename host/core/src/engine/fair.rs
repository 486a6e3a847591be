//! A queue in which each owner has a turn after the others.
//!
//! Invariants: an owner of many items waits for the second turn until all others that wait have had
//! one; an owner that had none for a while does not get those that it missed; what takes no turn
//! costs its owner none.
//! Source: start-time fair queuing (Goyal, Vin and Cheng, 1996), with turns of equal weight.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::defence::{Defence, stands};

/// The queue.
pub(super) struct FairQueue<T> {
    lines: BTreeMap<Key, Line<T>>,
    items: usize,
    /// The turn that is being served.
    now: u64,
    /// How many have been given: within a turn it is first come, first served.
    tickets: u64,
}

/// A turn, and a ticket within it.
type Key = (u64, u64);

/// One owner's turns in one queue: where its line is, or was last. Changed in the queue's own lock
/// only.
#[derive(Debug, Default)]
pub(super) struct Turns {
    turn: AtomicU64,
    ticket: AtomicU64,
}

/// What one owner has in the queue.
struct Line<T> {
    whose: Arc<Turns>,
    new: VecDeque<T>,
    old: VecDeque<T>,
    /// Its last turn was for something new.
    was_new: bool,
}

impl<T> Line<T> {
    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.old.is_empty()
    }

    /// New and old by turns: neither may keep the other waiting for ever.
    fn pop(&mut self) -> Option<(T, bool)> {
        let is_new = self.old.is_empty() || !self.was_new && !self.new.is_empty();
        let item = if is_new { self.new.pop_front() } else { self.old.pop_front() };
        item.map(|item| (item, is_new))
    }
}

impl Turns {
    fn key(&self) -> Key {
        (self.turn.load(Relaxed), self.ticket.load(Relaxed))
    }

    fn set(&self, (turn, ticket): Key) {
        self.turn.store(turn, Relaxed);
        self.ticket.store(ticket, Relaxed);
    }
}

impl<T> FairQueue<T> {
    /// Puts in what has never had a turn.
    pub(super) fn push_new(&mut self, whose: &Arc<Turns>, item: T) {
        self.line(whose).new.push_back(item);
    }

    /// Puts in what has had one.
    pub(super) fn push(&mut self, whose: &Arc<Turns>, item: T) {
        self.line(whose).old.push_back(item);
    }

    /// The next one. What does not take its turn leaves it to the next of the same owner's.
    pub(super) fn pop(&mut self, takes_its_turn: impl Fn(&T) -> bool) -> Option<T> {
        let mut entry = self.lines.first_entry()?;
        let (turn, (item, is_new)) = (entry.key().0, entry.get_mut().pop()?);
        self.items -= 1;
        let takes_it = takes_its_turn(&item);
        if !takes_it && !entry.get().is_empty() {
            return Some(item);
        }
        let mut line = entry.remove();
        if takes_it {
            (self.now, line.was_new) = (turn, is_new);
        } else {
            // As if it had never lined up: no ticket is 0.
            line.whose.set((turn.saturating_sub(1), 0));
        }
        if !line.is_empty() {
            let key = self.key(turn + 1);
            line.whose.set(key);
            self.lines.insert(key, line);
        }
        Some(item)
    }

    pub(super) fn len(&self) -> usize {
        self.items
    }

    fn line(&mut self, whose: &Arc<Turns>) -> &mut Line<T> {
        self.items += 1;
        let known =
            Some(whose.key()).filter(|key| self.lines.contains_key(key) && stands(Defence::Turns));
        let key = known.unwrap_or_else(|| {
            let turn =
                if stands(Defence::Turns) { (whose.key().0 + 1).max(self.now) } else { self.now };
            let key = self.key(turn);
            whose.set(key);
            key
        });
        let line = || Line {
            whose: Arc::clone(whose),
            new: VecDeque::new(),
            old: VecDeque::new(),
            was_new: false,
        };
        self.lines.entry(key).or_insert_with(line)
    }

    fn key(&mut self, turn: u64) -> Key {
        self.tickets += 1;
        (turn, self.tickets)
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { lines: BTreeMap::new(), items: 0, now: 0, tickets: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters go in, each for its owner, in capitals what is new; `-` takes one out, and at the
    /// end all are taken out. Those that take no turn are not told.
    fn served(steps: &str, takes_its_turn: impl Fn(&char) -> bool + Copy) -> String {
        let (mut queue, mut served) = (FairQueue::default(), String::new());
        let owners: Vec<Arc<Turns>> = (0..3).map(|_| Arc::default()).collect();
        for step in steps.chars() {
            let owner = || &owners[step.to_ascii_lowercase() as usize - 'a' as usize];
            match step {
                '-' => served.extend(queue.pop(takes_its_turn)),
                'A'..='Z' => queue.push_new(owner(), step),
                _ => queue.push(owner(), step),
            }
        }
        served.extend(std::iter::from_fn(|| queue.pop(takes_its_turn)));
        assert_eq!(queue.len(), 0, "{steps}");
        served.retain(|item| takes_its_turn(&item));
        served
    }

    /// Seen to fail with first come, first served.
    #[test]
    fn each_owner_has_a_turn_after_the_others() {
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
            // What is new and what is not are served by turns, of one owner's.
            ("aaaAbA", "AbaAaa"),
            ("aabAbB", "ABabab"),
        ] {
            assert_eq!(served(steps, |_| true), expected, "{steps}");
        }
    }

    #[test]
    fn what_takes_no_turn_costs_its_owner_none() {
        for (steps, dead, expected) in [
            ("aaab", 'a', "b"),
            ("AAAabb", 'A', "abb"),
            ("AAAA----ab", 'A', "ab"),
            ("bA-A-A-A-ab", 'A', "bab"),
            ("aaa", 'a', ""),
        ] {
            assert_eq!(served(steps, |item| *item != dead), expected, "{steps} without {dead}");
        }
    }
}
