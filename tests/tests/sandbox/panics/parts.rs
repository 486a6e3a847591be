//! Panics in every part that an embedder provides and a call runs.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::num::NonZero;
use std::sync::{Arc, Mutex};

use toolcell::http::{Egress, ResolveFuture, Resolver};
use toolcell::runtime::Placement;
use toolcell::secrets::{KnownFuture, Secret, SecretFuture, SecretSource, StoredSecrets};
use toolcell_tests::PLACEMENTS;

use super::{Host, ON_PURPOSE, Visitor, lock, silence_intended_panics};
use crate::watched_store::WatchedStore;

/// The functions that an embedder implements, by name.
pub(crate) const PARTS: [&str; 8] =
    ["secret", "known", "get", "set", "delete", "compare_and_swap", "list", "resolve"];

/// Parts that panic in a chosen function, a chosen number of times.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    told: Arc<Mutex<Option<(&'static str, u32)>>>,
    entered: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Parts {
    pub(crate) fn host(&self, placement: Placement, quarantine: Option<NonZero<u32>>) -> Host {
        let egress = Egress::new().with_resolver(self.clone());
        let parts = self.clone();
        let keys = WatchedStore::new(move |part, _| parts.enter(part));
        Host::new(placement, quarantine, self.clone(), keys, egress)
    }

    pub(crate) fn panic_in(&self, part: &'static str, times: u32) {
        *lock(&self.told) = Some((part, times));
        lock(&self.entered).clear();
    }

    pub(crate) fn calm_down(&self) {
        *lock(&self.told) = None;
    }

    pub(crate) fn was_entered(&self, part: &str) -> bool {
        lock(&self.entered).contains(part)
    }

    fn enter(&self, part: &'static str) {
        lock(&self.entered).insert(part);
        let mut told = lock(&self.told);
        let found = told.as_mut().filter(|(panics, left)| *panics == part && *left > 0);
        let is_told = found.map(|(_, left)| *left -= 1).is_some();
        drop(told);
        assert!(!is_told, "{ON_PURPOSE}");
    }

    fn secrets() -> StoredSecrets {
        StoredSecrets::default()
            .with("token", Secret::new("canary-of-the-visitor").expect("a secret"))
    }
}

impl SecretSource for Parts {
    fn secret<'a>(&'a self, tenant: Option<&'a str>, name: &'a str) -> SecretFuture<'a> {
        Box::pin(async move {
            self.enter("secret");
            Self::secrets().secret(tenant, name).await
        })
    }

    fn known<'a>(&'a self, tenant: Option<&'a str>) -> KnownFuture<'a> {
        self.enter("known");
        Box::pin(async move { Self::secrets().known(tenant).await })
    }
}

impl Resolver for Parts {
    fn resolve(&self, _host: &str, _port: u16) -> ResolveFuture {
        self.enter("resolve");
        Box::pin(std::future::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()])))
    }
}

#[test]
fn panic_in_embedder_part_ends_only_its_call() {
    silence_intended_panics();
    for placement in PLACEMENTS {
        let parts = Parts::default();
        let visitor = Visitor::at(&parts.host(placement, None));
        for (panics, part) in (1..).zip(PARTS) {
            parts.panic_in(part, 1);
            assert_eq!(visitor.stays(), "handler_raised/host_panic", "{placement:?}, {part}");
            let (end, result) = (visitor.stays(), visitor.guest.result());
            assert_eq!(end, "ok", "{placement:?}, after {part}: {result:?}");
            assert_eq!(visitor.guest.statistics().panics, panics, "{placement:?}, {part}");
        }
    }
}

/// The panic's message is for the host's log, because a tool could have chosen it.
#[test]
fn host_panic_message_is_not_revealed() {
    silence_intended_panics();
    let parts = Parts::default();
    let visitor = Visitor::at(&parts.host(Placement::Cells, None));
    parts.panic_in("get", 1);
    visitor.stays();
    let told = serde_json::to_string(&*lock(&visitor.guest.events)).expect("JSON");
    assert!(told.contains("the host failed") && !told.contains(ON_PURPOSE), "{told}");
}
