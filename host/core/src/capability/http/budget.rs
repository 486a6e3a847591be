//! Limits the HTTP traffic of one call: requests, bytes in both directions, connections and name
//! lookups.
//!
//! The engine creates one [`Budget`] for each call. The code that sends a request takes from it
//! before it acts: one request, the bytes to send, each piece that arrives. If too little is left,
//! it gets [`SendError::OverBudget`], and the tool sees that error. By default a call has 32
//! requests, 8 MiB in each direction, 8 open connections and 4 lookups at the same time.
//! A charge is never refunded. Clones share one budget. A request that was refused by the scan for
//! secrets closes the budget: all further requests of the call fail, so that a tool cannot guess a
//! secret by trial.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};
use toolcell_contract::controls::bound;

use super::{SendError, Share};
use crate::tenant::state::TenantState;

/// Requests that one call may make. A tool that follows ten redirects of three pages stays below
/// it, a port scan does not.
pub(crate) const DEFAULT_REQUESTS: u64 = 32;
/// Bytes that one call may send, over all of its requests: paths, headers and bodies.
pub(crate) const DEFAULT_SENT: u64 = 8 << 20;
/// Bytes that one call may receive, over all of its requests. A guest could not hold much more.
pub(crate) const DEFAULT_RECEIVED: u64 = 8 << 20;

/// Open connections of one call. A browser has as many to one or two hosts.
const CONNECTIONS: usize = 8;
/// Concurrent name lookups of one call, including those that the call no longer waits for.
const RESOLVING: usize = 4;

/// The traffic that one call may still cause. Cheap to clone.
///
/// # Defaults
/// [`DEFAULT_REQUESTS`], [`DEFAULT_SENT`], [`DEFAULT_RECEIVED`]; no tenant.
#[derive(Debug, Clone)]
pub(crate) struct Budget(pub(super) Arc<Remaining>);

#[derive(Debug)]
pub(super) struct Remaining {
    requests: AtomicU64,
    /// The one permit to scan a request for secrets. Closed with the budget.
    scanning: Semaphore,
    sent: AtomicU64,
    received: AtomicU64,
    /// The call's permits for connections.
    pub(super) connections: Arc<Semaphore>,
    /// The call's permits for name lookups.
    pub(super) resolving: Arc<Semaphore>,
    pub(super) tenant: Arc<TenantState>,
}

impl Budget {
    /// Creates a budget of this many requests, bytes out and bytes in.
    #[cfg(test)]
    pub(crate) fn new(requests: u64, sent: u64, received: u64) -> Self {
        Self::with(requests, sent, received, TenantState::of(None))
    }

    /// Creates the default budget of a call on behalf of a tenant. The tenant's calls share
    /// connections.
    pub(crate) fn of(tenant: &Arc<TenantState>) -> Self {
        Self::with(DEFAULT_REQUESTS, DEFAULT_SENT, DEFAULT_RECEIVED, Arc::clone(tenant))
    }

    fn with(requests: u64, sent: u64, received: u64, tenant: Arc<TenantState>) -> Self {
        Self(Arc::new(Remaining {
            requests: bound!(Requests, requests).into(),
            scanning: Semaphore::new(1),
            sent: bound!(SentBytes, sent).into(),
            received: bound!(ReceivedBytes, received).into(),
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            resolving: Arc::new(Semaphore::new(RESOLVING)),
            tenant,
        }))
    }

    /// Refuses all further requests of the call.
    pub(super) fn close(&self) {
        self.0.scanning.close();
    }

    /// Waits for the exclusive right to scan one request of the call for secrets. Fails after
    /// [`close`](Self::close).
    pub(super) async fn scan_permit(&self) -> Result<SemaphorePermit<'_>, SendError> {
        self.0.scanning.acquire().await.map_err(|_| closed())
    }

    /// Charges one request, whatever its result.
    pub(super) fn take_request(&self) -> Result<(), SendError> {
        if self.0.scanning.is_closed() {
            return Err(closed());
        }
        let problem = format!("the call has used all of its {DEFAULT_REQUESTS} requests");
        take(&self.0.requests, 1, Share::Requests, problem)
    }

    pub(crate) fn take_sent(&self, bytes: u64) -> Result<(), SendError> {
        let problem =
            format!("the call would send more than its limit of {} MiB", DEFAULT_SENT >> 20);
        take(&self.0.sent, bytes, Share::Sent, problem)
    }

    pub(super) fn take_received(&self, bytes: u64) -> Result<(), SendError> {
        let problem =
            format!("the call would receive more than its limit of {} MiB", DEFAULT_RECEIVED >> 20);
        take(&self.0.received, bytes, Share::Received, problem)
    }

    /// Returns the bytes that the call may still receive.
    pub(super) fn receivable(&self) -> u64 {
        self.0.received.load(Ordering::Relaxed)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(&TenantState::of(None))
    }
}

/// Returns the error for a request after [`Budget::close`].
fn closed() -> SendError {
    let problem = "an earlier request of this call was refused, because it carried a secret or could not be \
                   searched for one: all further requests are refused";
    SendError::OverBudget(Share::Closed, problem.to_owned())
}

fn take(left: &AtomicU64, amount: u64, share: Share, problem: String) -> Result<(), SendError> {
    let taken =
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount));
    taken.map(drop).map_err(|_| SendError::OverBudget(share, problem))
}
