//! Turns the bytes of a component into code that can be called: scans, compiles, links, caches,
//! optimises.
//!
//! [`Compiler`] is the part of an engine that does this; `load` is its entrance. `scan` checks the
//! bytes before the compiler reads them. `code` takes the code from the `cache`, or compiles it, in
//! a `worker` process if there is one, and `link` connects it with the host functions. `describe`
//! asks the component for its tools. `tier` compiles it a second time, for speed, in the
//! background. `on_demand` frees the code of components that are not called. `inspection` reports
//! on a component without loading it.
//! Loads of one component wait for each other, and at most one load for each core runs at a time.
//! Not here: calls (`engine/cell`) and the threads that they run on (`engine/schedule`).

pub(super) mod cache;
mod code;
pub(super) mod config;
mod describe;
pub(super) mod inspection;
pub(super) mod link;
pub(super) mod load;
pub(super) mod on_demand;
mod preview1;
mod scan;
pub(super) mod tier;
pub(super) mod worker;

use std::fmt;
use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};
use toolcell_contract::error::Error;

use super::schedule::placement::Scheduler;
use crate::tenant::compile_quota::CompileQuota;
use cache::Cache;
use link::CodeLinker;
use on_demand::Resident;
use tier::{Background, Optimise};
use worker::Worker;

/// The state of an engine: compiles, links and caches its components, and places their calls.
pub(super) struct Compiler {
    pub(super) linker: Arc<CodeLinker>,
    /// Runs `describe` and the calls.
    pub(super) scheduler: Scheduler,
    pub(super) cache: Option<Arc<Cache>>,
    pub(super) worker: Option<Worker>,
    pub(super) on_compile: OnCompile,
    pub(super) optimise: Optimise,
    pub(super) resident: Resident,
    pub(super) background: Background,
    pub(super) quota: CompileQuota,
    /// Permits to load a component: one for each core. Further loads wait.
    pub(super) loads: Arc<Semaphore>,
    /// As many permits to link code for a call, which does not wait for compilations of others.
    pub(super) links: Arc<Semaphore>,
}

/// The callback of `EngineBuilder::on_compile`, if there is one. A load calls it on its own thread
/// before it compiles, but not for code from the cache, nor for a compilation in the background.
#[derive(Clone, Default)]
pub(super) struct OnCompile(Option<Arc<dyn Fn(u64) + Send + Sync>>);

impl OnCompile {
    pub(super) fn new(callback: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(callback)))
    }

    /// Calls it with the size of the component.
    fn call(&self, component: &[u8]) {
        if let Some(callback) = &self.0 {
            callback(component.len() as u64);
        }
    }
}

impl fmt::Debug for OnCompile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnCompile").field(&self.0.is_some()).finish()
    }
}

/// Runs work that may take long on a thread of its own. When this future is dropped, the work goes
/// on.
pub(super) async fn on_a_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (done, ended) = oneshot::channel();
    // There is no receiver if the load was dropped.
    let thread =
        std::thread::Builder::new().name(name.into()).spawn(move || drop(done.send(work())));
    thread.map_err(|error| {
        Error::engine("no thread can be started to load the component").with_source(error)
    })?;
    ended.await.unwrap_or_else(|_| Err(Error::malformed("the engine panicked on it")))
}
