//! Loads WebAssembly components and runs their tools, on wasmtime.
//!
//! An embedder (the program that uses this library) builds one [`Engine`] for each process with an
//! [`EngineBuilder`], which has the number of cells (wasmtime stores that exist at once, one for
//! each call), the cache, and the resources behind grants. `component` is the public face: it takes
//! the bytes of a component and returns its tools, whose handlers (the code of the tools) run calls
//! here. `compile` turns bytes into code, `cell` runs one call, `adapt` turns functions and
//! commands into tools, `schedule` chooses the time and the thread.
//! Invariants: only these modules name wasmtime. An engine has one pool of memory slots (except
//! under strict isolation, or if the machine has no room) and one allocator on demand, each built
//! once. Engines share nothing except bounds of the process, such as open files.
//! Not here: the check of arguments by JSON Schema, the order of events, the usage of a call
//! (`executor`).

pub(crate) mod adapt;
mod cell;
mod compile;
pub(crate) mod component;
mod load_options;
mod loaded;
pub(crate) mod schedule;

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use toolcell_contract::controls::enforced;
use toolcell_contract::error::Error;

use crate::capability::http::Egress;
use crate::capability::kv::{KeyStore, SqliteStore};
use crate::os::clock::{self, Clock, SystemClock};
use crate::os::cores::cores;
use crate::secrets::secret::{SecretSource, StoredSecrets};
use crate::tenant::{
    compile_quota::CompileQuota, descriptors::descriptors, queue::Queue, state::PerTenant,
};
use cell::bounds::ticker::Ticker;
use cell::resources::EngineResources;
use compile::{
    Compiler, OnCompile, cache::Cache, config::allocator::Allocator, link::CodeLinker,
    on_demand::Resident, tier::Background, worker::Worker,
};
use schedule::{placement::Scheduler, runtimes::Lanes};

pub use cell::imports::ImportStatus;
pub use cell::recorder::{PathUse, Recorder, Recording};
pub use cell::resources::Deterministic;
pub use compile::config::Isolation;
pub use compile::inspection::Inspection;
pub use compile::inspection::contents::{Contents, Module, Producer, Section};
pub use compile::load::OnMissingGrant;
pub use compile::tier::{CodeTier, Optimise};
pub use compile::worker::compile_worker;
pub use load_options::LoadOptions;
pub use schedule::in_use::InUse;
pub use schedule::placement::Placement;

/// Loads components and runs their tools. Cheap to clone; make one per process.
#[derive(Clone)]
pub struct Engine {
    compiler: Arc<Compiler>,
}

/// Configures and builds an [`Engine`].
///
/// # Defaults
/// [`Engine::DEFAULT_CELLS`] cells; [`Isolation::Pooled`]; [`Placement::Cells`]; quarantine after
/// [`Engine::DEFAULT_PANICS`]; for each lane, and for resumed calls, as many threads as the machine
/// has cores; no cache, or one of [`Engine::DEFAULT_CACHE_BYTES`]; compilation in this process, at
/// most [`Engine::DEFAULT_COMPILES`] components a minute for each tenant; [`Optimise::Later`].
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
    worker: Option<Worker>,
    on_compile: OnCompile,
    compiles: u32,
    quota_clock: Arc<dyn Clock>,
    optimise: Optimise,
    linked_bytes: u64,
    resources: EngineResources,
}

impl EngineBuilder {
    /// Sets how many cells can exist at the same time, up to [`Engine::MAX_CELLS`]. Further calls
    /// wait. Where the machine has too little address space for so many, there are fewer, and the
    /// log says how many.
    ///
    /// A tenant gets another cell while it has fewer cells than are free: alone half of them,
    /// beside one busy tenant a third, and so on. So a tenant without cells gets one at once. This
    /// holds for a call whose executor defines several tenants, or after a call of another tenant
    /// has come. Calls without a tenant are not limited.
    pub fn cells(self, cells: u32) -> Self {
        Self { cells, ..self }
    }

    /// Sets how strictly cells are separated in memory. For tools that need a stricter isolation
    /// than others, build a second engine: engines share no cells.
    pub fn isolation(self, isolation: Isolation) -> Self {
        Self { isolation, ..self }
    }

