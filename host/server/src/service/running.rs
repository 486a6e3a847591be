//! The table of running requests, by principal and id.
//!
//! The admission calls [`Running::begin`] with a principal (the authenticated sender: a key or user
//! of a tenant), the id of its request and the number of its calls. It returns a [`RunningRequest`]
//! with the abort signal of these calls, and removes the request from the table when that is
//! dropped. [`Running::cancel`] raises the signal. At shutdown [`Running::drain`] refuses new
//! requests.
//!
//! The calls of all requests are bounded, because the results of a request are kept until its last
//! call has ended. If there are several tenants, each leaves room for the others. A principal has
//! at most one running request of an id, and only that principal can cancel it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use toolcell::AbortSignal;
use toolcell::tenant::{Reservation, Share};

use super::request_id::RequestId;
use crate::tenants::{principal::Principal, refused::RequestError, share::request_rule};

/// The time after which to retry while the server's limit of calls is reached.
const RETRY: Duration = Duration::from_secs(1);

type Key = (Principal, RequestId);

/// The table of running requests.
#[derive(Debug)]
pub(crate) struct Running {
    room: Arc<Share>,
    table: Mutex<Table>,
    /// Notified when a request has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Table {
    requests: HashMap<Key, AbortSignal>,
    /// True after the end was announced, before the server drains.
    is_ending: bool,
    is_draining: bool,
}

impl Running {
    /// Creates a table for at most this many calls.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let room = Share::new(most as u64);
        Arc::new(Self { room, table: Mutex::default(), ended: Notify::new() })
    }

    /// Returns an error if a request of the principal with one call could not begin now.
    pub(crate) fn check(&self, principal: &Principal, is_shared: bool) -> Result<(), RequestError> {
        if self.table.lock().is_draining {
            return Err(RequestError::Draining);
        }
        let rule = request_rule(is_shared);
        let has_room = self.room.has_room(principal.state(), rule);
        if has_room { Ok(()) } else { Err(RequestError::Overloaded { retry_after: RETRY }) }
    }

    /// Adds a request of `calls` calls, if there is room for them. `is_shared`: there are several
    /// tenants.
    pub(crate) fn begin(
        self: &Arc<Self>,
        principal: &Principal,
        id: &RequestId,
        calls: usize,
        is_shared: bool,
    ) -> Result<RunningRequest, RequestError> {
        let rule = request_rule(is_shared);
        let mut share = self.room.hold(principal.state());
        let key = (principal.clone(), id.clone());
        let mut table = self.table.lock();
        if table.is_draining {
            return Err(RequestError::Draining);
        }
        if table.requests.contains_key(&key) {
            return Err(RequestError::DuplicateRequest);
        }
        // A request without a call also takes a slot, because it can be cancelled.
        if share.grow_to(calls.max(1) as u64, rule).is_err() {
            return Err(RequestError::Overloaded { retry_after: RETRY });
        }
        let signal = AbortSignal::new();
        table.requests.insert(key.clone(), signal.clone());
        Ok(RunningRequest { running: Arc::clone(self), key, signal, _share: share })
    }

    /// Raises the abort signal of the request.
    pub(crate) fn cancel(&self, principal: &Principal, id: &RequestId) -> Result<(), RequestError> {
        let signal = self.table.lock().requests.get(&(principal.clone(), id.clone())).cloned();
        signal.map(|signal| signal.raise()).ok_or(RequestError::NotRunning)
    }

    /// Refuses new requests from now on.
    pub(crate) fn drain(&self) {
        self.table.lock().is_draining = true;
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

    /// Returns true if there is no room for a further call.
    pub(crate) fn is_full(&self) -> bool {
        self.room.is_full()
    }

    /// Returns the number of running requests.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().requests.len()
    }

    /// Raises the abort signals of all requests.
    pub(crate) fn cancel_all(&self) {
        let signals: Vec<_> = self.table.lock().requests.values().cloned().collect();
        signals.iter().for_each(AbortSignal::raise);
    }

    /// Returns when no request is running.
    pub(crate) async fn wait_until_idle(&self) {
        until(&self.ended, || (self.count() == 0).then_some(())).await;
    }
}

/// Returns what `look` finds, which is called at first and after each notification of the waiters.
pub(crate) async fn until<T>(changed: &Notify, mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        // Registered before the check, so that no notification between the two is missed.
        let mut next = std::pin::pin!(changed.notified());
        next.as_mut().enable();
        if let Some(found) = look() {
            return found;
        }
        next.await;
    }
}

/// A running request. Removed from the table on drop.
#[derive(Debug)]
pub(crate) struct RunningRequest {
    running: Arc<Running>,
    key: Key,
    /// Raised when the request is cancelled.
    pub(crate) signal: AbortSignal,
    _share: Reservation,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.running.table.lock().requests.remove(&self.key);
        self.running.ended.notify_waiters();
    }
}
