//! The state of one cell: what host functions see.
//!
//! Made for one call and dropped with its store. What most calls never touch (standard output, the
//! WASI context) is made when it is first touched.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, StoreContextMut, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::command::{Captured, Streams};
use super::imports::files::Files;
use super::imports::inert::{self, Clock};
use super::imports::lines::{self, LINE_END, Lines};
use super::imports::wasi_http::WasiHttpState;
use super::limiter::Limiter;
use super::pulse::{Pulse, Served};
use super::recorder::Recorder;
use super::retained;
use super::screening::Screening;
use super::veil::Veil;
use super::world::World;
use crate::defence::{Defence, stands};
use crate::directory::Mounts;
use crate::event::LogSource;
use crate::handler::Invocation;
use crate::rights::{Decision, Denial, Layer, Request, Rights};
use crate::tool_error::{Awaited, LimitHit, LimitKind};

/// Handles of the component model in one cell; the engine's own limit is 100,000.
const HANDLES: usize = 4096;
/// Host objects (streams, pollables, files, requests) in one cell; the engine's own limit is
/// 1,000,000. Each may hold a descriptor, and a megabyte of the host's memory, that no limit of the
/// guest's counts.
const HOST_OBJECTS: usize = 256;
/// Bytes that one call across the boundary may copy beyond the result's limit: its own structures
/// and a log line.
pub(super) const COPY_SLACK: usize = 1 << 20;

/// Fuel after which a guest writes down what it used, and yields: about half a millisecond. Between
/// two calls a guest counts in a register, so without this the receipt of a loop that is killed by
/// its deadline would show next to nothing.
const FUEL_INTERVAL: u64 = 1_000_000;

/// A host function refuses to go on: the call ends with this limit.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a limit of the cell")]
pub(super) struct Stop(pub(super) LimitHit);

/// The state of one cell.
pub(super) struct Cell {
    pub(super) invocation: Arc<Invocation>,
    pub(super) limiter: Limiter,
    pub(super) table: ResourceTable,
    pulse: Arc<Pulse>,
    deadline: Option<Instant>,
    host_calls: u64,
    reach: Reach,
    wasi: Option<Box<Wasi>>,
    pub(super) wasi_http: Option<Box<WasiHttpState>>,
    files: Option<Box<Files>>,
    clock: Option<Clock>,
}

/// What a cell may reach, and what that leads to.
pub(super) struct Reach {
    pub(super) world: Arc<World>,
    pub(super) mounts: Option<Arc<Mounts>>,
    pub(super) rights: Option<Arc<Rights>>,
    pub(super) veil: Option<Arc<Veil>>,
    /// What a command sees of its call.
    pub(super) streams: Option<Box<Streams>>,
}

/// The part that a call makes when it first needs it.
struct Wasi {
    context: WasiCtx,
    lines: Lines,
}

impl Cell {
    /// A store with every bound set, before anything of the guest runs in it.
    pub(super) fn store(
        engine: &Engine,
        reach: Reach,
        invocation: Arc<Invocation>,
        pulse: Arc<Pulse>,
    ) -> wasmtime::Result<Store<Self>> {
        let limits = invocation.limits;
        let deadline = invocation.deadline();
        // An attempt before this one may have used some of the call's budget: the cell gets what is
        // left.
        let (spent, host_calls) =
            (invocation.meter.fuel.load(Relaxed), invocation.meter.host_calls.load(Relaxed));
        let mut table = ResourceTable::new();
        if stands(Defence::HostObjects) {
            table.set_max_capacity(HOST_OBJECTS);
        }
        let cell = Self {
            invocation,
            limiter: Limiter::new(limits.memory),
            table,
            pulse,
            deadline,
            host_calls,
            reach,
            wasi: None,
            wasi_http: None,
            files: None,
            clock: None,
        };
        let mut store = Store::try_new(engine, cell)?;
        store.limiter(|cell| &mut cell.limiter);
        store.set_fuel(if stands(Defence::Fuel) {
            limits.fuel.saturating_sub(spent)
        } else {
            u64::MAX
        })?;
        store.fuel_async_yield_interval(Some(FUEL_INTERVAL))?;
        store.set_epoch_deadline(if stands(Defence::Ticks) { 1 } else { u64::MAX >> 1 });
        store.epoch_deadline_callback(at_tick);
        if stands(Defence::CopiedBytes) {
            store.set_hostcall_fuel(
                usize::try_from(limits.result).unwrap_or(usize::MAX).saturating_add(COPY_SLACK),
            );
        }
        if stands(Defence::Handles) {
            store.set_max_component_handles(HANDLES);
        }
        Ok(store)
    }

