//! State of one call in its cell: a fresh wasmtime store that lives for this call only.
//!
//! [`Cell::store`] builds the store with every limit set, before code of the guest (the WebAssembly
//! code of a tool) runs: fuel (executed instructions), memory, host objects, copied bytes. The host
//! functions (`imports`) work on the [`Cell`] in it. They count their calls, ask `authorize`
//! whether the tool has the right, and use the resources of the engine. At the end, `settle` writes
//! the usage: the fuel, memory and host calls that the call took. Nothing of a cell is reused.
//! About every millisecond, at a tick, `at_tick` checks the limits, updates the usage, and lets the
//! guest continue, yield or end. Parts that most calls do not use, such as the WASI context, are
//! built at their first use.
//! Submodules: `invoke` runs the call, `bounds` limits it, `imports` has the host functions,
//! `exports` and `adapt` the guest's functions, `classify` and `translate` convert its end,
//! `output` captures what it prints.

pub(super) mod bindings;
pub(super) mod bounds;
pub(super) mod call_redactor;
mod classify;
pub(super) mod exports;
pub(super) mod host_span;
pub(super) mod imports;
pub(super) mod invoke;
pub(super) mod outbound_scan;
pub(super) mod output;
pub(super) mod recorder;
pub(super) mod resources;
pub(super) mod translate;

use std::{sync::Arc, sync::atomic::Ordering::Relaxed, time::Instant};

use toolcell_contract::grants::rights::{Decision, Denial, Layer, Request, Rights};
use toolcell_contract::outcome::tool_error::{BlockedOn, LimitHit, LimitKind};
use toolcell_contract::{controls::bound, grants::GrantKind};
use wasmtime::{Engine, Store, StoreContextMut, UpdateDeadline, component::ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::capability::files::Mounts;
use crate::tenant::limit_reached::LimitReached;
use crate::tool::handler::Invocation;
use bounds::{host_memory, limiter::Limiter, run_state::RunState};
use call_redactor::CallRedactor;
use imports::inert::{self, Clock};
use imports::{files::Files, wasi_http::WasiHttpState};
use output::captured::{Captured, Streams};
use output::lines::Lines;
use resources::EngineResources;

/// Ticks after which the guest is interrupted and its clock is read.
const TICKS: u64 = 1;
/// Handles of the component model in one cell; wasmtime's own limit is 100,000.
const HANDLES: usize = 4096;
/// Host objects (streams, pollables, files, requests) in one cell; wasmtime's own limit is
/// 1,000,000. Each may hold a descriptor and a megabyte of the host's memory, which the guest's
/// memory limit does not count.
const HOST_OBJECTS: usize = 256;
/// Bytes that one call across the boundary may copy beyond the result's limit: its own structures
/// and a log line.
pub(super) const COPY_SLACK: usize = 1 << 20;

/// Fuel after which a guest stores its count of fuel and yields: about half a millisecond. Between
/// these points a guest counts in a register, so without this the usage of a loop that is killed
/// by its deadline would show next to no fuel.
const FUEL_INTERVAL: u64 = 1_000_000;

/// The state of one cell.
pub(super) struct Cell {
    pub(super) scope: Scope,
    pub(super) limiter: Limiter,
    pub(super) table: ResourceTable,
    run_state: Arc<RunState>,
    host_calls: u64,
    streams: Option<Box<Streams>>,
    wasi: Option<Box<Wasi>>,
    pub(super) wasi_http: Option<Box<WasiHttpState>>,
    files: Option<Box<Files>>,
    clock: Option<Clock>,
}

/// The call of a cell, its rights, and the resources that they give access to. Cheap to clone.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) invocation: Arc<Invocation>,
    pub(super) resources: Arc<EngineResources>,
    pub(super) mounts: Option<Arc<Mounts>>,
    pub(super) rights: Arc<Rights>,
    /// `None` if neither the tool nor a tool that led to the call was granted a secret.
    pub(super) redactor: Option<Arc<CallRedactor>>,
}

