//! The requests that run now: by whom, and how each is ended early.
//!
//! In: a principal and the id of its request. Out: a [`RunningRequest`] whose signal its calls
//! obey.
//! Invariants: the calls of all requests are bounded, because the results of a request are kept
//! until its last call has ended; where there are several tenants, each leaves as many calls free
//! as it has; a principal has one running request of an id; only that principal can cancel it; a
//! request leaves the table when it is dropped.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use toolcell::AbortSignal;
use toolcell::defence::Defence;

use crate::principal::Principal;
use crate::refused::Refused;
use crate::request_id::RequestId;
use crate::share::{Room, Share};

/// When a client is told to try again while the server makes as many calls as it may.
const RETRY: Duration = Duration::from_secs(1);

type Key = (Principal, RequestId);

/// The table of running requests.
#[derive(Debug)]
pub(crate) struct Running {
    room: Arc<Room>,
    table: Mutex<Table>,
    /// Notified when a request has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Table {
    requests: HashMap<Key, AbortSignal>,
    /// The server is about to drain.
    is_ending: bool,
    is_draining: bool,
}

impl Running {
    /// Room for so many calls.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let room = Room::new(most, Defence::RequestShare);
        Arc::new(Self { room, table: Mutex::default(), ended: Notify::new() })
    }

    /// Whether a request of the principal with one call could begin now.
    pub(crate) fn check(&self, principal: &Principal, is_shared: bool) -> Result<(), Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        let has_room = self.room.has_room(principal, is_shared);
        if has_room { Ok(()) } else { Err(Refused::Overloaded { retry_after: RETRY }) }
    }

    /// Enters a request of so many calls, if there is room for them. `is_shared`: there are several
    /// tenants.
    pub(crate) fn begin(
        self: &Arc<Self>,
        principal: &Principal,
        id: &RequestId,
        calls: usize,
        is_shared: bool,
    ) -> Result<RunningRequest, Refused> {
        let mut share = self.room.share(principal);
        let mut table = self.table.lock();
        if table.is_draining {
            return Err(Refused::Draining);
        }
        match table.requests.entry((principal.clone(), id.clone())) {
            Entry::Occupied(_) => Err(Refused::DuplicateRequest),
            // One without a call has a place as well: it can be cancelled.
            Entry::Vacant(_) if !share.grow_to(calls.max(1), is_shared) => {
                Err(Refused::Overloaded { retry_after: RETRY })
            }
            Entry::Vacant(place) => {
                let signal = place.insert(AbortSignal::new()).clone();
                let key = (principal.clone(), id.clone());
                Ok(RunningRequest { running: Arc::clone(self), key, signal, _share: share })
            }
        }
    }

    /// Asks the request to end.
    pub(crate) fn cancel(&self, principal: &Principal, id: &RequestId) -> Result<(), Refused> {
        let signal = self.table.lock().requests.get(&(principal.clone(), id.clone())).cloned();
        signal.map(|signal| signal.raise()).ok_or(Refused::NotRunning)
    }

    /// Refuses new requests from now on.
    pub(crate) fn drain(&self) {
        self.table.lock().is_draining = true;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.table.lock().is_draining
    }

    /// Announces that requests will be refused soon.
    pub(crate) fn announce_end(&self) {
        self.table.lock().is_ending = true;
    }

    /// Returns true if the end was announced, or has come.
    pub(crate) fn is_ending(&self) -> bool {
        let table = self.table.lock();
        table.is_ending || table.is_draining
    }

    /// Whether there is no room for a further call.
    pub(crate) fn is_full(&self) -> bool {
        self.room.is_full()
    }

    /// How many requests run.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().requests.len()
    }

    /// Asks every request to end.
    pub(crate) fn cancel_all(&self) {
        let signals: Vec<_> = self.table.lock().requests.values().cloned().collect();
        signals.iter().for_each(AbortSignal::raise);
    }

    /// Ends when no request runs.
    pub(crate) async fn idle(&self) {
        loop {
            // Registered before the look: an end between the two is not missed.
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// A request that runs. Leaves the table on drop.
#[derive(Debug)]
pub(crate) struct RunningRequest {
    running: Arc<Running>,
    key: Key,
    /// Raised when the request is cancelled.
    pub(crate) signal: AbortSignal,
    _share: Share,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.running.table.lock().requests.remove(&self.key);
        self.running.ended.notify_waiters();
    }
}