    /// Sets the number of threads in each of the three sets of [`Placement::Cells`]. The fast lane
    /// runs short calls. The slow lane has a lower priority, and continues calls that take longer
    /// than a tick (a millisecond). The third set resumes calls after a wait.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// Sets the threads on which guests run.
    pub fn placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Refuses the calls of a component as `quarantined` after this many panics of the host within
    /// an hour, so that an input that makes the host panic is not tried for ever. It lasts until
    /// [`Component::reinstate`](crate::Component::reinstate) is called, or until the component is
    /// loaded again. `None`: never.
    ///
    /// It applies to the loaded component: if several tenants share it, one tenant can disable it
    /// for all. To prevent that, load it once for each tenant.
    pub fn quarantine_after(self, panics: impl Into<Option<NonZero<u32>>>) -> Self {
        Self { panics: panics.into(), ..self }
    }

    /// Stores compiled components in this directory. A missing directory is created for this user
    /// only. An existing one keeps its permissions; [`build`](Self::build) fails if other users can
    /// write to it.
    pub fn cache(self, dir: impl Into<PathBuf>) -> Self {
        Self { cache: Some(dir.into()), ..self }
    }

    /// Stores no compiled components.
    pub fn without_cache(self) -> Self {
        Self { cache: None, ..self }
    }

    /// Sets how many bytes of disk the cache can take, for all engines that share the directory.
    /// The entries that were not used for the longest time are removed first. A component that is
    /// larger than the whole cache is not stored.
    pub fn cache_bytes(self, most: u64) -> Self {
        Self { cache_bytes: most, ..self }
    }

    /// Compiles in child processes: `program` is started with `arguments` and one more argument,
    /// the order, which it must pass to [`compile_worker`]. Without this,
    /// components are compiled in this process, and a hostile component can keep a thread busy for
    /// hours. [`Engine::DEFAULT_COMPILE_TIME`] is a good `limit`.
    ///
    /// The steps:
    ///
    /// 1. Choose an argument that starts the program as a worker, for example `compile-worker`.
    /// 2. Let `main` look for it before anything else. If it is there, `main` calls
    ///    [`compile_worker`] with the next argument and the standard streams, and ends with the
    ///    code that it returns.
    /// 3. Pass the program (for example [`std::env::current_exe`]) and the argument here.
    /// 4. Load components: each compilation starts a worker.
    ///
    /// # Units
    /// `limit` is the CPU time of one compilation, rounded down to whole seconds, and at least one
    /// second. A component of more than 8 MiB has more in proportion. Optimising is a separate
    /// compilation; in the background it can use twice as much.
    pub fn compile_in(
        self,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        limit: Duration,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { worker: Some(Worker { program: program.into(), arguments, limit }), ..self }
    }

    /// Sets how many components of each tenant are compiled per minute; at least 1. After a minute
    /// without a compilation, that many can be compiled at once. It applies to components that are
    /// loaded [for a tenant](crate::component::LoadOptions::tenant).
    pub fn compiles_per_minute(self, most: u32) -> Self {
        Self { compiles: most, ..self }
    }

