//! Fair queue: each flow gets one turn in each round, however many items it has.
//!
//! A flow is the unit of fairness: a tenant, or the calls of a component without a tenant. Both
//! lanes of threads keep their waiting slices in a [`FairQueue`]. `push_new` and `push` add an item
//! of a flow; the two kinds are served by turns. `pop` returns the next item; if the caller says
//! that the item takes no turn, for instance because its call was cancelled, the turn stays with
//! the flow.
//! Invariants: a flow with many items waits for its second turn until every other waiting flow has
//! had one. A flow that was idle does not get the turns that it missed.
//! Source: start-time fair queuing (Goyal, Vin and Cheng, 1996), with turns of equal weight.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use toolcell_contract::controls::enforced;

/// A queue of items by flow.
pub(super) struct FairQueue<T> {
    lines: BTreeMap<Key, Line<T>>,
    items: usize,
    /// The turn that is being served.
    now: u64,
    /// The tickets given so far: within a turn, flows are served in the order of their tickets.
    tickets: u64,
}

/// A turn, and a ticket within it.
type Key = (u64, u64);

/// The state of one flow in one queue: the current or the last key of its line. It changes only
/// under the lock of that queue.
#[derive(Debug, Default)]
pub(in crate::engine) struct FlowState {
    turn: AtomicU64,
    ticket: AtomicU64,
}

/// The items of one flow in the queue.
struct Line<T> {
    flow: Arc<FlowState>,
    new: VecDeque<T>,
    old: VecDeque<T>,
    /// True if its last turn went to a new item.
    was_new: bool,
}

impl<T> Line<T> {
    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.old.is_empty()
    }

    /// Takes a new and an old item by turns, so that neither kind starves the other.
    fn pop(&mut self) -> Option<(T, bool)> {
        let is_new = self.old.is_empty() || !self.was_new && !self.new.is_empty();
        let item = if is_new { self.new.pop_front() } else { self.old.pop_front() };
        item.map(|item| (item, is_new))
    }
}

impl FlowState {
    fn key(&self) -> Key {
        (self.turn.load(Relaxed), self.ticket.load(Relaxed))
    }

    fn set(&self, (turn, ticket): Key) {
        self.turn.store(turn, Relaxed);
        self.ticket.store(ticket, Relaxed);
    }
}

impl<T> FairQueue<T> {
    /// Adds an item that has never had a turn.
    pub(super) fn push_new(&mut self, whose: &Arc<FlowState>, item: T) {
        self.line(whose).new.push_back(item);
    }

    /// Adds an item that has had a turn.
    pub(super) fn push(&mut self, whose: &Arc<FlowState>, item: T) {
        self.line(whose).old.push_back(item);
    }

    /// Takes the next item. If it does not take its turn, the turn stays with the flow's next item.
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
            // As if the flow had never queued: no ticket is 0.
            line.flow.set((turn.saturating_sub(1), 0));
        }
        if !line.is_empty() {
            let key = self.key(turn + 1);
            line.flow.set(key);
            self.lines.insert(key, line);
        }
        Some(item)
    }

    pub(super) fn len(&self) -> usize {
        self.items
    }

    fn line(&mut self, whose: &Arc<FlowState>) -> &mut Line<T> {
        self.items += 1;
        let in_turns = enforced!(Turns);
        let known = Some(whose.key()).filter(|key| self.lines.contains_key(key) && in_turns);
        let key = known.unwrap_or_else(|| {
            let turn = if in_turns { (whose.key().0 + 1).max(self.now) } else { self.now };
            let key = self.key(turn);
            whose.set(key);
            key
        });
        let line = || Line {
            flow: Arc::clone(whose),
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
    use toolcell_test_guests::rows;

    use super::*;

    /// Runs a script: a letter adds an item for its flow, a capital one a new item; `-` takes an
    /// item out. At the end all items are taken. Returns the items that took a turn, in order.
    fn served(steps: &str, takes_its_turn: impl Fn(&char) -> bool + Copy) -> String {
        let (mut queue, mut served) = (FairQueue::default(), String::new());
        let owners: Vec<Arc<FlowState>> = (0..3).map(|_| Arc::default()).collect();
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

    /// Fails without: turns (first come, first served).
    #[test]
    fn flows_are_served_in_turn() {
        for (steps, expected) in rows::<(&str, &str)>("engine/schedule/fair_queue", "flows") {
            assert_eq!(served(steps, |_| true), expected, "{steps}");
        }
    }

    #[test]
    fn skipped_items_cost_their_flow_no_turn() {
        let skipped = rows::<(&str, char, &str)>("engine/schedule/fair_queue", "skipped");
        for (steps, dead, expected) in skipped {
            assert_eq!(served(steps, |item| *item != dead), expected, "{steps} without {dead}");
        }
    }
}
