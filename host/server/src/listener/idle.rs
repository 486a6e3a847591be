//! The table of open connections; limits those of each address, and chooses the one to close when
//! there are too many.
//!
//! The listener waits for [`Connections::room`] before it accepts, and calls [`Connections::enter`]
//! for each new connection. It refuses an address that has as many as it may, except loopback; the
//! listener then closes the connection. If the table is full, the connection that has been idle for
//! longest is told to close, and the new one takes its slot. A connection is busy while one of its
//! requests runs, until the answer is sent; a busy connection is never told to close. If all are
//! busy, the new one waits to be accepted.
//!
//! Source: docs/threat-model.md, row 78.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;
use toolcell::controls::enforced;

use crate::service::running::until;

/// A request of the connection is running.
const BUSY: u64 = 0;
/// The connection was told to close.
const CLOSING: u64 = u64::MAX;

/// The open connections. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    most_of_address: usize,
    began: Instant,
    table: Mutex<Table>,
    /// Notified when a connection ended or became idle.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: HashMap<u64, Arc<State>>,
}

/// The state of one connection.
#[derive(Debug)]
struct State {
    address: IpAddr,
    /// The time since which it is idle, in microseconds; or [`BUSY`] or [`CLOSING`].
    since: AtomicU64,
    closing: Notify,
}

/// One open connection. Removed from the table on drop.
#[derive(Debug)]
pub(super) struct OpenConnection {
    connections: Connections,
    id: u64,
    state: Arc<State>,
}

/// Marks the connection as busy until it is dropped.
#[derive(Debug)]
pub(super) struct Busy {
    connections: Connections,
    state: Arc<State>,
}

impl Connections {
    /// Creates a table of at most this many connections, in all and of one address.
    pub(super) fn new(most: usize, most_of_address: usize) -> Self {
        let (most, began) = (most.max(1), Instant::now());
        let (table, freed) = (Mutex::default(), Notify::new());
        Self(Arc::new(Inner { most, most_of_address, began, table, freed }))
    }

    /// Returns when there is room for one more connection, or an idle one to close.
    pub(super) async fn room(&self) {
        let look = || {
            let table = self.0.table.lock();
            let has_room = table.open.len() < self.0.most || longest_idle(&table).is_some();
            has_room.then_some(())
        };
        until(&self.0.freed, look).await;
    }

    /// Adds a connection of this address. `None`: the address is at its limit; loopback has none.
    /// In a full table, the connection that has been idle for longest is told to close.
    pub(super) fn enter(&self, address: IpAddr) -> Option<OpenConnection> {
        let since = AtomicU64::new(self.now());
        let state = Arc::new(State { address, since, closing: Notify::new() });
        let mut table = self.0.table.lock();
        let most = self.0.most_of_address;
        // Counted only if the table has enough for it.
        let is_at_limit = || {
            let of_address = table.open.values().filter(|open| open.address == address);
            table.open.len() >= most && of_address.count() >= most
        };
        if !address.is_loopback() && is_at_limit() {
            return None;
        }
        if table.open.len() >= self.0.most
            && let Some((id, since)) = longest_idle(&table)
            && let Entry::Occupied(idle) = table.open.entry(id)
            // Fails if a request of it has begun since.
            && idle.get().since.compare_exchange(since, CLOSING, Ordering::AcqRel, Ordering::Acquire).is_ok()
        {
            idle.remove().closing.notify_one();
        }
        let id = table.next;
        table.next += 1;
        table.open.insert(id, Arc::clone(&state));
        Some(OpenConnection { connections: self.clone(), id, state })
    }

    fn now(&self) -> u64 {
        let micros = self.0.began.elapsed().as_micros();
        u64::try_from(micros).unwrap_or(CLOSING - 1).clamp(BUSY + 1, CLOSING - 1)
    }
}

/// Returns the connection that has been idle for longest, and the time since which it is.
fn longest_idle(table: &Table) -> Option<(u64, u64)> {
    if !enforced!(IdleConnections) {
        return None;
    }
    let since = table.open.iter().map(|(id, state)| (*id, state.since.load(Ordering::Acquire)));
    since
        .filter(|(_, since)| ![BUSY, CLOSING].contains(since))
        .min_by_key(|(id, since)| (*since, *id))
}

impl OpenConnection {
    /// Returns when the connection must close.
    pub(super) async fn closing(&self) {
        self.state.closing.notified().await;
    }

    /// Returns a function that marks the connection as busy, independent of `self`.
    pub(super) fn busy(&self) -> impl Fn() -> Busy + Clone + Send + 'static {
        let (connections, state) = (self.connections.clone(), Arc::clone(&self.state));
        move || {
            state.since.store(BUSY, Ordering::Release);
            Busy { connections: connections.clone(), state: Arc::clone(&state) }
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.0.table.lock().open.remove(&self.id);
        self.connections.0.freed.notify_waiters();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.state.since.store(self.connections.now(), Ordering::Release);
        self.connections.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn longest_idle_connection_is_evicted_busy_is_kept() {
        let connections = Connections::new(2, usize::MAX);
        let enter = || connections.enter("192.0.2.1".parse().unwrap()).unwrap();
        let (first, second) = (enter(), enter());
        let is_closing = |open: &OpenConnection| open.closing().now_or_never().is_some();
        let busy = first.busy()();
        assert!(connections.room().now_or_never().is_some(), "the second one is idle");
        let third = enter();
        assert_eq!([&first, &second, &third].map(is_closing), [false, true, false]);
        let also = third.busy()();
        assert!(connections.room().now_or_never().is_none(), "all are busy");
        drop(busy);
        assert!(connections.room().now_or_never().is_some());
        drop(also);
        let fourth = enter();
        assert_eq!([&first, &third, &fourth].map(is_closing), [true, false, false]);
        drop((first, second, third, fourth));
        assert!(connections.0.table.lock().open.is_empty());
    }

    #[test]
    fn address_connections_are_capped_except_loopback() {
        let connections = Connections::new(16, 2);
        let [one, other, own] =
            ["192.0.2.1", "192.0.2.2", "127.0.0.1"].map(|address| address.parse().unwrap());
        let held = [one, one, other, own, own, own];
        let held = held.map(|address| connections.enter(address).unwrap());
        assert!(connections.enter(one).is_none());
        assert!(connections.enter(other).is_some() && connections.enter(own).is_some());
        drop(held);
        assert!(connections.enter(one).is_some());
        assert!(connections.0.table.lock().open.is_empty(), "what is over is not kept");
    }
}