    /// Sets the clock for the minute of [`compiles_per_minute`](Self::compiles_per_minute) and the
    /// hour of [`quarantine_after`](Self::quarantine_after).
    pub fn quota_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { quota_clock: clock, ..self }
    }

    /// Sets how many bytes of compiled code stay linked of components that are [loaded on
    /// demand](crate::component::LoadOptions::source). Default:
    /// [`Engine::DEFAULT_LINKED_BYTES`].
    pub fn linked_bytes(self, most: u64) -> Self {
        Self { linked_bytes: most, ..self }
    }

    /// Calls this function when a compilation begins that the load of a component waits for, for
    /// programs that tell a person why. It is not called for code that is in the cache, nor when a
    /// component is optimised in the background. It is called on a thread of the load, which waits
    /// for it.
    ///
    /// # Units
    /// The function gets the size of the component in bytes.
    pub fn on_compile(self, callback: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self { on_compile: OnCompile::new(callback), ..self }
    }

    /// Sets when components are optimised.
    pub fn optimise(self, optimise: Optimise) -> Self {
        Self { optimise, ..self }
    }

    /// Sets how the requests of tools are sent.
    pub fn egress(mut self, egress: Egress) -> Self {
        self.resources.egress = egress;
        self
    }

    /// Sets the source of the values of secrets. Without a source, granted secrets are unavailable.
    pub fn secrets(mut self, source: impl SecretSource) -> Self {
        self.resources.secrets = Arc::new(source);
        self
    }

    /// Sets the store for the keys and values of tools. Without a store, granted keys are
    /// unavailable.
    pub fn keys(mut self, store: impl KeyStore) -> Self {
        self.resources.keys = Some(Arc::new(store));
        self
    }

    /// Stores the usage of each writable granted directory here, for this user only. Processes that
    /// name the same directory share its quota exactly; without it, each process has a quota of its
    /// own. In a [`WorkerProcess`](crate::process::WorkerProcess), name the same directory in each
    /// worker. The files can be deleted while no process uses them: then the next process counts
    /// again.
    pub fn directory_counts(mut self, dir: impl Into<PathBuf>) -> Self {
        self.resources.counts = Some(dir.into());
        self
    }

    /// Sets how many files and directories of the host the cells of this engine can have open; the
    /// calls of one tenant have at most half of them. A tool that opens one more gets an error.
    /// Default: half of the file descriptors that the process could open when its first engine was
    /// built, for all engines together.
    pub fn open_files(mut self, most: usize) -> Self {
        self.resources.descriptors = descriptors(most as u64);
        self
    }

    /// Fixes the clocks and the random numbers of calls, for runs that are to be repeated exactly.
    pub fn deterministic(mut self, fixed: Deterministic) -> Self {
        self.resources.deterministic = fixed;
        self
    }

    /// Runs tools without effects, and records what they ask for. Grant an empty directory as `/`
    /// to record the paths of files.
    ///
    /// - A granted request that only reads, without a secret, is sent. Any other request is
    ///   answered with status 200 and the JSON text `{}`, whether it is granted or not.
    /// - Keys are kept in memory; the store is empty at first. There are no secrets. Directories
    ///   are those that are granted.
    /// - What the definition of a tool declares, and the overlays of tenants and calls, are
    ///   enforced as in a real run.
    pub fn dry_run(mut self, recorder: Recorder) -> Self {
        self.resources.recorder = Some(recorder);
        self
    }

    /// Builds the engine. From then on, a write beyond the file-size limit of the process fails
    /// instead of ending the process: see
    /// [`ignore_file_size_signal`](crate::files::ignore_file_size_signal).
    ///
    /// # Errors
    /// [`Error::is_environment`] if the machine cannot run it, if the number of cells is zero or
    /// above [`Engine::MAX_CELLS`], or if the cache directory cannot be used.
    pub fn build(self) -> Result<Engine, Error> {
        let (cells, most) = (self.cells, Engine::MAX_CELLS);
        if !(1..=most).contains(&cells) {
            return Err(Error::engine(format!("cells must be 1 to {most}, not {cells}")));
        }
        crate::os::signals::ignore_file_size_signal();
        let mut resources = self.resources;
        if resources.recorder.is_some() {
            resources.keys = Some(Arc::new(SqliteStore::in_memory()));
            resources.secrets = Arc::new(StoredSecrets::default());
        }
        let is_strict = self.isolation == Isolation::Strict && enforced!(StrictCells);
        let on_demand = Allocator::on_demand(is_strict)?;
        // A pool reserves much address space, which some machines do not have.
        let pooled = if is_strict { None } else { Allocator::pooled(cells) };
        let (pool, cells) = pooled.map_or((None, cells), |(pool, cells)| (Some(pool), cells));
        let engines =
            pool.iter().chain([&on_demand]).map(|allocator| allocator.engine.weak()).collect();
        let ticker = Arc::new(Ticker::start(engines)?);
        let cache = self.cache.map(|dir| Cache::open(&dir, self.cache_bytes)).transpose()?;
        let lanes = match self.placement {
            Placement::Cells => Some(Lanes::new(self.threads.unwrap_or_else(cores).max(1))?),
            Placement::Inline => None,
        };
        let scheduler = Scheduler {
            queue: Queue::new(cells as usize),
            lanes,
            flows: PerTenant::default(),
            sleeps: clock::sleeps()?,
            panics: self.panics,
            clock: Arc::clone(&self.quota_clock),
        };
        let resources = Arc::new(resources);
        let compiler = Compiler {
            linker: Arc::new(CodeLinker { pool, on_demand, ticker, resources }),
            scheduler,
            cache: cache.map(Arc::new),
            worker: self.worker,
            on_compile: self.on_compile,
            optimise: self.optimise,
            resident: Resident::new(self.linked_bytes),
            background: Background::default(),
            quota: CompileQuota::new(self.compiles, self.quota_clock),
            loads: Arc::new(Semaphore::new(cores())),
            links: Arc::new(Semaphore::new(cores())),
        };
        Ok(Engine { compiler: Arc::new(compiler) })
    }
}

