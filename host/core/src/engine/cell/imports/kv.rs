//! Implements the import `kv`, by which a guest uses the key-value data of its component.
//!
//! Each function (get, set, delete, compare-and-swap, list) checks the right of the call to the
//! key, and then runs the operation of the [`KeyStore`], which the embedder (the program that uses
//! this library) supplies, on a thread of the tenant's share that may block. The [`Namespace`] is
//! that of the call's tenant and the component, so a guest (the WebAssembly code of a tool) cannot
//! name another one. An error becomes a case of the guest's `fault`; its text never names a path of
//! the host.
//! A value that holds a secret which only a calling tool may read is not stored: it would outlive
//! the call. An operation that was started goes on to its end even if the call ends.
//! Not here: the store and its quota (`capability/kv`).

use std::time::Duration;

use toolcell_contract::grants::Access;
use toolcell_contract::grants::rights::{Denial, Request};
use tracing::Instrument as _;
use wasmtime::component::{HasSelf, Linker};

use super::secrets::denial_text;
use crate::capability::kv::{KeyStore, Namespace, StoreError};
use crate::engine::cell::{Cell, bindings::toolcell::tool::kv, host_span::host_span};
use crate::engine::cell::{bounds::blocking_pool::Unserved, call_redactor::CallRedactor};

type Answer<T> = wasmtime::Result<Result<T, kv::Fault>>;

/// The text for a tool whose tenant's whole share of threads waits for a store that does not
/// answer.
const BLOCKED: &str = "blocked: earlier requests to the store have not ended; try again later";

/// The end of an operation. `None`: it would have stored a secret that only a calling tool may
/// read.
type Done<T> = Option<Result<T, StoreError>>;

/// Links the interface.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    kv::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)
}

impl kv::Host for Cell {
    async fn get(&mut self, key: String) -> Answer<Option<kv::Entry>> {
        let request = Request::Key { access: Access::Read, key: key.clone().into() };
        let found =
            self.in_store("get", &request, move |store, own| Some(store.get(own, &key))).await?;
        Ok(found
            .map(|entry| entry.map(|entry| kv::Entry { data: entry.data, version: entry.version })))
    }

    async fn set(&mut self, key: String, data: Vec<u8>, ttl_ms: Option<u64>) -> Answer<u64> {
        let request = Request::Key { access: Access::Write, key: key.clone().into() };
        let ttl = ttl_ms.map(Duration::from_millis);
        let redactor = self.scope.redactor.clone();
        let set = move |store: &dyn KeyStore, own: &Namespace| {
            let is_foreign = is_foreign(redactor.as_deref(), &key, &data);
            (!is_foreign).then(|| store.set(own, &key, &data, ttl))
        };
        self.in_store("set", &request, set).await
    }

    async fn delete(&mut self, key: String) -> Answer<bool> {
        let request = Request::Key { access: Access::Write, key: key.clone().into() };
        self.in_store("delete", &request, move |store, own| Some(store.delete(own, &key))).await
    }

    async fn compare_and_swap(
        &mut self,
        key: String,
        expected: Option<u64>,
        data: Vec<u8>,
        ttl_ms: Option<u64>,
    ) -> Answer<Option<u64>> {
        let request = Request::Key { access: Access::Write, key: key.clone().into() };
        let ttl = ttl_ms.map(Duration::from_millis);
        let redactor = self.scope.redactor.clone();
        let swap = move |store: &dyn KeyStore, own: &Namespace| {
            let is_foreign = is_foreign(redactor.as_deref(), &key, &data);
            (!is_foreign).then(|| store.compare_and_swap(own, &key, expected, &data, ttl))
        };
        self.in_store("compare-and-swap", &request, swap).await
    }

    async fn list(
        &mut self,
        prefix: String,
        cursor: Option<String>,
        most: u32,
    ) -> Answer<kv::Page> {
        let request = Request::Keys { prefix: prefix.clone().into() };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let list = move |store: &dyn KeyStore, own: &Namespace| {
            Some(store.list(own, &prefix, cursor.as_deref(), most))
        };
        let page = self.in_store("list", &request, list).await?;
        Ok(page.map(|page| kv::Page { keys: page.keys, cursor: page.cursor }))
    }
}

impl Cell {
    /// Uses the store, if the tool may, on a thread of its tenant's share that may block. An
    /// operation that was started goes on to its end even if the call ends.
    async fn in_store<T: Send + 'static>(
        &mut self,
        function: &'static str,
        request: &Request<'_>,
        work: impl FnOnce(&dyn KeyStore, &Namespace) -> Done<T> + Send + 'static,
    ) -> Answer<T> {
        self.called("kv", function)?;
        self.run_state.waits();
        let span = host_span(&self.scope.invocation, "kv", function);
        let denied = |denial: &Denial| {
            span.record("error", "denied");
            Ok(Err(kv::Fault::Denied(denial_text(denial))))
        };
        if let Err(denial) = self.scope.authorize(request) {
            return denied(&denial);
        }
        let Some(store) = self.scope.resources.keys.clone() else {
            return Ok(Err(kv::Fault::Unavailable("this host has no key-value store".into())));
        };
        let tenant = &self.scope.invocation.tenant;
        let own = Namespace::new(tenant.name(), self.scope.rights.store());
        let way = self.scope.resources.for_keys.way(tenant);
        let done = match way.run(move || work(&*store, &own)).instrument(span.clone()).await {
            Ok(done) => done,
            Err(Unserved::Blocked) => return Ok(Err(kv::Fault::Unavailable(BLOCKED.into()))),
            Err(Unserved::Failed(error)) => return Err(error),
        };
        let Some(done) = done else {
            let denial = Denial::by_secrets(request);
            self.scope.invocation.denied(&denial);
            return denied(&denial);
        };
        Ok(done.map_err(|error| {
            let (kind, fault) = fault(error);
            span.record("error", kind);
            fault
        }))
    }
}

/// Returns true if a write has the value of a secret that only a tool which led to this call may
/// read. A stored value outlives the call, and later calls do not know that secret. The search of
/// compressed data takes long, so a thread that may block does it.
fn is_foreign(redactor: Option<&CallRedactor>, key: &str, data: &[u8]) -> bool {
    redactor
        .is_some_and(|redactor| redactor.is_foreign(key.as_bytes()) || redactor.is_foreign(data))
}

/// Returns the kind of an error, without its text, and the error for the tool.
fn fault(error: StoreError) -> (&'static str, kv::Fault) {
    match error {
        StoreError::InvalidKey => ("invalid_key", kv::Fault::InvalidKey(error.to_string())),
        StoreError::OverQuota(problem) => ("over_quota", kv::Fault::OverQuota(problem)),
        // The texts may name paths of the host, which are not for the tool.
        StoreError::Busy(problem) => {
            unavailable(&problem, "other processes use it: try again later")
        }
        StoreError::Full(problem) => {
            unavailable(&problem, "its disk is full; the keys stored before are still there")
        }
        StoreError::Unavailable(problem) => unavailable(&problem, "see the host's log"),
    }
}

fn unavailable(problem: &str, message: &str) -> (&'static str, kv::Fault) {
    tracing::error!(problem, "the key-value store failed");
    ("unavailable", kv::Fault::Unavailable(message.into()))
}
