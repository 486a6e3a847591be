//! Links compiled code with the functions of the host, so that cells can run it.
//!
//! A load calls `link_new` with code that was compiled now, or `link_cached` for code in the
//! cache. The result is a [`Ready`]: an instance that wasmtime has prepared, with the indices
//! of its exports. Each call makes its cell (a fresh store) from it. A cached entry that cannot be
//! used is a warning, and is compiled again.
//! Code is linked for the pool of memory slots. A component that is larger than a slot, or an
//! engine without a pool, gets memory on demand. A call that a tool makes of another tool runs on
//! code that `link_unpooled` links on demand: tools that wait for each other could otherwise take
//! all slots and wait for ever.

use std::sync::Arc;
use std::time::Duration;

use toolcell_contract::definition::Definition;
use toolcell_contract::error::Error;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::{Compiler, on_a_thread};
use super::{cache::Entry, cache::entries::Artifact, config::Tier, config::allocator::Allocator};
use crate::engine::cell::bounds::ticker::Ticker;
use crate::engine::cell::exports::Exports;
use crate::engine::cell::invoke::{LinkOptions, Ready};
use crate::engine::cell::resources::EngineResources;

/// Linked code and its tools.
pub(super) struct LinkedCode<C = Ready> {
    pub(super) code: Arc<C>,
    /// Empty if the code was cached when there was no free cell for `describe`.
    pub(super) definitions: Vec<Definition>,
    pub(super) compile_time: Option<Duration>,
}

/// The allocators of an engine, and the parts that all linked code shares.
pub(in crate::engine) struct CodeLinker {
    /// `None` under strict isolation, and where the machine does not have the address space for a
    /// pool.
    pub(in crate::engine) pool: Option<Allocator>,
    pub(in crate::engine) on_demand: Allocator,
    pub(in crate::engine) ticker: Arc<Ticker>,
    pub(in crate::engine) resources: Arc<EngineResources>,
}

impl Compiler {
    /// Returns the cached code of this tier, if there is some that works. Code that does not is no
    /// error: it is compiled again and replaced.
    pub(super) fn link_cached(
        &self,
        artifact: &Artifact,
        tier: Tier,
        wiring: &LinkOptions,
    ) -> Option<LinkedCode> {
        let Entry { code, tools, reading: _reading } = artifact.get(tier)?;
        // SAFETY: the content was checked against a MAC with a key that only this user can read.
        #[expect(
            unsafe_code,
            reason = "artifacts are made by this engine and never leave its keyed cache"
        )]
        let make = |engine: &Engine| unsafe { Component::deserialize_file(engine, &code) };
        let linked = self.linker.link(wiring, make).and_then(|code| {
            let definitions: Vec<Definition> = serde_json::from_slice(&tools)
                .map_err(|error| Error::cache("unreadable definitions").with_source(error))?;
            Ok(LinkedCode { code, definitions, compile_time: None })
        });
        let warn = |error: &Error| {
            tracing::warn!(%error, "a component in the cache could not be used and is compiled again");
        };
        linked.inspect_err(warn).ok()
    }
}

impl CodeLinker {
    /// Links code that was compiled now.
    pub(super) fn link_new(&self, code: &[u8], wiring: &LinkOptions) -> Result<Arc<Ready>, Error> {
        // SAFETY: `code` was compiled a moment ago, here or by this program's own worker.
        #[expect(
            unsafe_code,
            reason = "artifacts are made by this engine and never leave its keyed cache"
        )]
        let make = |engine: &Engine| unsafe { Component::deserialize(engine, code) };
        self.link(wiring, make)
    }

    /// Links code for the pool. A component that is larger than a slot, or an engine without a
    /// pool, gets memory on demand.
    fn link(
        &self,
        wiring: &LinkOptions,
        make: impl Fn(&Engine) -> wasmtime::Result<Component>,
    ) -> Result<Arc<Ready>, Error> {
        let malformed = |error: wasmtime::Error| Error::malformed(format!("{error:#}"));
        let on = |allocator| self.ready_on(allocator, wiring, &make, malformed);
        if let Some(pool) = &self.pool {
            match on(pool) {
                Ok(ready) => return Ok(ready),
                Err(error) => {
                    tracing::info!(%error, "the component cannot use the pool: it gets memory on demand")
                }
            }
        }
        on(&self.on_demand)
    }

    /// Returns true if the cells of this code take a slot of the pool.
    pub(super) fn is_pooled(&self, ready: &Ready) -> bool {
        !Engine::same(&ready.engine, &self.on_demand.engine)
    }

    /// Returns the same code, linked for cells that take no slot of the pool, for calls that tools
    /// make of other tools. It is linked once, at the first use, because that copies all of it.
    ///
    /// A tool that waits for another tool keeps its slot of the pool. If the other tool needed a
    /// slot, too, waiting tools could take all slots and wait for ever. So the other tool gets
    /// memory on demand: at most as much as the calling tool has left.
    ///
    /// # Cancel safety
    /// May be dropped: the linking goes on, and its result is kept.
    pub(in crate::engine) async fn link_unpooled(
        self: &Arc<Self>,
        ready: Arc<Ready>,
    ) -> Result<Arc<Ready>, Error> {
        if !self.is_pooled(&ready) {
            return Ok(ready);
        }
        let mut apart = Arc::clone(&ready.apart).lock_owned().await;
        if let Some(apart) = &*apart {
            return Ok(Arc::clone(apart));
        }
        let linker = Arc::clone(self);
        on_a_thread("toolcell-link", move || {
            let failed = |error: wasmtime::Error| Error::engine(format!("{error:#}"));
            let code = ready.pre.component().serialize().map_err(failed)?;
            // SAFETY: it is the code of a component that this process runs.
            #[expect(unsafe_code, reason = "the artifact never left this process")]
            let make = |engine: &Engine| unsafe { Component::deserialize(engine, &code) };
            let made = linker.ready_on(&linker.on_demand, &ready.wiring, make, failed)?;
            Ok(Arc::clone(apart.insert(made)))
        })
        .await
    }

    /// Links code for the cells of this allocator. `failed` converts an error of wasmtime. All
    /// imports exist, so anything missing now is a fault of the component.
    fn ready_on(
        &self,
        allocator: &Allocator,
        wiring: &LinkOptions,
        make: impl FnOnce(&Engine) -> wasmtime::Result<Component>,
        failed: fn(wasmtime::Error) -> Error,
    ) -> Result<Arc<Ready>, Error> {
        let component = make(&allocator.engine).map_err(failed)?;
        let pre = allocator.linker()?.instantiate_pre(&component).map_err(failed)?;
        let engine = allocator.engine.clone();
        let exports = Exports::find(&engine, &pre, &wiring.kind)?;
        Ok(Arc::new(Ready {
            engine,
            pre,
            exports,
            ticker: Arc::clone(&self.ticker),
            resources: Arc::clone(&self.resources),
            wiring: wiring.clone(),
            apart: Default::default(),
        }))
    }
}
