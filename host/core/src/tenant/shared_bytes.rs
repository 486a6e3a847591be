//! A limit of bytes that all calls share, so that no tenant can take them all.
//!
//! The queue of waiting calls and the trees of large arguments each have a [`SharedBytes`]. A call
//! takes bytes before it holds them in memory, and gets a [`Reservation`] that releases them on
//! drop, or `None` if there is no room. A tenant leaves at least as many bytes free as it holds. A
//! call without a tenant belongs to the embedder (the program that uses this library) and may hold
//! all free bytes.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolcell_contract::controls::bound;

/// The limit, and the bytes that each tenant holds.
#[derive(Debug)]
pub(crate) struct SharedBytes {
    most: u64,
    usage: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    all: u64,
    tenants: HashMap<Arc<str>, u64>,
}

/// Bytes that one call holds, released on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    shared: Arc<SharedBytes>,
    tenant: Option<Arc<str>>,
    bytes: u64,
}

impl SharedBytes {
    /// Creates a limit of this many bytes, all of them free.
    pub(crate) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, usage: Mutex::default() })
    }

    /// Takes bytes for a call of this tenant. Returns `None` if they are not free or exceed the
    /// tenant's cap.
    pub(crate) fn take(self: &Arc<Self>, tenant: Option<&str>, bytes: u64) -> Option<Reservation> {
        let mut held = self.usage.lock();
        let all = held.all.saturating_add(bytes);
        if all > bound!(HeldBytes, self.most) {
            return None;
        }
        let tenant = match tenant {
            Some(tenant) => {
                let known = held
                    .tenants
                    .get_key_value(tenant)
                    .map(|(name, theirs)| (Arc::clone(name), *theirs));
                let (name, theirs) = known.unwrap_or_else(|| (Arc::from(tenant), 0));
                let theirs = theirs.saturating_add(bytes);
                if theirs > bound!(TenantBytes, self.most.saturating_sub(all)) {
                    return None;
                }
                held.tenants.insert(Arc::clone(&name), theirs);
                Some(name)
            }
            None => None,
        };
        held.all = all;
        Some(Reservation { shared: Arc::clone(self), tenant, bytes })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut held = self.shared.usage.lock();
        held.all = held.all.saturating_sub(self.bytes);
        if let Some(tenant) = &self.tenant
            && let Some(theirs) = held.tenants.get_mut(tenant)
        {
            *theirs = theirs.saturating_sub(self.bytes);
            if *theirs == 0 {
                held.tenants.remove(tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_as_new(shared: &SharedBytes) -> bool {
        let held = shared.usage.lock();
        held.all == 0 && held.tenants.is_empty()
    }

    /// Fails without: the limit; the release of bytes.
    #[test]
    fn shared_bytes_are_bounded_and_released() {
        let shared = SharedBytes::new(100);
        let first = shared.take(None, 60).expect("they are free");
        assert!(shared.take(None, 41).is_none());
        let second = shared.take(None, 40).expect("they are free");
        assert!(shared.take(None, 1).is_none() && shared.take(None, u64::MAX).is_none());
        drop(first);
        assert!(shared.take(Some("a"), 30).is_some());
        drop(second);
        assert!(is_as_new(&shared));
    }

    /// Fails without: a tenant's cap.
    #[test]
    fn tenant_leaves_as_many_bytes_as_it_holds() {
        let shared = SharedBytes::new(100);
        assert!(shared.take(Some("a"), 51).is_none());
        let held = [Some("a"), Some("a"), Some("b"), None].map(|tenant| shared.take(tenant, 25));
        assert_eq!(held.each_ref().map(Option::is_some), [true, true, true, true]);
        drop(held);
        let hog = shared.take(Some("a"), 50).expect("a half");
        assert!(shared.take(Some("a"), 1).is_none());
        let other = shared.take(Some("b"), 25).expect("half of the rest");
        assert!(shared.take(Some("b"), 1).is_none());
        let own = shared.take(None, 25).expect("all of the rest");
        drop((hog, other, own));
        assert!(is_as_new(&shared));
    }
}
