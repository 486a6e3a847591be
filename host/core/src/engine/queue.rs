//! Who has a cell, and who waits for one.
//!
//! In: a call's tenant. Out: a [`Slot`], which is given back when it is dropped.
//! Invariants: a tenant takes a cell only while it has fewer than are free: one busy tenant leaves half of them, two leave a
//! third, and whoever comes next need not wait. The same goes for the places to wait in. As long as there is one tenant, it
//! may have every cell; so may calls without a tenant, which are the embedder's own. Nobody waits who may have a cell, and
//! one that comes free goes to whoever has the fewest of those that wait and may have it.
//! Source: security design, row 56.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::clock::before;
use crate::defence::{Defence, stands};

/// Calls that may wait for a cell; one more is refused at once. Waiting costs no cell, only patience.
const MAX_WAITING: usize = 10_000;
/// Names of tenants before those are forgotten that have nothing and wait for nothing.
const NAMES: usize = 64;

/// The account of calls without a tenant.
const OWN: usize = 0;

/// The cells of an engine.
#[derive(Debug)]
pub(super) struct Queue(Mutex<State>);

/// A cell, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    queue: Arc<Queue>,
    account: usize,
}

/// A place in the line, until it is dropped.
#[derive(Debug)]
struct Waiting {
    queue: Arc<Queue>,
    account: usize,
    ticket: u64,
    /// A cell that came at this very moment is given back with it, after the place.
    slot: oneshot::Receiver<Slot>,
}

#[derive(Debug)]
struct State {
    free: usize,
    waiting: usize,
    /// How many have ever waited: who came first has the lower number.
    tickets: u64,
    accounts: Vec<Account>,
    /// Where in the accounts each tenant's is.
    names: HashMap<Arc<str>, usize>,
    /// Accounts that are nobody's.
    unused: Vec<usize>,
}

/// What a tenant has, and who waits on its behalf.
#[derive(Debug, Default)]
struct Account {
    tenant: Option<Arc<str>>,
    cells: usize,
    line: BTreeMap<u64, oneshot::Sender<Slot>>,
}

impl Queue {
    /// So many, all of them free.
    pub(super) fn new(cells: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            free: cells,
            waiting: 0,
            tickets: 0,
            accounts: vec![Account::default()],
            names: HashMap::new(),
            unused: Vec::new(),
        })))
    }

    /// A cell for a call of this tenant, now or before the deadline. None where too many wait already, or in vain.
    ///
    /// # Cancel safety
    /// May be dropped: whoever does leaves the line.
    pub(super) async fn take(self: &Arc<Self>, tenant: Option<&str>, deadline: Option<Instant>) -> Option<Slot> {
        match self.enter(tenant)? {
            Ok(slot) => Some(slot),
            Err(mut waiting) => before(deadline, &mut waiting.slot).await?.ok(),
        }
    }

    fn enter(self: &Arc<Self>, tenant: Option<&str>) -> Option<Result<Slot, Waiting>> {
        let queue = Arc::clone(self);
        let mut state = self.0.lock();
        let account = state.account(tenant);
        if state.free > 0 && !state.holds_back(&state.accounts[account]) {
            state.take(account);
            return Some(Ok(Slot { queue, account }));
        }
        let (sender, slot) = oneshot::channel();
        let ticket = state.wait(account, sender)?;
        Some(Err(Waiting { queue, account, ticket, slot }))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = self.queue.0.lock().give_back(self.account);
        if let Some((account, waits)) = next {
            // Who has left meanwhile does not take it: then it is given back like any other.
            drop(waits.send(Self { queue: Arc::clone(&self.queue), account }));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.queue.0.lock().leave(self.account, self.ticket);
    }
}

impl State {
    /// Which account is a tenant's, from now on if none is.
    fn account(&mut self, tenant: Option<&str>) -> usize {
        let Some(tenant) = tenant else { return OWN };
        if let Some(known) = self.names.get(tenant) {
            return *known;
        }
        let account = self.unused.pop().unwrap_or_else(|| {
            self.accounts.push(Account::default());
            self.accounts.len() - 1
        });
        let name: Arc<str> = Arc::from(tenant);
        self.accounts[account].tenant = Some(Arc::clone(&name));
        self.names.insert(name, account);
        account
    }

    /// Whether the free cells are for others.
    fn holds_back(&self, account: &Account) -> bool {
        let is_one_of_several = account.tenant.is_some() && self.names.len() > 1;
        is_one_of_several && account.cells >= self.free && stands(Defence::TenantCells)
    }

