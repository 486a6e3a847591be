//! Queue of calls for a bounded number of cells, fair among tenants.
//!
//! A cell is the fresh WebAssembly instance of one call, and takes memory. `placement` calls
//! [`Queue::take`] with the tenant of a call, its deadline, and the bytes of its text. It returns a
//! [`Slot`], which is given back on drop, or `None` if too much waits already or the deadline
//! passes. Other queues give turns to large JSON trees (`executor/trees`) and threads to blocking
//! closures (`tool/blocking`). Invariants:
//!
//! - A tenant takes a cell only while it has fewer than are free: one busy tenant leaves half of
//!   them, two leave a third, and a call of another tenant need not wait. The same goes for the
//!   places to wait in.
//! - A tenant that is the only one may have every cell: no call of another tenant has come, and the
//!   call's executor defines no other.
//! - Calls without a tenant belong to the embedder (the program that uses this library) and may
//!   have every cell as well.
//! - No call waits that may have a cell.
//! - A cell that becomes free goes to the waiting tenant with the fewest cells.
//! - At most 10,000 calls wait, and their text is bounded in bytes.
//! - A cell is taken here before the engine is asked for one, so a full pool is a wait or a refusal,
//!   never an error of the engine.
//!
//! Source: docs/threat-model.md, row 56.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use toolcell_contract::controls::{bound, enforced};

use super::share::{Reservation, Share};
use super::shared_bytes::{self, shared_bytes};
use super::state::{PerTenant, TenantPart, TenantState};
use crate::os::clock::before;

/// Calls that may wait for a cell; one more is refused at once. A waiting call holds no cell.
const MAX_WAITING: usize = 10_000;
/// Bytes of text of all calls that wait, arguments and answers; a call that would exceed it is
/// refused at once. As many as 64 calls with all the arguments that a call may have by default.
const WAITING_BYTES: u64 = 64 << 20;
/// Tenants above which those without cells and waiting calls are forgotten.
const NAMES: usize = 64;

/// The account of calls without a tenant.
const OWN: usize = 0;

/// A bounded number of cells, or of other places to work in, and the calls that wait for one.
#[derive(Debug)]
pub(crate) struct Queue {
    cells: usize,
    state: Mutex<State>,
    waiting: Arc<Share>,
}

/// A cell, given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    queue: Arc<Queue>,
    account: usize,
}

/// A place in the queue, given up when dropped.
#[derive(Debug)]
struct Waiting {
    queue: Arc<Queue>,
    account: usize,
    ticket: u64,
    /// The reservation of the call's text in the bound on waiting text.
    _text: Reservation,
    /// A cell that arrives while this is dropped is given back with it, after the place.
    slot: oneshot::Receiver<Slot>,
}

#[derive(Debug, Default)]
struct State {
    free: usize,
    waiting: usize,
    /// The tickets given so far: an earlier call has a lower ticket.
    tickets: u64,
    accounts: Vec<Account>,
    /// The index of each tenant's account.
    tenants: PerTenant<usize>,
    /// Indices of accounts that are not in use.
    unused: Vec<usize>,
}

/// The cells of a tenant, and its waiting calls by ticket.
#[derive(Debug, Default)]
struct Account {
    tenant: Option<Arc<TenantPart<usize>>>,
    cells: usize,
    line: BTreeMap<u64, Place>,
}

/// A waiting call.
#[derive(Debug)]
struct Place {
    /// True if the call's executor defines other tenants.
    is_shared: bool,
    slot: oneshot::Sender<Slot>,
}

impl Queue {
    /// Builds a queue for this many cells, all of them free.
    pub(crate) fn new(cells: usize) -> Arc<Self> {
        let accounts = vec![Account::default()];
        let state = Mutex::new(State { free: cells, accounts, ..State::default() });
        Arc::new(Self { cells, state, waiting: shared_bytes(WAITING_BYTES) })
    }

