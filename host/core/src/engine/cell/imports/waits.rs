//! Replaces functions of wasmtime's `wasi:io` and `wasi:clocks` by which a guest (the WebAssembly
//! code of a tool) waits.
//!
//! [`link`] links them over wasmtime's own: `poll`, blocking reads and writes of streams, and the
//! monotonic clock with its timers. Four things differ. Each call counts as a call into the host. A
//! timer in the past is over at once. A blocking write takes as many bytes as one call brings
//! (wasmtime's own takes at most 4096); each 4096 of them count as one more call. A call that waits
//! records the object that it waits for (a response, a file, a timer), so that a timeout can name
//! it.
//! Zeroes are written piece by piece, so that the host never holds as many as the guest asks for.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use toolcell_contract::outcome::tool_error::BlockedOn;
use wasmtime::StoreContextMut;
use wasmtime::component::{HasSelf, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::io::poll::{Host as _, HostPollable as _};
use wasmtime_wasi::p2::bindings::io::streams::{self, Host as _, HostInputStream as _};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, Pollable, StreamError, StreamResult, subscribe,
};
use wasmtime_wasi::{clocks::HostMonotonicClock as _, p2::bindings::clocks::monotonic_clock};
use wasmtime_wasi_http::p2::{body::HostIncomingBody, types::HostFutureIncomingResponse};

use crate::engine::cell::{Cell, bindings::Pending};

/// The names of the interfaces in wasmtime's own host.
const POLL: &str = "wasi:io/poll@0.2.12";
const STREAMS: &str = "wasi:io/streams@0.2.12";
/// Bytes of a blocking write that count as one call into the host.
const PIECE: usize = 4096;
/// Bytes of a blocking write after which the guest can be interrupted.
const AT_ONCE: usize = 64 << 10;
/// The bytes of a write of zeroes.
static ZEROES: [u8; AT_ONCE] = [0; AT_ONCE];

/// Links the functions in place of wasmtime's own.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    monotonic_clock::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)?;
    linker.allow_shadowing(true);
    let mut poll = linker.instance(POLL)?;
    poll.func_wrap_async(
        "poll",
        |mut store: StoreContextMut<'_, Cell>, (pollables,): (Vec<Resource<DynPollable>>,)| {
            Box::new(async move {
                let cell = store.data_mut();
                let ready = waiting(cell, "poll")?.poll(pollables).await;
                cell.awaits(None);
                Ok((ready?,))
            })
        },
    )?;
    poll.func_wrap_async(
        "[method]pollable.block",
        |mut store: StoreContextMut<'_, Cell>, (pollable,): (Resource<DynPollable>,)| {
            Box::new(async move {
                let cell = store.data_mut();
                let ended = waiting(cell, "[method]pollable.block")?.block(pollable).await;
                cell.awaits(None);
                ended
            })
        },
    )?;
    let mut streams = linker.instance(STREAMS)?;
    streams.func_wrap_async(
        "[method]input-stream.blocking-read",
        |mut store: StoreContextMut<'_, Cell>, (stream, len): (Resource<DynInputStream>, u64)| {
            Box::new(async move {
                let cell = store.data_mut();
                cell.called("streams", "[method]input-stream.blocking-read")?;
                // Only bodies of responses and files make a reader wait.
                let is_body = cell.table.iter_mut().any(|object| object.is::<HostIncomingBody>());
                cell.awaits(if is_body { BlockedOn::Http } else { BlockedOn::File });
                let read = cell.table.blocking_read(stream, len).await;
                cell.awaits(None);
                Ok((stream_result(&mut cell.table, read)?,))
            })
        },
    )?;
    streams.func_wrap_async(
        "[method]output-stream.blocking-write-and-flush",
        |mut store: StoreContextMut<'_, Cell>,
         (stream, bytes): (Resource<DynOutputStream>, Vec<u8>)| {
            Box::new(async move {
                let cell = store.data_mut();
                cell.called("streams", "[method]output-stream.blocking-write-and-flush")?;
                let (len, mut bytes) = (bytes.len() as u64, Bytes::from(bytes));
                let written = pieces(cell, &stream, len, |size| bytes.split_to(size)).await;
                Ok((stream_result(&mut cell.table, written)?,))
            })
        },
    )?;
    streams.func_wrap_async(
        "[method]output-stream.blocking-write-zeroes-and-flush",
        |mut store: StoreContextMut<'_, Cell>, (stream, len): (Resource<DynOutputStream>, u64)| {
            Box::new(async move {
                let cell = store.data_mut();
                cell.called("streams", "[method]output-stream.blocking-write-zeroes-and-flush")?;
                let zeroes = |size: usize| Bytes::from_static(&ZEROES[..size]);
                let written = pieces(cell, &stream, len, zeroes).await;
                Ok((stream_result(&mut cell.table, written)?,))
            })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Records what the wait that now begins is for, and returns the cell's table.
fn waiting<'a>(
    cell: &'a mut Cell,
    function: &'static str,
) -> wasmtime::Result<&'a mut ResourceTable> {
    cell.called("poll", function)?;
    let blocked_on = blocked_on(&mut cell.table);
    cell.awaits(blocked_on);
    Ok(&mut cell.table)
}

