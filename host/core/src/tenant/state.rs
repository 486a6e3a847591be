//! One object for each tenant of the process, and the values that resources keep for it.
//!
//! A call, a request or a permit holds an `Arc` of its tenant's [`TenantState`], which
//! [`TenantState::of`] finds by name, or creates. The object is dropped with its last holder, so
//! clients that name many tenants cannot fill the memory. A resource that tenants share, such as a
//! queue, has a [`PerTenant`]: it finds the resource's own value of a tenant, a [`TenantPart`], in
//! the tenant's object. A part holds its tenant, and is dropped with its own last holder. A
//! resource that needs a part for longer keeps it in a list.
//!
//! Invariants: at any time, a name has at most one object, and an object at most one part of each
//! resource, except for those that are being dropped. Locks are taken in this order: those of a
//! resource, the parts of a tenant, the table of names.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

static TENANTS: LazyLock<Mutex<HashMap<Arc<str>, Weak<TenantState>>>> =
    LazyLock::new(Mutex::default);
static NO_TENANT: LazyLock<Arc<TenantState>> = LazyLock::new(Arc::default);

/// A tenant, or all calls without one.
///
/// ```
/// use std::sync::Arc;
/// use toolcell::tenant::TenantState;
///
/// let acme = TenantState::of(Some("acme"));
/// assert!(Arc::ptr_eq(&acme, &TenantState::of(Some("acme"))));
/// assert_eq!((acme.name(), TenantState::of(None).name()), (Some("acme"), None));
/// ```
#[derive(Default)]
pub struct TenantState {
    name: Option<Arc<str>>,
    /// By the number of the resource.
    parts: Mutex<HashMap<u64, Weak<dyn Any + Send + Sync>>>,
}

impl TenantState {
    /// Returns the tenant of this name. `None`: calls without a tenant, which have one object.
    #[must_use]
    pub fn of(name: Option<&str>) -> Arc<Self> {
        let Some(name) = name else { return Arc::clone(&NO_TENANT) };
        let mut tenants = TENANTS.lock();
        if let Some(known) = tenants.get(name).and_then(Weak::upgrade) {
            return known;
        }
        let name: Arc<str> = Arc::from(name);
        let made = Arc::new(Self { name: Some(Arc::clone(&name)), parts: Mutex::default() });
        tenants.insert(name, Arc::downgrade(&made));
        made
    }

    /// Returns the tenant's name. `None`: calls without a tenant.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl Drop for TenantState {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        let mut tenants = TENANTS.lock();
        // Another object may have this name by now.
        if tenants.get(name).is_some_and(|known| known.strong_count() == 0) {
            tenants.remove(name);
        }
    }
}

impl fmt::Debug for TenantState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TenantState").field(&self.name()).finish()
    }
}

/// A resource's values of type `T`, one for each tenant.
///
/// # Defaults
/// No tenant has one.
///
/// ```
/// use toolcell::tenant::{PerTenant, TenantState};
///
/// let (names, acme) = (PerTenant::default(), TenantState::of(Some("acme")));
/// let part = names.get(&acme, || "Acme");
/// assert_eq!(**names.get(&acme, || "another"), "Acme");
/// drop(part);
/// assert!(names.find(&acme).is_none());
/// ```
pub struct PerTenant<T> {
    resource: u64,
    values: PhantomData<fn() -> T>,
}

/// The value of one tenant in one resource.
pub struct TenantPart<T> {
    tenant: Arc<TenantState>,
    resource: u64,
    value: T,
}

impl<T: Send + Sync + 'static> PerTenant<T> {
    /// Returns the tenant's value, if it has one.
    #[must_use]
    pub fn find(&self, tenant: &TenantState) -> Option<Arc<TenantPart<T>>> {
        let part = tenant.parts.lock().get(&self.resource).and_then(Weak::upgrade);
        part?.downcast().ok()
    }

    /// Returns the tenant's value. It is made if there is none.
    pub fn get(&self, tenant: &Arc<TenantState>, make: impl FnOnce() -> T) -> Arc<TenantPart<T>> {
        if let Some(known) = self.find(tenant) {
            return known;
        }
        let (tenant, resource) = (Arc::clone(tenant), self.resource);
        let made = Arc::new(TenantPart { tenant, resource, value: make() });
        let mut parts = made.tenant.parts.lock();
        let known = parts.get(&resource).and_then(Weak::upgrade);
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return known;
        }
        let part = Arc::downgrade(&made);
        parts.insert(resource, part);
        drop(parts);
        made
    }
}

impl<T> Default for PerTenant<T> {
    fn default() -> Self {
        Self { resource: next_resource(), values: PhantomData }
    }
}

impl<T> fmt::Debug for PerTenant<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PerTenant").field(&self.resource).finish()
    }
}

impl<T> TenantPart<T> {
    /// Returns the tenant.
    #[must_use]
    pub fn tenant(&self) -> &Arc<TenantState> {
        &self.tenant
    }
}

impl<T> Deref for TenantPart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A value of calls without a tenant that no other resource shares.
impl<T: Default> Default for TenantPart<T> {
    fn default() -> Self {
        let (tenant, resource) = (TenantState::of(None), next_resource());
        Self { tenant, resource, value: T::default() }
    }
}

impl<T> Drop for TenantPart<T> {
    fn drop(&mut self) {
        let mut parts = self.tenant.parts.lock();
        // The tenant may have another part of the resource by now.
        if parts.get(&self.resource).is_some_and(|part| part.strong_count() == 0) {
            parts.remove(&self.resource);
        }
    }
}

impl<T> fmt::Debug for TenantPart<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TenantPart").field(&self.tenant).finish()
    }
}

fn next_resource() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_lives_as_long_as_a_part_of_it() {
        let (name, counts) = (Some("a tenant of this test"), PerTenant::default());
        let part = counts.get(&TenantState::of(name), || 7);
        assert_eq!(**counts.find(&TenantState::of(name)).unwrap(), 7);
        assert!(PerTenant::<i32>::default().find(&TenantState::of(name)).is_none());
        drop(part);
        assert!(!TENANTS.lock().contains_key(name.unwrap()));
        assert!(counts.find(&TenantState::of(name)).is_none());
    }

    /// Threads find, hold and drop one tenant's part at the same time.
    #[test]
    fn holders_at_one_time_share_one_part() {
        let counts = PerTenant::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let tenant = TenantState::of(Some("another tenant of this test"));
                        let part = counts.get(&tenant, || ());
                        assert!(Arc::ptr_eq(&part, &counts.get(&tenant, || ())));
                        assert!(Arc::ptr_eq(&tenant, &TenantState::of(tenant.name())));
                    }
                });
            }
        });
        assert!(!TENANTS.lock().contains_key("another tenant of this test"));
    }
}