/// The WASI context and its log lines, built at their first use.
struct Wasi {
    context: WasiCtx,
    lines: Lines,
}

impl Cell {
    /// Builds a store with every bound set, before any code of the guest runs in it.
    pub(super) fn store(
        engine: &Engine,
        scope: Scope,
        streams: Option<Box<Streams>>,
        run_state: Arc<RunState>,
    ) -> wasmtime::Result<Store<Self>> {
        let invocation = &scope.invocation;
        let limits = invocation.limits;
        // An earlier attempt may have used some of the call's budget: the cell gets the rest.
        let (spent, host_calls) =
            (invocation.meter.fuel.load(Relaxed), invocation.meter.host_calls.load(Relaxed));
        let mut table = ResourceTable::new();
        table.set_max_capacity(bound!(HostObjects, HOST_OBJECTS));
        let cell = Self {
            scope,
            limiter: Limiter::new(limits.memory),
            table,
            run_state,
            host_calls,
            streams,
            wasi: None,
            wasi_http: None,
            files: None,
            clock: None,
        };
        let mut store = Store::try_new(engine, cell)?;
        store.limiter(|cell| &mut cell.limiter);
        store.set_fuel(bound!(Fuel, limits.fuel.saturating_sub(spent)))?;
        store.fuel_async_yield_interval(Some(FUEL_INTERVAL))?;
        // wasmtime adds the current epoch.
        store.set_epoch_deadline(bound!(Ticks, TICKS).min(u64::MAX >> 1));
        store.epoch_deadline_callback(at_tick);
        let copied =
            usize::try_from(limits.result).unwrap_or(usize::MAX).saturating_add(COPY_SLACK);
        store.set_hostcall_fuel(bound!(CopiedBytes, copied));
        store.set_max_component_handles(bound!(Handles, HANDLES));
        Ok(store)
    }

    /// Counts a call into the host, and writes its module and function to the trace, as for
    /// wasmtime's own host functions. The trace never has the guest's arguments.
    pub(super) fn called(
        &mut self,
        module: &'static str,
        function: &'static str,
    ) -> Result<(), LimitReached> {
        Self::traced(module, function);
        self.awaits(GrantKind::wait_of(module));
        self.count_host_call()
    }

    /// Writes a call into the host to the trace, as wasmtime's own functions do.
    pub(super) fn traced(module: &'static str, function: &'static str) {
        tracing::trace!(module, function, "call");
    }

    /// Counts a call into the host. Over the limit it returns an error; a caller that cannot return
    /// one leaves the end of the cell to the next tick.
    pub(super) fn count_host_call(&mut self) -> Result<(), LimitReached> {
        self.run_state.runs();
        self.host_calls += 1;
        self.host_calls_left()
    }

    /// Sets what the guest is going to wait for, if the host does not have it at hand.
    pub(super) fn awaits(&self, blocked_on: impl Into<Option<BlockedOn>>) {
        self.run_state.awaits(blocked_on.into());
    }

    fn host_calls_left(&self) -> Result<(), LimitReached> {
        let limit = self.scope.invocation.limits.host_calls;
        if self.host_calls <= bound!(HostCalls, limit) {
            return Ok(());
        }
        Err(LimitReached(LimitHit::new(LimitKind::HostCalls, limit, self.host_calls)))
    }

    /// Checks the host memory that is charged to this cell. wasmtime's own objects do not report
    /// their growth, so the check is repeated at each tick.
    fn host_bytes_left(&mut self) -> Result<(), LimitReached> {
        let charged = self.files.as_ref().map_or(0, |files| files.host_memory.charged());
        let bodies = self.wasi_http.as_ref().map_or(0, |state| state.written_bytes());
        let objects = host_memory::table_weight(&mut self.table);
        host_memory::within(charged.saturating_add(bodies).saturating_add(objects))
    }

