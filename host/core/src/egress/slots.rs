//! Something there is a limited number of, shared by tenants and calls.
//!
//! Invariants: no call and no tenant holds more than its share; a call that waits for its own share
//! keeps nothing from others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::defence::{Defence, stands};

/// Names of tenants before those are forgotten that hold nothing.
const NAMES: usize = 64;

/// A limited number of something. One tenant has a quarter of it at most; a call without a tenant
/// is the embedder's own, and held back by its own share alone.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) all: Arc<Semaphore>,
    /// How many there are, free or not.
    count: usize,
    /// How many were ever taken.
    taken: AtomicU64,
    of_tenant: usize,
    tenants: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    _all: OwnedSemaphorePermit,
    _tenant: Option<OwnedSemaphorePermit>,
    _call: OwnedSemaphorePermit,
}

impl Slots {
    /// This many, one at least.
    pub(super) fn new(count: usize) -> Self {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all: Arc::new(Semaphore::new(count)),
            count,
            taken: AtomicU64::new(0),
            of_tenant: count.div_ceil(4),
            tenants: Mutex::default(),
        }
    }

    /// Waits for one, on behalf of a tenant and within the share of a call. From the smallest
    /// circle to the largest.
    ///
    /// # Cancel safety
    /// Dropped, it gives up its place.
    pub(super) async fn take(&self, call: &Arc<Semaphore>, tenant: Option<&str>) -> Option<Slot> {
        let one = |of: Arc<Semaphore>| async { of.acquire_owned().await.ok() };
        let counted = |defence, of: &Arc<Semaphore>| {
            if stands(defence) { Arc::clone(of) } else { Arc::new(Semaphore::new(1)) }
        };
        let call = one(counted(Defence::RequestsOfACall, call)).await?;
        let tenant = match tenant {
            Some(tenant) => {
                Some(one(counted(Defence::RequestsOfATenant, &self.share(tenant))).await?)
            }
            None => None,
        };
        let all = one(counted(Defence::Connections, &self.all)).await?;
        self.taken.fetch_add(1, Ordering::Relaxed);
        Some(Slot { _all: all, _tenant: tenant, _call: call })
    }

    /// How many there are, how many of them are held, and how many were ever taken.
    pub(super) fn counts(&self) -> (usize, usize, u64) {
        let held = self.count.saturating_sub(self.all.available_permits());
        (self.count, held, self.taken.load(Ordering::Relaxed))
    }

    fn share(&self, tenant: &str) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock();
        if let Some(share) = tenants.get(tenant).and_then(Weak::upgrade) {
            return share;
        }
        if tenants.len() >= NAMES {
            tenants.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.of_tenant));
        tenants.insert(tenant.to_owned(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn now(slots: &Slots, call: &Arc<Semaphore>, tenant: Option<&str>) -> Option<Slot> {
        slots.take(call, tenant).now_or_never().flatten()
    }

    #[test]
    fn a_tenant_has_a_quarter_and_a_call_its_share() {
        let (slots, ample) = (Slots::new(8), Arc::new(Semaphore::new(100)));
        let held: Vec<_> = (0..10).map_while(|_| now(&slots, &ample, Some("a"))).collect();
        assert_eq!(held.len(), 2);
        let others: Vec<_> = (0..10).map_while(|_| now(&slots, &ample, Some("b"))).collect();
        assert_eq!(others.len(), 2);
        let small = Arc::new(Semaphore::new(3));
        let own: Vec<_> = (0..10).map_while(|_| now(&slots, &small, None)).collect();
        assert_eq!(own.len(), 3);
        assert_eq!(slots.counts(), (8, 7, 7));
        drop(held);
        assert!(now(&slots, &ample, Some("a")).is_some(), "what is given back is there again");
        drop((others, own));
        assert_eq!(slots.all.available_permits(), 8);
        assert_eq!(slots.counts(), (8, 0, 8));
    }

    #[test]
    fn tenants_that_hold_nothing_are_forgotten() {
        let (slots, ample) = (Slots::new(8), Arc::new(Semaphore::new(100)));
        let kept = now(&slots, &ample, Some("kept"));
        for name in 0..10 * NAMES {
            assert!(now(&slots, &ample, Some(&name.to_string())).is_some());
        }
        assert!(slots.tenants.lock().len() <= NAMES);
        assert!(slots.tenants.lock().contains_key("kept"));
        drop(kept);
    }
}
