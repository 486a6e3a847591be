//! The queue of calls for a bounded number of cells, fair among tenants.
//!
//! In: a call's tenant, and the bytes of text that it came with. Out: a [`Slot`], which is given
//! back when it is dropped.
//! Invariants: a tenant takes a cell only while it has fewer than are free: one busy tenant leaves
//! half of them, two leave a third, and a call of another tenant need not wait. The same goes for
//! the places to wait in. A tenant that is the only one may have every cell: no call of another
//! tenant has come, and the call's executor defines no other. Calls without a tenant are the
//! embedder's own and may have every cell as well. No call waits that may have a cell. A cell that
//! comes free goes to the waiting tenant with the fewest cells. The text of the calls that wait is
//! bounded in bytes.
//! Source: docs/threat-model.md, row 56.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::clock::before;
use crate::defence::{Defence, stands};
use crate::shared_bytes::{Held, SharedBytes};

/// Calls that may wait for a cell; one more is refused at once. Waiting costs no cell, only
/// patience.
const MAX_WAITING: usize = 10_000;
/// Bytes of text of all calls that wait, arguments and answers: one that would be more is refused
/// at once. As many as 64 calls with all the arguments that a call may have by default.
const WAITING_BYTES: u64 = 64 << 20;
/// Names of tenants before those are forgotten that have nothing and wait for nothing.
const NAMES: usize = 64;

/// The account of calls without a tenant.
const OWN: usize = 0;

/// A bounded number of cells, or of other places to work in, and the calls that wait for one.
#[derive(Debug)]
pub(crate) struct Queue {
    cells: usize,
    state: Mutex<State>,
    waiting: Arc<SharedBytes>,
}

/// A cell, until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    queue: Arc<Queue>,
    account: usize,
}

/// A place in the line, until it is dropped.
#[derive(Debug)]
struct Waiting {
    queue: Arc<Queue>,
    account: usize,
    ticket: u64,
    /// Of the text of all that wait.
    _text: Held,
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
    /// Accounts that are not in use.
    unused: Vec<usize>,
}

/// What a tenant has, and who waits on its behalf.
#[derive(Debug, Default)]
struct Account {
    tenant: Option<Arc<str>>,
    cells: usize,
    line: BTreeMap<u64, Place>,
}

/// One call in a line.
#[derive(Debug)]
struct Place {
    /// The call's executor defines other tenants.
    is_shared: bool,
    slot: oneshot::Sender<Slot>,
}

impl Queue {
    /// So many, all of them free.
    pub(crate) fn new(cells: usize) -> Arc<Self> {
        let state = Mutex::new(State {
            free: cells,
            waiting: 0,
            tickets: 0,
            accounts: vec![Account::default()],
            names: HashMap::new(),
            unused: Vec::new(),
        });
        Arc::new(Self { cells, state, waiting: SharedBytes::new(WAITING_BYTES) })
    }

    /// How many cells there are, how many of them are taken, and how many calls wait for one.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let state = self.state.lock();
        (self.cells, self.cells - state.free, state.waiting)
    }

    /// A cell for a call of this tenant that came with so many bytes of text, now or before the
    /// deadline. None where too many calls or bytes wait already, or where the deadline passes
    /// first. `is_shared`: there are other tenants, whether or not a call of theirs has come.
    ///
    /// # Cancel safety
    /// May be dropped: then the call leaves the line.
    pub(crate) async fn take(
        self: &Arc<Self>,
        tenant: Option<&str>,
        is_shared: bool,
        deadline: Option<Instant>,
        text: u64,
    ) -> Option<Slot> {
        match self.enter(tenant, is_shared, text)? {
            Ok(slot) => Some(slot),
            Err(mut waiting) => before(deadline, &mut waiting.slot).await?.ok(),
        }
    }

    fn enter(
        self: &Arc<Self>,
        tenant: Option<&str>,
        is_shared: bool,
        text: u64,
    ) -> Option<Result<Slot, Waiting>> {
        let queue = Arc::clone(self);
        let mut state = self.state.lock();
        let account = state.account(tenant);
        if state.free > 0 && !state.holds_back(&state.accounts[account], is_shared) {
            state.take(account);
            return Some(Ok(Slot { queue, account }));
        }
        let Some(text) = self.waiting.take(tenant, text) else {
            state.forget(account);
            return None;
        };
        let (sender, slot) = oneshot::channel();
        let ticket = state.wait(account, Place { is_shared, slot: sender })?;
        Some(Err(Waiting { queue, account, ticket, _text: text, slot }))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = self.queue.state.lock().give_back(self.account);
        if let Some((account, waits)) = next {
            // Who has left meanwhile does not take it: then it is given back like any other.
            drop(waits.send(Self { queue: Arc::clone(&self.queue), account }));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.queue.state.lock().leave(self.account, self.ticket);
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

    /// Returns true if the free cells are for others. `is_shared`: the call's executor defines
    /// other tenants.
    fn holds_back(&self, account: &Account, is_shared: bool) -> bool {
        let is_shared = is_shared && stands(Defence::DefinedTenants);
        let is_one_of_several = account.tenant.is_some() && (is_shared || self.names.len() > 1);
        is_one_of_several && account.cells >= self.free && stands(Defence::TenantCells)
    }

    fn take(&mut self, account: usize) {
        self.free -= 1;
        self.accounts[account].cells += 1;
    }

    /// A place at the end of its line, where there is one.
    fn wait(&mut self, account: usize, place: Place) -> Option<u64> {
        let Account { tenant, line, .. } = &mut self.accounts[account];
        let places = MAX_WAITING.saturating_sub(self.waiting);
        let is_held_back = tenant.is_some() && line.len() >= places && stands(Defence::TenantQueue);
        if (places == 0 || is_held_back) && stands(Defence::Queue) {
            self.forget(account);
            return None;
        }
        let ticket = self.tickets;
        line.insert(ticket, place);
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
            let (_, place) = self.accounts[next].line.pop_first()?;
            self.waiting -= 1;
            self.take(next);
            Some((next, place.slot))
        });
        self.forget(account);
        handed
    }

    /// Whose turn it is.
    fn next(&self) -> Option<usize> {
        let turn = |(number, account): (usize, &Account)| {
            let (ticket, place) = account.line.first_key_value()?;
            (!self.holds_back(account, place.is_shared)).then(|| (account.turn(*ticket), number))
        };
        self.accounts.iter().enumerate().filter_map(turn).min().map(|(_, number)| number)
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
    /// Where it stands among those that wait: by what it has, then by who came first. `first` is
    /// the ticket of its first call.
    fn turn(&self, first: u64) -> (usize, u64) {
        (if stands(Defence::CellTurns) { self.cells } else { 0 }, first)
    }
}

#[cfg(test)]
mod tests;