    fn take(&mut self, account: usize) {
        self.free -= 1;
        self.accounts[account].cells += 1;
    }

    /// A place at the end of its line, where there is one.
    fn wait(&mut self, account: usize, waits: oneshot::Sender<Slot>) -> Option<u64> {
        let Account { tenant, line, .. } = &mut self.accounts[account];
        let places = MAX_WAITING.saturating_sub(self.waiting);
        let is_held_back = tenant.is_some() && line.len() >= places && stands(Defence::TenantQueue);
        if (places == 0 || is_held_back) && stands(Defence::Queue) {
            self.forget(account);
            return None;
        }
        let ticket = self.tickets;
        line.insert(ticket, waits);
        (self.tickets, self.waiting) = (ticket + 1, self.waiting + 1);
        Some(ticket)
    }

    fn leave(&mut self, account: usize, ticket: u64) {
        if self.accounts[account].line.remove(&ticket).is_some() {
            self.waiting -= 1;
            self.forget(account);
        }
    }

    /// Takes a cell back, and says who has it next.
    fn give_back(&mut self, account: usize) -> Option<(usize, oneshot::Sender<Slot>)> {
        self.free += 1;
        self.accounts[account].cells -= 1;
        // One at most: each that waited had at least as many as were free, and there is one more.
        let next = if self.waiting == 0 { None } else { self.next() };
        let handed = next.and_then(|next| {
            let (_, waits) = self.accounts[next].line.pop_first()?;
            self.waiting -= 1;
            self.take(next);
            Some((next, waits))
        });
        self.forget(account);
        handed
    }

    /// Whose turn it is.
    fn next(&self) -> Option<usize> {
        let may = self.accounts.iter().enumerate().filter(|(_, account)| !self.holds_back(account));
        may.filter_map(|(number, account)| Some((account.turn()?, number))).min().map(|(_, number)| number)
    }

    /// Forgets a tenant that has nothing and wants nothing, where many are known.
    fn forget(&mut self, account: usize) {
        let Account { tenant, cells, line } = &mut self.accounts[account];
        if self.names.len() > NAMES
            && *cells == 0
            && line.is_empty()
            && let Some(tenant) = tenant.take()
        {
            self.names.remove(&tenant);
            self.unused.push(account);
        }
    }
}

impl Account {
    /// Where it stands among those that wait: by what it has, then by who came first.
    fn turn(&self) -> Option<(usize, u64)> {
        let (first, _) = self.line.first_key_value()?;
        Some((if stands(Defence::CellTurns) { self.cells } else { 0 }, *first))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::FutureExt as _;

    use super::*;

    type Taking<'a> = Pin<Box<dyn Future<Output = Option<Slot>> + 'a>>;

    /// Tenants have letters. `n` is none.
    fn call(queue: &Arc<Queue>, tenant: char) -> Taking<'_> {
        let name = tenant.to_string();
        Box::pin(async move { queue.take((tenant != 'n').then_some(name.as_str()), None).await })
    }

    fn now(queue: &Arc<Queue>, tenant: char) -> Option<Slot> {
        call(queue, tenant).now_or_never().flatten()
    }

    fn is_as_new(queue: &Queue, cells: usize) -> bool {
        let state = queue.0.lock();
        let nothing = |account: &Account| account.cells == 0 && account.line.is_empty();
        (state.free, state.waiting) == (cells, 0) && state.accounts.iter().all(nothing)
    }

    /// Seen to fail without a tenant's bound. Calls in their order: in capitals those that have to wait.
    #[test]
    fn a_tenant_leaves_as_many_cells_as_it_has() {
        for (cells, calls) in [
            // Alone it has them all. The next one waits for the first to come back.
            (4, "aaaaAB"),
            (4, "aaabBA"),
            (4, "baaAABcABC"),
            (5, "baaAbcD"),
            (8, "baaaaAAbcdE"),
            (1, "aBA"),
            (2, "baAB"),
            // The embedder's own calls are not held back.
            (4, "abnnN"),
            (4, "baanNAB"),
            (3, "nnaNAB"),
        ] {
            let queue = Queue::new(cells);
            let mut taken = Vec::new();
            for (number, tenant) in calls.chars().enumerate() {
                let slot = now(&queue, tenant.to_ascii_lowercase());
                assert_eq!(slot.is_some(), tenant.is_ascii_lowercase(), "{cells} cells, {calls}: call {number}");
                taken.extend(slot);
            }
            drop(taken);
            assert!(is_as_new(&queue, cells), "{calls}");
        }
    }

