//! A limit of bytes that all calls share, so that no tenant can take them all.
//!
//! The queue of waiting calls and the trees of large arguments each have a limit of
//! [`shared_bytes`]. A call [`take`]s bytes before it holds them in memory, and gets a [`Reservation`]
//! that releases them on drop, or `None` if there is no room. A tenant leaves at least as many
//! bytes free as it holds. A call without a tenant is the embedder's own and may hold all free
//! bytes.

use std::sync::Arc;

use toolcell_contract::controls::{bound, enforced};

use super::share::{Reservation, Share, ShareRule};
use super::state::TenantState;

/// Creates a limit of this many bytes, all of them free.
pub(crate) fn shared_bytes(most: u64) -> Arc<Share> {
    Share::new(bound!(HeldBytes, most))
}

/// Takes bytes for a call of this tenant. Returns `None` if they are not free or exceed the
/// tenant's cap.
pub(crate) fn take(
    shared: &Arc<Share>,
    tenant: &Arc<TenantState>,
    bytes: u64,
) -> Option<Reservation> {
    let rule = if enforced!(TenantBytes) { ShareRule::LeaveFree } else { ShareRule::All };
    shared.take(tenant, bytes, tenant.rule(rule)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(shared: &Arc<Share>, tenant: Option<&str>, bytes: u64) -> Option<Reservation> {
        take(shared, &TenantState::of(tenant), bytes)
    }

    fn is_as_new(shared: &Arc<Share>) -> bool {
        taken(shared, None, 100).is_some()
    }

    /// Fails without: the limit; the release of bytes.
    #[test]
    fn shared_bytes_are_bounded_and_released() {
        let shared = shared_bytes(100);
        let first = taken(&shared, None, 60).expect("they are free");
        assert!(taken(&shared, None, 41).is_none());
        let second = taken(&shared, None, 40).expect("they are free");
        assert!(taken(&shared, None, 1).is_none() && taken(&shared, None, u64::MAX).is_none());
        drop(first);
        assert!(taken(&shared, Some("a"), 30).is_some());
        drop(second);
        assert!(is_as_new(&shared));
    }

    /// Fails without: a tenant's cap.
    #[test]
    fn tenant_leaves_as_many_bytes_as_it_holds() {
        let shared = shared_bytes(100);
        assert!(taken(&shared, Some("a"), 51).is_none());
        let held = [Some("a"), Some("a"), Some("b"), None].map(|tenant| taken(&shared, tenant, 25));
        assert_eq!(held.each_ref().map(Option::is_some), [true, true, true, true]);
        drop(held);
        let hog = taken(&shared, Some("a"), 50).expect("a half");
        assert!(taken(&shared, Some("a"), 1).is_none());
        let other = taken(&shared, Some("b"), 25).expect("half of the rest");
        assert!(taken(&shared, Some("b"), 1).is_none());
        let own = taken(&shared, None, 25).expect("all of the rest");
        drop((hog, other, own));
        assert!(is_as_new(&shared));
    }
}
