//! Everything that knows wasm: configuration, clock, loading, cells.
//!
//! In: a component's bytes, then invocations. Out: definitions, then answers.
//! Invariants: the only modules that name the engine crate; one pool, but under strict isolation, and one on-demand engine,
//! made once; what one engine made never meets another.
//! Not here: JSON Schema, events' order, receipts (`executor`).

mod bindings;
mod cache;
mod cell;
mod classify;
mod compile;
mod config;
mod descriptors;
mod fair;
mod flights;
mod frames;
mod guest;
mod habit;
mod imports;
mod invoke;
mod isolation;
mod limiter;
mod load;
mod loaded;
mod optimise;
mod placement;
mod proposals;
mod pulse;
mod quarantine;
pub(crate) mod queue;
mod quick;
mod recorder;
mod retained;
mod runtimes;
mod scan;
mod screening;
mod shares;
mod slow;
mod ticker;
mod tier;
mod translate;
mod turns;
mod veil;
mod world;

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use wasmtime::component::Linker;

use crate::call::{CallContext, ToolCall};
use crate::clock::{self, Clock, SystemClock};
use crate::defence::{Defence, stands};
use crate::definition::Definition;
use crate::egress::Egress;
use crate::error::Error;
use crate::handler::Invocation;
use crate::kv::{KeyStore, MemoryStore};
use crate::limits::Limits;
use crate::secret::{SecretSource, StoredSecrets};
use cell::Cell;
use config::Allocation;
use descriptors::Descriptors;
use runtimes::Lanes;
pub(crate) use runtimes::less_urgent;
use world::{Pace, World};

pub use cache::DEFAULT_CACHE_BYTES;
pub use compile::{DEFAULT_COMPILE_TIME, compile_worker};
pub use imports::Standing;
pub use isolation::Isolation;
pub use load::{Examination, Missing};
pub(crate) use loaded::LoadedComponent;
pub use placement::Placement;
pub use quarantine::DEFAULT_PANICS;
pub use recorder::{PathUse, Recorded, Recorder};
pub use retained::HOST_BYTES;
pub use scan::MAX_COMPONENT;
pub use tier::{Code, Optimise};
pub use turns::DEFAULT_COMPILES;

/// How many cells may live at once unless the builder says otherwise. Each is up to a memory limit of RAM, [`HOST_BYTES`] of
/// what the host keeps for it, and 16 GiB of address space.
pub const DEFAULT_CELLS: u32 = 128;
/// The most cells at once: their address space is about half of what a process has.
pub const MAX_CELLS: u32 = 4000;

/// Runs tools. Cheap to clone; make one per process.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// One allocator's engine and everything that is linked once for it.
struct Allocator {
    engine: wasmtime::Engine,
    linker: Linker<Cell>,
}

struct Inner {
    /// Absent under strict isolation, and where the machine does not give the address space for a pool.
    pool: Option<Allocator>,
    on_demand: Allocator,
    ticker: Arc<ticker::Ticker>,
    cache: Option<cache::Cache>,
    worker: Option<compile::Worker>,
    optimise: Optimise,
    background: tier::Background,
    flights: flights::Flights,
    turns: turns::Turns,
    /// For what is counted by the minute or the hour; never a call's.
    clock: Arc<dyn Clock>,
    placement: Placement,
    /// Panics of the host that a component may cost.
    panics: Option<NonZero<u32>>,
    queue: Arc<queue::Queue>,
    /// Components that are loaded at once: one a core, the rest waits.
    loads: Arc<Semaphore>,
    lanes: Lanes,
    parties: habit::Parties,
    sleeps: &'static Handle,
    world: Arc<World>,
}

/// Makes an [`Engine`].
///
/// # Defaults
/// [`DEFAULT_CELLS`] cells; [`Isolation::Pooled`]; [`Placement::Cells`]; quarantine after [`DEFAULT_PANICS`]; as many guest
/// threads a lane as the machine has cores; no cache, or one of [`DEFAULT_CACHE_BYTES`]; compiling in this process, for each
/// tenant [`DEFAULT_COMPILES`] components a minute; [`Optimise::Later`].
#[derive(Debug, Clone)]
#[must_use]
pub struct EngineBuilder {
    cells: u32,
    isolation: Isolation,
    threads: Option<usize>,
    placement: Placement,
    panics: Option<NonZero<u32>>,
    cache: Option<PathBuf>,
    cache_bytes: u64,
    worker: Option<compile::Worker>,
    compiles: u32,
    quota_clock: Arc<dyn Clock>,
    optimise: Optimise,
    world: World,
}

