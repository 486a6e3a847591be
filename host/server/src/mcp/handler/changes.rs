//! Watches for changes of the list of tools that a principal (the authenticated sender: a key or
//! user of a tenant) sees.
//!
//! The handler of requests (`mcp/handler.rs`) calls [`watch`] for a session, and for a request that
//! listens to changes. It calls a closure each time that the service has a new version and the
//! principal's list differs from the last one, compared by a digest of the definitions. The closure
//! sends the notification that the list has changed. A change of other tenants' tools is not
//! reported, so one tenant learns nothing of another's list.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::service::Service;
use crate::tenants::principal::Principal;

/// Watches from now on: calls `notify` after each change of the principal's list, until it returns
/// false or the service is gone.
pub(super) fn watch(
    service: Service,
    principal: Principal,
    mut notify: impl FnMut() -> bool,
) -> impl Future<Output = ()> {
    let mut versions = service.versions();
    let mut last = fingerprint(&service, &principal);
    async move {
        while versions.changed().await.is_ok() {
            let now = fingerprint(&service, &principal);
            if std::mem::replace(&mut last, now) != now && !notify() {
                return;
            }
        }
    }
}

/// Returns a digest of the list: equal lists have equal digests.
fn fingerprint(service: &Service, principal: &Principal) -> Option<u64> {
    let view = service.view(principal).ok()?;
    let mut hasher = DefaultHasher::new();
    for tool in view.tools.values() {
        tool.definition().canonical().hash(&mut hasher);
    }
    Some(hasher.finish())
}