    /// Returns the number of cells, of taken cells, and of waiting calls.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let state = self.state.lock();
        (self.cells, self.cells - state.free, state.waiting)
    }

    /// Takes a cell for a call of this tenant with this many bytes of text, now or before the
    /// deadline. Returns `None` if too many calls or bytes wait already, or if the deadline passes
    /// first. `is_shared`: there are other tenants, whether or not they have made a call.
    ///
    /// # Cancel safety
    /// May be dropped: then the call leaves the queue.
    pub(crate) async fn take(
        self: &Arc<Self>,
        tenant: &Arc<TenantState>,
        is_shared: bool,
        deadline: Option<Instant>,
        text: u64,
    ) -> Option<Slot> {
        let queue = Arc::clone(self);
        let mut waiting = {
            let mut state = self.state.lock();
            let account = state.account(tenant);
            if state.free > 0 && !state.is_reserved(&state.accounts[account], is_shared) {
                state.take(account);
                return Some(Slot { queue, account });
            }
            let Some(text) = shared_bytes::take(&self.waiting, tenant, text) else {
                state.forget(account);
                return None;
            };
            let (sender, slot) = oneshot::channel();
            let ticket = state.wait(account, Place { is_shared, slot: sender })?;
            Waiting { queue, account, ticket, _text: text, slot }
        };
        before(deadline, &mut waiting.slot).await?.ok()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = self.queue.state.lock().release(self.account);
        if let Some((account, waits)) = next {
            // If the call has left meanwhile, the send fails, and the slot is dropped and given
            // back.
            drop(waits.send(Self { queue: Arc::clone(&self.queue), account }));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.queue.state.lock().remove(self.account, self.ticket);
    }
}

impl State {
    /// Returns the index of a tenant's account; adds one if there is none.
    fn account(&mut self, tenant: &Arc<TenantState>) -> usize {
        if tenant.name().is_none() {
            return OWN;
        }
        if let Some(known) = self.tenants.find(tenant) {
            return **known;
        }
        let account = self.unused.pop().unwrap_or_else(|| {
            self.accounts.push(Account::default());
            self.accounts.len() - 1
        });
        self.accounts[account].tenant = Some(self.tenants.get(tenant, || account));
        account
    }

    /// Returns the number of tenants that are known.
    fn known(&self) -> usize {
        self.accounts.len() - self.unused.len() - 1
    }

    /// Returns true if the free cells are for others. `is_shared`: the call's executor defines
    /// other tenants.
    fn is_reserved(&self, account: &Account, is_shared: bool) -> bool {
        let is_shared = is_shared && enforced!(DefinedTenants);
        let is_one_of_several = account.tenant.is_some() && (is_shared || self.known() > 1);
        is_one_of_several && account.cells >= bound!(TenantCells, self.free)
    }

    fn take(&mut self, account: usize) {
        self.free -= 1;
        self.accounts[account].cells += 1;
    }

    /// Adds a place at the end of the account's line, and returns its ticket. `None` if there is no
    /// place left.
    fn wait(&mut self, account: usize, place: Place) -> Option<u64> {
        let Account { tenant, line, .. } = &mut self.accounts[account];
        let places = bound!(Queue, MAX_WAITING).saturating_sub(self.waiting);
        let is_held_back = tenant.is_some() && line.len() >= bound!(TenantQueue, places);
        if places == 0 || is_held_back {
            self.forget(account);
            return None;
        }
        let ticket = self.tickets;
        line.insert(ticket, place);
        (self.tickets, self.waiting) = (ticket + 1, self.waiting + 1);
        Some(ticket)
    }

    fn remove(&mut self, account: usize, ticket: u64) {
        if self.accounts[account].line.remove(&ticket).is_some() {
            self.waiting -= 1;
            self.forget(account);
        }
    }

    /// Takes a cell back, and returns the account and the call that get it next.
    fn release(&mut self, account: usize) -> Option<(usize, oneshot::Sender<Slot>)> {
        self.free += 1;
        self.accounts[account].cells -= 1;
        // At most one: each account that waited had at least as many cells as were free, and now
        // one more is free.
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

    /// Returns the account that gets the next cell.
    fn next(&self) -> Option<usize> {
        let turn = |(number, account): (usize, &Account)| {
            let (ticket, place) = account.line.first_key_value()?;
            (!self.is_reserved(account, place.is_shared)).then(|| (account.rank(*ticket), number))
        };
        self.accounts.iter().enumerate().filter_map(turn).min().map(|(_, number)| number)
    }

    /// Forgets a tenant without cells and waiting calls, if many tenants are known.
    fn forget(&mut self, account: usize) {
        let is_many = self.known() > NAMES;
        let Account { tenant, cells, line } = &mut self.accounts[account];
        if is_many && *cells == 0 && line.is_empty() && tenant.take().is_some() {
            self.unused.push(account);
        }
    }
}

impl Account {
    /// Returns the account's rank among those that wait: by its cells, then by the ticket `first`
    /// of its first call.
    fn rank(&self, first: u64) -> (usize, u64) {
        (if enforced!(CellTurns) { self.cells } else { 0 }, first)
    }
}

#[cfg(test)]
mod tests;
