//! Watches for changes of the list of tools that a principal sees.
//!
//! Invariants: a change is reported only to principals whose list it changes. One tenant learns
//! nothing of another's list.

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