impl EngineBuilder {
    /// How many cells may live at once, up to [`MAX_CELLS`]. More calls wait.
    ///
    /// A tenant gets another cell while it has fewer than are free: alone half of them, beside a busy one a third each, and
    /// so on. So there is one at once for a tenant that comes anew, whatever the others do. Calls without a tenant are not
    /// held back, and a host with one tenant may as well have its calls made without.
    pub fn cells(mut self, cells: u32) -> Self {
        self.cells = cells;
        self
    }

    /// What cells are made of. Whose tools need more of it than others' gets an engine of their own: nothing passes from one
    /// engine's cells to another's.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// How many threads each of the two lanes has under [`Placement::Cells`]: one runs short calls, the other, less
    /// urgent, goes on with those that take longer than a tick.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Where guests run.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// After how many panics of the host within an hour in calls of one component its further calls are refused, as
    /// `quarantined`: a way to make the host panic is not tried for ever, and a few in a year are chance. Until
    /// [`Component::let_in_again`](crate::Component::let_in_again), or until the component is loaded anew. Without a number,
    /// never.
    ///
    /// It is the loaded component's: where several tenants share one, what one of them does to it ends it for all. Whoever
    /// does not want that loads one for each tenant.
    pub fn quarantine_after(mut self, panics: impl Into<Option<NonZero<u32>>>) -> Self {
        self.panics = panics.into();
        self
    }

    /// Keeps compiled components in this directory. It is made private to the user.
    pub fn cache(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache = Some(dir.into());
        self
    }

    /// How many bytes of disk the cache may take, for all engines that share the directory. What was not used for longest
    /// makes room; what alone is larger is not kept.
    pub fn cache_bytes(mut self, most: u64) -> Self {
        self.cache_bytes = most;
        self
    }

    /// Compiles in child processes: `program` is started with `arguments` and, as the last one, an order, with which it
    /// must call [`compile_worker`](crate::compile_worker). Without this, compiling happens in this process, and a hostile
    /// component can keep a thread busy for hours. [`DEFAULT_COMPILE_TIME`] is a good `limit`.
    ///
    /// # Units
    /// `limit` is the CPU time of one compilation, rounded down to whole seconds, and at least one second. Optimising is a
    /// separate compilation; in the background it may use twice as much.
    pub fn compile_in(
        mut self,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        limit: Duration,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        self.worker = Some(compile::Worker { program: program.into(), arguments, limit });
        self
    }

    /// How many components of each tenant are compiled per minute; at least 1. After a minute without any, that many may be
    /// compiled at once. It applies to [`Component::load_for`](crate::Component::load_for) only.
    pub fn compiles_per_minute(mut self, most: u32) -> Self {
        self.compiles = most;
        self
    }