    /// Seen to fail with first come, first served. Who has a cell, who waits in which order, whose calls end, and who has
    /// the cell then: `-` is nobody.
    #[test]
    fn the_next_cell_is_for_who_has_the_fewest() {
        for (cells, have, wait, end, next) in [
            (4, "baan", "aaacb", "anbbca", "c-ba-a"),
            // Of equals, who came first.
            (3, "nnn", "abcab", "nnncab", "abc-ab"),
            (3, "nnn", "aaabbc", "nnnabc", "abcab-"),
            // Calls without a tenant are one tenant's.
            (2, "nn", "nna", "nna", "ann"),
            (2, "an", "nnb", "anb", "bnn"),
        ] {
            let queue = Queue::new(cells);
            let mut held: Vec<_> = have.chars().map(|tenant| (tenant, now(&queue, tenant).expect(have))).collect();
            let mut line: Vec<_> = wait.chars().map(|tenant| (tenant, call(&queue, tenant))).collect();
            assert!(line.iter_mut().all(|(_, call)| call.now_or_never().is_none()), "{wait}");
            for (number, (ends, next)) in end.chars().zip(next.chars()).enumerate() {
                let place = held.iter().position(|(tenant, _)| *tenant == ends).expect("it has one");
                drop(held.remove(place));
                let served: Vec<_> = line
                    .iter_mut()
                    .enumerate()
                    .filter_map(|(place, (_, call))| Some((place, call.now_or_never()?.expect("a cell"))))
                    .collect();
                let mut who = vec![];
                for (place, slot) in served.into_iter().rev() {
                    let (tenant, _) = line.remove(place);
                    who.push(tenant);
                    held.push((tenant, slot));
                }
                assert_eq!(who, if next == '-' { vec![] } else { vec![next] }, "{have} {wait} {end}: end {number}");
            }
            drop((held, line));
            assert!(is_as_new(&queue, cells), "{have} {wait}");
        }
    }

    /// Also at the very moment at which the cell comes, before it is looked at.
    #[test]
    fn who_leaves_takes_no_cell() {
        let queue = Queue::new(1);
        let (slot, mut line) = (now(&queue, 'a').expect("a cell"), ['a', 'a', 'b', 'a'].map(|who| call(&queue, who)));
        assert!(line.iter_mut().all(|call| call.now_or_never().is_none()));
        let [first, second, third, mut last] = line;
        drop(first);
        drop(slot);
        drop(third);
        drop(second);
        assert!(last.as_mut().now_or_never().flatten().is_some());
        drop(last);
        assert!(is_as_new(&queue, 1));
    }

    /// Seen to fail without a tenant's bound.
    #[test]
    fn a_tenant_leaves_as_many_places_as_it_takes() {
        let queue = Queue::new(1);
        let _slot = now(&queue, 'n').expect("a cell");
        let fill = |tenant| {
            let calls = std::iter::repeat_with(|| call(&queue, tenant)).take(MAX_WAITING + 1);
            calls.map_while(|mut call| call.as_mut().now_or_never().is_none().then_some(call)).collect::<Vec<_>>()
        };
        let (hog, other) = (fill('a'), fill('b'));
        assert_eq!((hog.len(), other.len()), (MAX_WAITING / 2, MAX_WAITING / 4));
        let own = fill('n');
        assert_eq!(own.len(), MAX_WAITING / 4, "the embedder may have the rest");
        drop(hog);
        assert_eq!(fill('c').len(), MAX_WAITING / 4);
    }

    #[test]
    fn tenants_that_have_nothing_are_forgotten() {
        let queue = Queue::new(2);
        let kept = now(&queue, 'k');
        for number in 0..10 * NAMES {
            let slot = queue.take(Some(&number.to_string()), None).now_or_never().flatten().expect("a cell");
            assert!(queue.take(Some(&format!("{number} waits")), None).now_or_never().is_none());
            drop(slot);
        }
        let state = queue.0.lock();
        assert!(state.names.len() <= NAMES + 1 && state.names.contains_key("k"));
        assert!(state.accounts.len() <= NAMES + 3, "{} accounts", state.accounts.len());
        drop(state);
        drop(kept);
    }
}
