//! Watches for changes of the list of tools that a principal (the authenticated sender: a key or
//! user of a tenant) sees.
//!
//! The handler of requests (`mcp/handler.rs`) creates a [`Changes`] for a session, and for a
//! request that listens to changes. [`Changes::next`] waits until the service has a new version and
//! the principal's list differs from the last one, compared by a digest of the definitions. The
//! handler then sends the notification that the list has changed. A change of other tenants' tools
//! is not reported, so one tenant learns nothing of another's list.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use tokio::sync::watch;

use crate::service::Service;
use crate::tenants::principal::Principal;

/// The changes of one principal's list.
pub(super) struct Changes {
    service: Service,
    principal: Principal,
    versions: watch::Receiver<()>,
    last: Option<u64>,
}

impl Changes {
    /// Starts watching now.
    pub(super) fn new(service: Service, principal: Principal) -> Self {
        let versions = service.versions();
        let last = fingerprint(&service, &principal);
        Self { service, principal, versions, last }
    }

    /// Waits for the next change. Returns false when the service is gone.
    pub(super) async fn next(&mut self) -> bool {
        while self.versions.changed().await.is_ok() {
            let now = fingerprint(&self.service, &self.principal);
            if std::mem::replace(&mut self.last, now) != now {
                return true;
            }
        }
        false
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
