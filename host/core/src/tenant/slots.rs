//! Permits of a limited resource, with a cap for each tenant and each call.
//!
//! The HTTP capability uses [`Slots`] for connections and for name lookups. [`Slots::take`] waits
//! for a permit of the call, then of the tenant, then of the resource, and returns a [`Slot`] that
//! releases all three on drop. In this order, a call that waits for its own share holds no permit
//! that others need. A tenant can hold at most a quarter of the permits; a call without a tenant is
//! limited by its own share only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_contract::controls::{bound, enforced};

use super::state::{PerTenant, TenantPart, TenantState};

/// The permits of one resource. A tenant can hold at most a quarter of them. A call without a
/// tenant is the embedder's own and limited only by its own share.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) all: Arc<Semaphore>,
    /// Number of permits, free or held.
    count: usize,
    /// Number of permits ever acquired.
    taken: AtomicU64,
    of_tenant: usize,
    tenants: PerTenant<Arc<Semaphore>>,
}

/// A permit, released on drop.
#[derive(Debug)]
pub(crate) struct Slot {
    _all: OwnedSemaphorePermit,
    _tenant: Option<(OwnedSemaphorePermit, Arc<TenantPart<Arc<Semaphore>>>)>,
    _call: OwnedSemaphorePermit,
}

impl Slots {
    /// Creates this many permits, at least one.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all: semaphore(bound!(Connections, count)),
            count,
            taken: AtomicU64::new(0),
            of_tenant: count.div_ceil(4),
            tenants: PerTenant::default(),
        }
    }

    /// Acquires the call's, the tenant's, then the global permit, so that a waiter never holds what
    /// others need.
    ///
    /// # Cancel safety
    /// Dropping the future gives up its place in the queue.
    pub(crate) async fn take(
        &self,
        call: &Arc<Semaphore>,
        tenant: &Arc<TenantState>,
    ) -> Option<Slot> {
        let one = |of: Arc<Semaphore>| async { of.acquire_owned().await.ok() };
        let call = if enforced!(RequestsOfACall) { Arc::clone(call) } else { semaphore(1) };
        let call = one(call).await?;
        let tenant = if tenant.name().is_some() {
            let permits = || semaphore(bound!(RequestsOfATenant, self.of_tenant));
            let theirs = self.tenants.get(tenant, permits);
            Some((one(Arc::clone(&**theirs)).await?, theirs))
        } else {
            None
        };
        let all = one(Arc::clone(&self.all)).await?;
        self.taken.fetch_add(1, Ordering::Relaxed);
        Some(Slot { _all: all, _tenant: tenant, _call: call })
    }

    /// Returns the number of permits, the number that are held, and the number ever acquired.
    pub(crate) fn counts(&self) -> (usize, usize, u64) {
        let held = self.count.saturating_sub(self.all.available_permits());
        (self.count, held, self.taken.load(Ordering::Relaxed))
    }
}

fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn now(slots: &Slots, call: &Arc<Semaphore>, tenant: Option<&str>) -> Option<Slot> {
        slots.take(call, &TenantState::of(tenant)).now_or_never().flatten()
    }

    #[test]
    fn tenant_and_call_shares_of_slots_are_bounded() {
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
    fn tenants_without_slots_are_forgotten() {
        let (slots, ample) = (Slots::new(8), Arc::new(Semaphore::new(100)));
        let kept = now(&slots, &ample, Some("kept"));
        assert!(now(&slots, &ample, Some("gone")).is_some());
        let is_known = |name| slots.tenants.find(&TenantState::of(Some(name))).is_some();
        assert!(is_known("kept") && !is_known("gone"));
        drop(kept);
    }
}
