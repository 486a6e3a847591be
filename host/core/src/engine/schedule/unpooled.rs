//! Links a component for calls that tools make of other tools, outside of the pool.
//!
//! A tool that waits for another tool keeps its slot of the pool. If the other tool needed a slot,
//! too, waiting tools could take all slots and wait for ever. So the other tool gets memory on
//! demand: at most as much as the calling tool has left.

use std::sync::Arc;

use wasmtime::component::Component;

use crate::contract::error::Error;
use crate::engine::Inner;
use crate::engine::cell::exports::Exports;
use crate::engine::cell::invoke::Ready;
use crate::engine::loaded::on_a_thread;

/// Returns the same code, linked for cells that take no slot. It is linked at the first use.
///
/// # Cancel safety
/// May be dropped: the linking goes on, and its result is kept.
pub(in crate::engine) async fn link_unpooled(
    inner: &Arc<Inner>,
    ready: Arc<Ready>,
) -> Result<Arc<Ready>, Error> {
    if wasmtime::Engine::same(&ready.engine, &inner.on_demand.engine) {
        return Ok(ready);
    }
    if let Some(apart) = ready.apart.get() {
        return Ok(Arc::clone(apart));
    }
    let inner = Arc::clone(inner);
    on_a_thread("toolcell-link", move || {
        let made = link(&inner, &ready)?;
        Ok(Arc::clone(ready.apart.get_or_init(|| made)))
    })
    .await
}

fn link(inner: &Inner, ready: &Ready) -> Result<Arc<Ready>, Error> {
    let failed = |error: wasmtime::Error| Error::engine(format!("{error:#}"));
    let code = ready.pre.component().serialize().map_err(failed)?;
    let engine = inner.on_demand.engine.clone();
    // SAFETY: it is the code of a component that this process runs.
    #[expect(unsafe_code, reason = "the artifact never left this process")]
    let component = unsafe { Component::deserialize(&engine, &code) }.map_err(failed)?;
    let pre = inner.on_demand.linker()?.instantiate_pre(&component).map_err(failed)?;
    let exports = Exports::find(&engine, &pre, &ready.wiring.kind)?;
    let (ticker, world, wiring) =
        (Arc::clone(&ready.ticker), Arc::clone(&ready.resources), ready.wiring.clone());
    Ok(Arc::new(Ready {
        engine,
        pre,
        exports,
        ticker,
        resources: world,
        wiring,
        apart: Default::default(),
    }))
}