    fn is_over(&self) -> bool {
        self.run_state.is_cancelled()
            || self.scope.invocation.deadline().is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The clock of the cell; all times that it sees are derived from it.
    pub(super) fn clock(&mut self) -> Clock {
        *self.clock.get_or_insert_with(|| Clock::new(self.scope.resources.deterministic))
    }

    /// The open files of the cell.
    pub(super) fn files(&mut self) -> &mut Files {
        // The clock starts before the first file operation can change a time.
        self.clock();
        let Scope { resources, invocation, .. } = &self.scope;
        self.files.get_or_insert_with(|| {
            Box::new(Files::new(resources.for_files.way(&invocation.tenant)))
        })
    }

    /// Returns the end of what the guest wrote to standard error.
    pub(super) fn stderr_excerpt(&self) -> Option<String> {
        self.wasi.as_ref().and_then(|wasi| wasi.lines.stderr_excerpt())
    }

    /// The captured standard output of a command.
    pub(super) fn captured(&self) -> Option<Captured> {
        self.streams.as_ref().map(|streams| streams.stdout.clone())
    }

    /// Ends unfinished lines and writes the usage, with the fuel of the whole call, earlier
    /// attempts included.
    pub(super) fn settle(&mut self, fuel_used: u64) {
        if let Some(wasi) = &self.wasi {
            // The output of a command without an answer goes to the log.
            if let Some(captured) = self.captured().filter(|captured| !captured.is_answered()) {
                captured.log(&wasi.lines);
            }
            wasi.lines.finish();
        }
        self.note(fuel_used);
    }

    /// Returns true if the cell has no output to finish, and holds no file, request or handle.
    fn holds_only_memory(&self) -> bool {
        self.wasi.is_none()
            && self.wasi_http.is_none()
            && self.files.is_none()
            && self.scope.invocation.files.is_none()
            && self.table.is_empty()
    }

    fn note(&self, fuel_used: u64) {
        self.scope.invocation.meter.note(fuel_used, self.limiter.peak(), self.host_calls);
    }
}

impl Scope {
    /// Decides whether the tool may make this request. A denial is reported as an event. In a dry
    /// run a missing grant is not a denial: the caller then answers with a stand-in.
    pub(super) fn authorize(&self, request: &Request<'_>) -> Result<(), Denial> {
        let decision = self.rights.allows(request);
        let is_noted = self.resources.recorder.as_ref().is_some_and(|recorder| match &decision {
            Decision::Allowed | Decision::Denied(Denial { layer: Layer::Component, .. }) => {
                recorder.request(request)
            }
            Decision::Denied(_) => false,
        });
        let Decision::Denied(denial) = decision else { return Ok(()) };
        self.invocation.denied(&denial);
        if is_noted { Ok(()) } else { Err(denial) }
    }
}

impl WasiView for Cell {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        // Every WASI host function calls this. It cannot return an error; the next tick ends the
        // cell.
        let _ = self.count_host_call();
        let clock = self.clock();
        let wasi = self.wasi.get_or_insert_with(|| {
            let lines = Lines::new(Arc::clone(&self.scope.invocation));
            let context = inert::context(&lines, &self.scope, clock, self.streams.as_deref());
            Box::new(Wasi { context, lines })
        });
        WasiCtxView { ctx: &mut wasi.context, table: &mut self.table }
    }
}

/// Runs once a tick while the guest runs: checks limits, updates the usage, then lets the guest
/// continue, yield or end.
fn at_tick(mut store: StoreContextMut<'_, Cell>) -> wasmtime::Result<UpdateDeadline> {
    let left = store.get_fuel()?;
    let cell = store.data_mut();
    cell.host_calls_left()?;
    cell.host_bytes_left()?;
    cell.note(cell.scope.invocation.limits.fuel.saturating_sub(left));
    let is_long = cell.run_state.tick();
    if cell.is_over() {
        return Ok(UpdateDeadline::Interrupt);
    }
    if !is_long {
        return Ok(UpdateDeadline::Continue(1));
    }
    if cell.holds_only_memory() {
        cell.run_state.mark_settled();
    }
    Ok(UpdateDeadline::Yield(1))
}