impl Engine {
    /// 4 GiB, in bytes: the disk for one cache directory. It is enough for about a hundred language
    /// runtimes, or thousands of ordinary tools.
    pub const DEFAULT_CACHE_BYTES: u64 = 4 << 30;
    /// 256 MiB, in bytes: the compiled code that stays linked, of several hundred ordinary tools.
    pub const DEFAULT_LINKED_BYTES: u64 = 256 << 20;
    /// 64 MiB, in bytes: the largest component. Language runtimes take 12 to 19 MB.
    pub const MAX_COMPONENT: u64 = 64 << 20;
    /// 25 s: the CPU time of a compilation that a call waits for, if the component has up to 8 MiB.
    /// A larger one has more in proportion: a language runtime of 18 MB has 54 s, and takes 15 to
    /// 25 s. A component of up to 8 MiB that is made to stall the compiler is ended within 30 s if
    /// the machine has a core for it. Source: docs/threat-model.md, row 8.
    pub const DEFAULT_COMPILE_TIME: Duration = Duration::from_secs(25);
    /// Cells that can exist at the same time. Each takes up to its memory limit of RAM,
    /// [`Limits::HOST_BYTES`](crate::Limits::HOST_BYTES) of host memory, and 16 GiB of address
    /// space.
    pub const DEFAULT_CELLS: u32 = 128;
    /// The largest number of cells. Their address space is about half of what a process has.
    pub const MAX_CELLS: u32 = 4000;
    /// 3 panics of the host within an hour in calls of one component, after which its calls are
    /// refused.
    pub const DEFAULT_PANICS: NonZero<u32> = NonZero::new(3).expect("it is three");
    /// Components that are compiled per minute for one tenant: one every six seconds, each of which
    /// takes up to [`Engine::DEFAULT_COMPILE_TIME`]. After a minute without a
    /// compilation, that many can be compiled at once.
    pub const DEFAULT_COMPILES: u32 = 10;

    /// Returns a builder with the defaults.
    pub fn builder() -> EngineBuilder {
        EngineBuilder {
            cells: Self::DEFAULT_CELLS,
            isolation: Isolation::default(),
            threads: None,
            placement: Placement::Cells,
            panics: Some(Self::DEFAULT_PANICS),
            cache: None,
            cache_bytes: Self::DEFAULT_CACHE_BYTES,
            worker: None,
            on_compile: OnCompile::default(),
            compiles: Self::DEFAULT_COMPILES,
            quota_clock: Arc::new(SystemClock),
            optimise: Optimise::default(),
            linked_bytes: Self::DEFAULT_LINKED_BYTES,
            resources: EngineResources::default(),
        }
    }

    /// Returns the resources in use now.
    #[must_use]
    pub fn in_use(&self) -> InUse {
        let (max_cells, cells, calls_waiting) = self.compiler.scheduler.queue.counts();
        let (max_connections, connections, connections_total) =
            self.compiler.linker.resources.egress.counts();
        InUse { cells, max_cells, calls_waiting, connections, max_connections, connections_total }
    }

    /// Returns the bytes of compiled code that are linked now, of components that were
    /// [loaded on demand](crate::component::LoadOptions::source).
    #[must_use]
    pub fn linked_bytes(&self) -> u64 {
        self.compiler.resident.bytes()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}