/// Returns the kind of object that a guest waits for. A response comes before a timer, which is
/// often the response's time limit.
fn blocked_on(table: &mut ResourceTable) -> Option<BlockedOn> {
    let mut found = None;
    for object in table.iter_mut() {
        let is_going = object.downcast_ref().is_some_and(Pending::is_pending);
        if is_going || matches!(object.downcast_ref(), Some(HostFutureIncomingResponse::Pending(_)))
        {
            return Some(BlockedOn::Http);
        }
        if object.is::<Timer>() {
            found = Some(BlockedOn::Timer);
        } else if object.is::<HostIncomingBody>() && found.is_none() {
            found = Some(BlockedOn::Http);
        }
    }
    found
}

/// Converts the result of a stream to the guest's type.
fn stream_result<T>(
    table: &mut ResourceTable,
    answer: StreamResult<T>,
) -> wasmtime::Result<Result<T, streams::StreamError>> {
    answer.map_or_else(|error| table.convert_stream_error(error).map(Err), |answer| Ok(Ok(answer)))
}

/// Writes `len` bytes piece by piece; `next` returns each piece by its size.
async fn pieces(
    cell: &mut Cell,
    stream: &Resource<DynOutputStream>,
    mut len: u64,
    mut next: impl FnMut(usize) -> Bytes,
) -> StreamResult<()> {
    loop {
        let size = len.min(AT_ONCE as u64) as usize;
        for _ in 0..size / PIECE {
            cell.count_host_call().map_err(|stop| StreamError::Trap(stop.into()))?;
        }
        // Only files make a writer wait.
        cell.awaits(BlockedOn::File);
        let written = cell.table.get_mut(stream)?.blocking_write_and_flush(next(size)).await;
        cell.awaits(None);
        written?;
        len -= size as u64;
        if len == 0 {
            return Ok(());
        }
        // Without this yield, a stream that never waits would delay the check of the deadline.
        tokio::task::yield_now().await;
    }
}

impl monotonic_clock::Host for Cell {
    fn now(&mut self) -> wasmtime::Result<u64> {
        self.count_host_call()?;
        Ok(self.clock().now())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        self.count_host_call()?;
        Ok(self.clock().resolution())
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let now = self.clock().now();
        self.subscribe_duration(when.saturating_sub(now))
    }

    fn subscribe_duration(&mut self, duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.count_host_call()?;
        let timer = self.table.push(Timer::after(Duration::from_nanos(duration)))?;
        subscribe(&mut self.table, timer)
    }
}

/// The time at which it is over. `None`: never.
struct Timer(Option<Instant>);

impl Timer {
    fn after(duration: Duration) -> Self {
        Self(Instant::now().checked_add(duration))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Timer {
    async fn ready(&mut self) {
        match self.0 {
            Some(at) if at <= Instant::now() => {}
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::{FutureExt as _, future::maybe_done};

    use super::*;
    use crate::engine::cell::bindings::PendingResponse;
    use crate::engine::cell::bounds::host_memory::HostMemory;

    #[test]
    fn pending_request_outranks_timer() {
        let mut table = ResourceTable::new();
        assert_eq!(blocked_on(&mut table), None);
        let timer = table.push(Timer::after(Duration::ZERO)).unwrap();
        let response = maybe_done(Box::pin(std::future::pending()) as PendingResponse);
        let charge = Arc::<HostMemory>::default().charge(0).unwrap();
        let request = table.push(Pending { response, charge }).unwrap();
        assert_eq!(blocked_on(&mut table), Some(BlockedOn::Http));
        table.delete(request).unwrap();
        assert_eq!(blocked_on(&mut table), Some(BlockedOn::Timer));
        table.delete(timer).unwrap();
        assert_eq!(blocked_on(&mut table), None);
    }

    #[test]
    fn past_timer_is_ready_at_once() {
        assert!(Timer::after(Duration::ZERO).ready().now_or_never().is_some());
        assert!(Timer(None).ready().now_or_never().is_none());
    }
}