    /// Counts a call into the host by its name, which a trace shows as it shows those of the
    /// engine's own, and never with what the guest said in it.
    pub(super) fn called(
        &mut self,
        module: &'static str,
        function: &'static str,
    ) -> Result<(), Stop> {
        Self::traced(module, function);
        self.awaits(Awaited::of(module));
        self.count_host_call()
    }

    /// Writes a call into the host to the trace, as the engine's own functions do.
    pub(super) fn traced(module: &'static str, function: &'static str) {
        tracing::trace!(module, function, "call");
    }

    /// Counts a call into the host. Over the limit the cell ends: here, or at the next tick where
    /// here cannot say so.
    pub(super) fn count_host_call(&mut self) -> Result<(), Stop> {
        self.pulse.runs();
        self.host_calls += 1;
        self.host_calls_left()
    }

    /// The guest is about to wait for this, unless the host has it at hand.
    pub(super) fn awaits(&self, awaited: impl Into<Option<Awaited>>) {
        self.pulse.awaits(awaited.into());
    }

    /// The host works for the guest until this is dropped: what asks to be polled again meanwhile
    /// is not the guest.
    pub(super) fn served(&self) -> Served {
        self.pulse.served()
    }

    fn host_calls_left(&self) -> Result<(), Stop> {
        let limit = self.invocation.limits.host_calls;
        if self.host_calls <= limit || !stands(Defence::HostCalls) {
            return Ok(());
        }
        Err(Stop(LimitHit::new(LimitKind::HostCalls, limit, self.host_calls)))
    }

    /// Calls into the host that are left.
    pub(super) fn host_calls_unused(&self) -> u64 {
        self.invocation.limits.host_calls.saturating_sub(self.host_calls)
    }

    /// Counts calls into the host of another call, which this one made.
    pub(super) fn charge_host_calls(&mut self, calls: u64) {
        self.host_calls = self.host_calls.saturating_add(calls);
    }

    /// Checks what the host keeps for this cell. Objects of the engine's own do not say how they
    /// grow: the next tick does.
    fn host_bytes_left(&mut self) -> Result<(), Stop> {
        let charged = self.files.as_ref().map_or(0, |files| files.retained().held());
        let bodies = self.wasi_http.as_ref().map_or(0, |state| state.written());
        retained::within(
            charged.saturating_add(bodies).saturating_add(retained::weigh(&mut self.table)),
        )
    }

    fn is_over(&self) -> bool {
        self.pulse.is_cancelled()
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// What grants lead to.
    pub(super) fn world(&self) -> &Arc<World> {
        &self.reach.world
    }

    /// The directories that were granted, and what this call may do with them.
    pub(super) fn mounts(&self) -> Option<(Arc<Mounts>, Arc<Rights>)> {
        self.reach.mounts.clone().zip(self.reach.rights.clone())
    }

    /// What its clocks tell, and every time that it sees besides.
    pub(super) fn clock(&mut self) -> Clock {
        *self.clock.get_or_insert_with(|| Clock::new(self.reach.world.time))
    }

    /// What it has open.
    pub(super) fn files(&mut self) -> &mut Files {
        // It runs before anything is changed.
        self.clock();
        let (world, tenant) = (&self.reach.world, self.invocation.context.tenant.as_deref());
        self.files.get_or_insert_with(|| Box::new(Files::new(world.for_files.way(tenant))))
    }

    /// What the tool may reach.
    pub(super) fn rights(&self) -> &Rights {
        static NONE: LazyLock<Rights> = LazyLock::new(Rights::default);
        self.reach.rights.as_deref().unwrap_or(&NONE)
    }

    /// The same, to be taken along.
    pub(super) fn shared_rights(&self) -> Arc<Rights> {
        self.reach.rights.clone().unwrap_or_default()
    }

    /// What hides the call's secrets; none where the tool was granted none.
    pub(super) fn veil(&self) -> Option<Arc<Veil>> {
        self.reach.veil.clone()
    }

    /// What its requests are held against.
    pub(super) fn screening(&self) -> Screening {
        Screening {
            world: Arc::clone(&self.reach.world),
            invocation: Arc::clone(&self.invocation),
            rights: self.shared_rights(),
            veil: self.reach.veil.clone(),
        }
    }

    /// Whether the tool may. A denial is told to observers. In a dry run nothing is refused for
    /// want of a grant: the caller answers with a stand-in.
    pub(super) fn authorize(&self, request: &Request<'_>) -> Result<(), Denial> {
        authorized(self.world(), self.rights(), &self.invocation, request)
    }

    /// In a dry run: what notes what the tool asks for.
    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.world().recorder.as_ref()
    }

