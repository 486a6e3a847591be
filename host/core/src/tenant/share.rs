//! A resource of a bounded size that tenants share, so that none of them takes all of it.
//!
//! A [`Share`] counts for example bytes in memory, open files, or requests. Code that needs some of
//! it calls [`Share::take`] with its tenant, an amount and a [`ShareRule`], and gets a [`Reservation`],
//! which can grow and gives all of it back on drop. An amount that the size or the rule does not
//! allow is refused at once; nothing waits. For permits that calls wait for, see `slots`.
//!
//! Invariant: the count of a tenant, a [`TenantPart`], changes only under the lock of the total.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::state::{PerTenant, TenantPart, TenantState};

/// The part of a resource that one tenant may hold. Its size bounds it in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareRule {
    /// All that is free.
    All,
    /// The tenant leaves at least as much free as it then holds. One that grows step by step gets
    /// half, and two that act together leave a third.
    LeaveFree,
    /// As [`LeaveFree`](Self::LeaveFree), but a tenant that holds nothing can take all that is
    /// free.
    LeaveFreeOnceHeld,
    /// One of this many equal parts, rounded up.
    Fraction(u64),
    /// At most this much.
    Cap(u64),
}

/// A bounded resource.
///
/// ```
/// use toolcell::tenant::{Share, ShareRule, TenantState};
///
/// let (share, acme) = (Share::new(8), TenantState::of(Some("acme")));
/// let held = share.take(&acme, 4, ShareRule::LeaveFree).unwrap();
/// assert!(share.take(&acme, 1, ShareRule::LeaveFree).is_err());
/// drop(held);
/// assert_eq!(share.take(&acme, 5, ShareRule::Fraction(2)).unwrap_err().limit, 4);
/// ```
#[derive(Debug)]
pub struct Share {
    size: u64,
    used: Mutex<u64>,
    tenants: PerTenant<AtomicU64>,
}

/// An amount of a resource that a tenant holds. It is given back on drop.
#[derive(Debug)]
pub struct Reservation {
    share: Arc<Share>,
    theirs: Arc<TenantPart<AtomicU64>>,
    amount: u64,
}

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the limit of {limit} is reached")]
pub struct ShareFull {
    /// The size of the resource, or the most that the tenant may hold at the moment.
    pub limit: u64,
}

impl Share {
    /// Creates a resource of this size, all of it free.
    #[must_use]
    pub fn new(size: u64) -> Arc<Self> {
        Arc::new(Self { size, used: Mutex::default(), tenants: PerTenant::default() })
    }

    /// Returns the size.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns an empty amount of this tenant, which can grow.
    #[must_use]
    pub fn hold(self: &Arc<Self>, tenant: &Arc<TenantState>) -> Reservation {
        let theirs = self.tenants.get(tenant, AtomicU64::default);
        Reservation { share: Arc::clone(self), theirs, amount: 0 }
    }

    /// Takes this much for the tenant.
    ///
    /// # Errors
    /// [`ShareFull`] if it is not free, or the rule does not allow it.
    pub fn take(
        self: &Arc<Self>,
        tenant: &Arc<TenantState>,
        amount: u64,
        rule: ShareRule,
    ) -> Result<Reservation, ShareFull> {
        let mut held = self.hold(tenant);
        held.add(amount, rule).map(|()| held)
    }

    /// Returns true if the tenant could take one more.
    #[must_use]
    pub fn has_room(&self, tenant: &TenantState, rule: ShareRule) -> bool {
        let used = self.used.lock();
        let theirs = self.tenants.find(tenant).map_or(0, |theirs| theirs.load(Relaxed));
        self.allows(*used, theirs, 1, rule).is_ok()
    }

    /// Returns true if nothing is free.
    #[must_use]
    pub fn is_full(&self) -> bool {
        *self.used.lock() >= self.size
    }