    /// With this clock for that minute, and for the hour of [`quarantine_after`](Self::quarantine_after).
    pub fn quota_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.quota_clock = clock;
        self
    }

    /// When components are optimised.
    pub fn optimise(mut self, optimise: Optimise) -> Self {
        self.optimise = optimise;
        self
    }

    /// How requests of tools are sent.
    pub fn egress(mut self, egress: Egress) -> Self {
        self.world.egress = egress;
        self
    }

    /// Where the values of secrets come from. Without a source, granted secrets are unavailable.
    pub fn secrets(mut self, source: impl SecretSource) -> Self {
        self.world.secrets = Arc::new(source);
        self
    }

    /// Where the keys and values of tools are stored. Without a store, granted keys are unavailable.
    pub fn keys(mut self, store: impl KeyStore) -> Self {
        self.world.keys = Some(Arc::new(store));
        self
    }

    /// Stores how full each writable granted directory is here. The directory is made private to this user. Processes that
    /// name the same one share the quota of a granted directory exactly; without it each process has its own quota. Name the
    /// same one in each child of a [`Cordon`](crate::Cordon). The files may be deleted while no process uses them: the next
    /// one counts again.
    pub fn directory_counts(mut self, dir: impl Into<PathBuf>) -> Self {
        self.world.counts = Some(dir.into());
        self
    }

    /// How many files and directories of the host the cells of this engine may have open at once; calls of one tenant at
    /// most half of them. Default: half of what the process could have when its first engine was made, for all engines
    /// together. One more is an error that the tool sees.
    pub fn open_files(mut self, most: usize) -> Self {
        self.world.descriptors = Descriptors::new(most);
        self
    }

    /// Lets no time pass within a call: both clocks tell throughout what they told at first. Sleeping still takes its time.
    pub fn frozen_clock(mut self) -> Self {
        self.world.time.pace = Pace::Frozen;
        self
    }

    /// Has the clock of each call begin at this date, for runs that are to be reproduced.
    pub fn now(mut self, date: SystemTime) -> Self {
        self.world.time.start = Some(date);
        self
    }

    /// Runs tools without effects, and notes what they ask for. A request that only reads, without a secret, is sent if it is
    /// granted; any other is answered with status 200 and the JSON text `{}`, whether it is granted or not. Keys are kept in
    /// memory, and the store begins empty; there are no secrets. What a tool's definition declares, and the layers below the
    /// grants, are enforced as ever. Directories are those that are granted: grant an empty one of its own as `/` in order to
    /// note paths.
    pub fn dry_run(mut self, recorder: Recorder) -> Self {
        self.world.recorder = Some(recorder);
        self
    }

    /// Derives each call's randomness from this and its id, for runs that are to be reproduced. Whoever knows the seed can
    /// tell what a tool takes for random. Without one it comes from the operating system, anew for each cell.
    pub fn seed(mut self, seed: u64) -> Self {
        self.world.seed = Some(seed);
        self
    }

    /// Makes the engine. From then on a write past the file-size limit of the process fails and does not end the process, see
    /// [`survive_file_size_limit`](crate::survive_file_size_limit).
    ///
    /// # Errors
    /// [`Error::is_environment`] when the machine cannot host it, there are to be no cells or more than [`MAX_CELLS`], or the
    /// cache directory cannot be used.
    pub fn build(self) -> Result<Engine, Error> {
        if !(1..=MAX_CELLS).contains(&self.cells) {
            return Err(Error::engine(format!("cells must be 1 to {MAX_CELLS}, not {}", self.cells)));
        }
        crate::signals::survive_file_size_limit();
        let mut world = self.world;
        if world.recorder.is_some() {
            world.keys = Some(Arc::new(MemoryStore::new()));
            world.secrets = Arc::new(StoredSecrets::default());
        }
        let allocator = |allocation| -> Result<Allocator, Error> {
            let engine = config::engine(allocation)?;
            let linker = imports::linker(&engine)?;
            Ok(Allocator { engine, linker })
        };
        let is_strict = self.isolation == Isolation::Strict && stands(Defence::StrictCells);
        let on_demand = allocator(if is_strict { Allocation::Cleared } else { Allocation::OnDemand })?;
        // A pool reserves much address space, which some machines do not give: then every cell is made from scratch.
        let pooled = || allocator(Allocation::Pooled { cells: self.cells });
        let told =
            |error: &Error| tracing::warn!(%error, "no pool of cells; each is made from scratch, which is slower");
        let pool = if is_strict { None } else { pooled().inspect_err(told).ok() };
        let engines = pool.iter().chain([&on_demand]).map(|allocator| allocator.engine.weak()).collect();
        let ticker = Arc::new(ticker::Ticker::start(engines)?);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Engine(Arc::new(Inner {
            pool,
            on_demand,
            ticker,
            cache: self.cache.map(|dir| cache::Cache::open(&dir, self.cache_bytes)).transpose()?,
            worker: self.worker,
            optimise: self.optimise,
            background: tier::Background::default(),
            flights: flights::Flights::default(),
            turns: turns::Turns::new(self.compiles, Arc::clone(&self.quota_clock)),
            clock: self.quota_clock,
            placement: self.placement,
            panics: self.panics,
            queue: queue::Queue::new(self.cells as usize),
            loads: Arc::new(Semaphore::new(cores)),
            lanes: Lanes::new(self.threads.unwrap_or(cores).max(1))?,
            parties: habit::Parties::default(),
            sleeps: clock::sleeps()?,
            world: Arc::new(world),
        })))
    }
}

impl Engine {
    /// A builder with the defaults.
    pub fn builder() -> EngineBuilder {
        EngineBuilder {
            cells: DEFAULT_CELLS,
            isolation: Isolation::default(),
            threads: None,
            placement: Placement::Cells,
            panics: Some(DEFAULT_PANICS),
            cache: None,
            cache_bytes: DEFAULT_CACHE_BYTES,
            worker: None,
            compiles: DEFAULT_COMPILES,
            quota_clock: Arc::new(SystemClock),
            optimise: Optimise::default(),
            world: World::default(),
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("placement", &self.0.placement).finish_non_exhaustive()
    }
}

impl Inner {
    /// Runs `describe` under limits of its own, from a thread that may block.
    fn describe(self: &Arc<Self>, ready: Arc<invoke::Ready>, limits: Limits) -> Result<Vec<Definition>, Error> {
        let call = || ToolCall::new("", "describe", "{}");
        let invocation = || Invocation::aside(call(), Value::Null, CallContext::default(), limits);
        self.sleeps.block_on(placement::describe(self, ready, invocation))
    }
}