    /// Writes a line of the guest's `log`.
    pub(super) fn log(&mut self, level: crate::event::LogLevel, message: &str) {
        let cost = message.len() as u64 + LINE_END;
        lines::emit(&self.invocation, LogSource::Log, level, message, cost);
    }

    /// What the guest wrote last to standard error, for people.
    pub(super) fn last_words(&self) -> Option<String> {
        self.wasi.as_ref().and_then(|wasi| wasi.lines.last_words())
    }

    /// What a command wrote to standard output.
    pub(super) fn captured(&self) -> Option<Captured> {
        self.reach.streams.as_ref().map(|streams| streams.stdout.clone())
    }

    /// Ends unfinished lines and writes the receipt: fuel of the whole call, earlier attempts
    /// included.
    pub(super) fn settle(&mut self, fuel_used: u64) {
        if let Some(wasi) = &self.wasi {
            // A command that has no answer keeps what it printed.
            self.captured()
                .iter()
                .filter(|captured| !captured.is_answered())
                .for_each(|captured| captured.log(&wasi.lines));
            wasi.lines.finish();
        }
        self.note(fuel_used);
    }

    fn note(&self, fuel_used: u64) {
        self.invocation.meter.note(fuel_used, self.limiter.peak(), self.host_calls);
    }
}

/// Whether the tool may: see [`Cell::authorize`].
pub(super) fn authorized(
    world: &World,
    rights: &Rights,
    invocation: &Invocation,
    request: &Request<'_>,
) -> Result<(), Denial> {
    let decision = rights.allows(request);
    let is_noted = world.recorder.as_ref().is_some_and(|recorder| match &decision {
        Decision::Allowed | Decision::Denied(Denial { layer: Layer::Granted, .. }) => {
            recorder.request(request)
        }
        Decision::Denied(_) => false,
    });
    let Decision::Denied(denial) = decision else { return Ok(()) };
    invocation.denied(&denial);
    if is_noted { Ok(()) } else { Err(denial) }
}

impl WasiView for Cell {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        // Every WASI host function comes through here. It cannot refuse; the next tick does.
        let _ = self.count_host_call();
        let clock = self.clock();
        let wasi = self.wasi.get_or_insert_with(|| {
            let lines = Lines::new(Arc::clone(&self.invocation));
            let Reach { world, rights, streams, .. } = &self.reach;
            let call = &self.invocation.call.id;
            let context =
                inert::context(&lines, world, clock, rights.as_deref(), call, streams.as_deref());
            Box::new(Wasi { context, lines })
        });
        WasiCtxView { ctx: &mut wasi.context, table: &mut self.table }
    }
}

/// Once a tick while the guest runs: the receipt so far, then on or out.
fn at_tick(mut store: StoreContextMut<'_, Cell>) -> wasmtime::Result<UpdateDeadline> {
    let left = store.get_fuel()?;
    let cell = store.data_mut();
    cell.host_calls_left()?;
    cell.host_bytes_left()?;
    cell.note(cell.invocation.limits.fuel.saturating_sub(left));
    let is_long = cell.pulse.tick();
    if cell.is_over() {
        return Ok(UpdateDeadline::Interrupt);
    }
    Ok(if is_long { UpdateDeadline::Yield(1) } else { UpdateDeadline::Continue(1) })
}