    /// Returns an error if a tenant that holds `theirs` must not take `more`.
    fn allows(&self, used: u64, theirs: u64, more: u64, rule: ShareRule) -> Result<(), ShareFull> {
        let free = used.checked_add(more).and_then(|used| self.size.checked_sub(used));
        let free = free.ok_or(ShareFull { limit: self.size })?;
        let limit = match rule {
            ShareRule::All => self.size,
            ShareRule::LeaveFreeOnceHeld if theirs == 0 => self.size,
            ShareRule::LeaveFree | ShareRule::LeaveFreeOnceHeld => free,
            ShareRule::Fraction(parts) => self.size.div_ceil(parts),
            ShareRule::Cap(most) => most,
        };
        if theirs.saturating_add(more) > limit { Err(ShareFull { limit }) } else { Ok(()) }
    }
}

impl Reservation {
    /// Takes `more`.
    ///
    /// # Errors
    /// [`ShareFull`] if there is no room. Then the amount is unchanged.
    pub fn grow_by(&mut self, more: u64, rule: ShareRule) -> Result<(), ShareFull> {
        if more == 0 { Ok(()) } else { self.add(more, rule) }
    }

    /// Grows to this amount, if it is less.
    ///
    /// # Errors
    /// As in [`grow_by`](Self::grow_by).
    pub fn grow_to(&mut self, amount: u64, rule: ShareRule) -> Result<(), ShareFull> {
        self.grow_by(amount.saturating_sub(self.amount), rule)
    }

    fn add(&mut self, more: u64, rule: ShareRule) -> Result<(), ShareFull> {
        let mut used = self.share.used.lock();
        let theirs = self.theirs.load(Relaxed);
        self.share.allows(*used, theirs, more, rule)?;
        *used += more;
        self.theirs.store(theirs + more, Relaxed);
        self.amount += more;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut used = self.share.used.lock();
        *used -= self.amount;
        self.theirs.fetch_sub(self.amount, Relaxed);
    }
}

impl TenantState {
    /// Returns the rule of this tenant. Calls without a tenant are the embedder's own: they may
    /// take all that is free.
    pub(crate) fn rule(&self, rule: ShareRule) -> ShareRule {
        if self.name().is_some() { rule } else { ShareRule::All }
    }
}

#[cfg(test)]
mod tests {
    use super::ShareRule::{All, Cap, LeaveFreeOnceHeld};
    use super::*;

    #[test]
    fn tenant_leaves_as_much_free_as_it_holds() {
        let room = Share::new(12);
        let [acme, globex] = ["acme", "globex"].map(|tenant| TenantState::of(Some(tenant)));
        let grow = |held: &mut Reservation, to, rule| held.grow_to(to, rule).is_ok();
        let mut alone = room.hold(&acme);
        assert!(grow(&mut alone, 12, All) && !grow(&mut alone, 13, All) && room.is_full());
        drop(alone);
        let (mut one, mut other) = (room.hold(&acme), room.hold(&globex));
        for (held, to, fits) in [
            (&mut one, [1, 6, 7], [true, true, false]),
            (&mut other, [1, 3, 4], [true, true, false]),
            // A tenant's requests count together.
            (&mut room.hold(&acme), [1, 0, 1], [false, true, false]),
        ] {
            assert_eq!(to.map(|to| grow(&mut *held, to, LeaveFreeOnceHeld)), fits);
        }
        assert!(!room.has_room(&acme, LeaveFreeOnceHeld) && room.has_room(&acme, All));
        drop((one, other));
        assert!(*room.used.lock() == 0 && room.tenants.find(&acme).is_none());
        let small = Share::new(1);
        assert!(small.take(&acme, 1, LeaveFreeOnceHeld).is_ok(), "who holds nothing can begin");
    }

    #[test]
    fn tenants_do_not_share_a_cap() {
        let places = Share::new(u64::MAX);
        let enter = |tenant| places.take(&TenantState::of(tenant), 1, Cap(2));
        let held =
            [Some("a"), None, Some("a"), None, Some("b")].map(|tenant| enter(tenant).unwrap());
        for tenant in [Some("a"), None] {
            assert_eq!(enter(tenant).unwrap_err().limit, 2);
        }
        drop(held);
        assert!(enter(None).is_ok());
    }
}
