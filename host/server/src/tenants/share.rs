//! Divides a bounded resource fairly between tenants.
//!
//! A [`Room`] has a size, for example bytes of request bodies, open requests, or running calls.
//! Code that needs some of it takes a [`Share`] for its principal (the authenticated sender: a key
//! or user of a tenant) and grows it; growing fails if there is no room. A share is freed when it
//! is dropped. The size is never exceeded.
//!
//! If there are several tenants, a tenant that holds something may only take as much more as leaves
//! free at least what it then holds. So one tenant that grows step by step gets half, and two that
//! act together leave a third. A tenant that holds nothing can begin while there is room.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolcell::controls::enforced;

use super::principal::Principal;

/// A bounded resource.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    /// True if each tenant leaves as much free as it holds.
    is_fair: bool,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    used: usize,
    held: HashMap<Option<String>, usize>,
}

/// The part of a room that one request holds. Freed on drop.
#[derive(Debug)]
pub(crate) struct Share {
    room: Arc<Room>,
    tenant: Option<String>,
    count: usize,
}

impl Room {
    /// Creates the room for the bytes of request bodies.
    pub(crate) fn of_bodies(most: usize) -> Arc<Self> {
        Self::new(most, enforced!(BodyShare))
    }

    /// Creates the room for requests, or for their calls.
    pub(crate) fn of_requests(most: usize) -> Arc<Self> {
        Self::new(most, enforced!(RequestShare))
    }

    fn new(most: usize, is_fair: bool) -> Arc<Self> {
        Arc::new(Self { most, is_fair, table: Mutex::default() })
    }

    /// Returns an empty share, which can grow.
    pub(crate) fn share(self: &Arc<Self>, principal: &Principal) -> Share {
        Share { room: Arc::clone(self), tenant: principal.tenant().map(str::to_owned), count: 0 }
    }

    /// Returns true if the principal's tenant could take one more.
    pub(crate) fn has_room(&self, principal: &Principal, is_shared: bool) -> bool {
        let table = self.table.lock();
        let held =
            table.held.get(&principal.tenant().map(str::to_owned)).copied().unwrap_or_default();
        self.allows(&table, held, 1, is_shared)
    }

    /// Returns true if nothing is free.
    pub(crate) fn is_full(&self) -> bool {
        self.table.lock().used >= self.most
    }

    fn allows(&self, table: &Table, held: usize, more: usize, is_shared: bool) -> bool {
        let Some(free) = self.most.checked_sub(table.used.saturating_add(more)) else {
            return false;
        };
        !is_shared || held == 0 || held + more <= free || !self.is_fair
    }
}

impl Share {
    /// Takes `more`, under the rules of [`grow_to`](Self::grow_to).
    pub(crate) fn grow_by(&mut self, more: usize, is_shared: bool) -> bool {
        self.grow_to(self.count.saturating_add(more), is_shared)
    }

    /// Grows the share to `count`. Returns true if there was room; otherwise the share is
    /// unchanged. `is_shared`: there are several tenants.
    pub(crate) fn grow_to(&mut self, count: usize, is_shared: bool) -> bool {
        let more = count.saturating_sub(self.count);
        if more == 0 {
            return true;
        }
        let mut table = self.room.table.lock();
        let held = table.held.get(&self.tenant).copied().unwrap_or_default();
        if !self.room.allows(&table, held, more, is_shared) {
            return false;
        }
        table.used += more;
        *table.held.entry(self.tenant.clone()).or_default() += more;
        drop(table);
        self.count = count;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut table = self.room.table.lock();
        table.used -= self.count;
        if let Some(held) = table.held.get_mut(&self.tenant) {
            *held -= self.count;
            if *held == 0 {
                table.held.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_leaves_as_much_free_as_it_holds() {
        let room = Room::of_requests(12);
        let [acme, globex] = ["acme", "globex"].map(|tenant| Principal::new(Some(tenant), "a key"));
        let mut alone = room.share(&acme);
        assert!(alone.grow_to(12, false) && !alone.grow_to(13, false), "one tenant has all of it");
        drop(alone);
        let (mut one, mut other) = (room.share(&acme), room.share(&globex));
        assert!(one.grow_to(1, true) && one.grow_to(6, true) && !one.grow_to(7, true));
        assert!(other.grow_to(1, true) && other.grow_to(3, true) && !other.grow_to(4, true));
        let mut again = room.share(&acme);
        assert!(!again.grow_to(1, true), "what a tenant holds counts over its requests");
        drop((one, other, again));
        assert!(
            room.table.lock().held.is_empty() && room.table.lock().used == 0,
            "all is given back"
        );
        let small = Room::of_requests(1);
        assert!(small.share(&acme).grow_to(1, true), "a tenant that holds nothing can begin");
    }
}
