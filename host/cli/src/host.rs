//! Creates the engines of every command, and loads components on them.
//!
//! An engine compiles and runs WebAssembly. A command calls [`engines`] with the number of
//! concurrent calls and the configuration. It gets [`Engines`], which creates one engine for each
//! kind of isolation when it is first needed, with the cache of compiled code, the secrets, the
//! key-value data and the network settings. [`load`] loads a component with a spinner if that takes
//! long.
//!
//! An untrusted component is compiled in a child process or not at all. An unusable cache causes a
//! warning, never an error. Background optimisation ends with the command; only commands that
//! prepare later ones wait for it, with [`optimised`].

use std::cell::OnceCell;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Once;
use std::time::Duration;

use anyhow::Context as _;
use toolcell::component::{CodeTier, ComponentBytes, LoadOptions, OnMissingGrant};
use toolcell::http::{Egress, Proxy};
use toolcell::runtime::{Deterministic, EngineBuilder, Optimise, Placement, Recorder};
use toolcell::{Component, Engine, Error, Grants};

use crate::args::{self, Global};
use crate::config::{self, Config, Isolation, Keys};
use crate::os::{env, state};
use crate::print::failure::Failure;
use crate::print::printer::Printer;
use crate::print::units::{Date, Size};

/// Work that takes no longer shows no spinner.
const SPINNER_DELAY: Duration = Duration::from_millis(150);
/// Bytes of a component that compiles fast enough for no message.
const SMALL: u64 = 1 << 20;

/// The engines of one command, created on demand: one for each kind of isolation, because the kinds
/// share nothing.
pub(crate) struct Engines<'a> {
    printer: &'a Printer,
    /// The settings of an engine without a cache.
    uncached: EngineBuilder,
    builder: EngineBuilder,
    cache: Option<PathBuf>,
    /// The directory of stored keys and of the counts of granted directories.
    pub(crate) state: Option<PathBuf>,
    pooled: OnceCell<Engine>,
    strict: OnceCell<Engine>,
}

/// Prepares engines for this many concurrent calls, with the cache if it can be used.
pub(crate) fn engines<'a>(
    printer: &'a Printer,
    global: &Global,
    calls: usize,
    config: &Config,
) -> Result<Engines<'a>, Failure> {
    let builder =
        with_compile_notes(printer, builder(env::own_program(), global.max_compile_time.0)?);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Two cells for each call: a tenant leaves as many cells to other tenants of the configuration
    // as it holds.
    let cells = u32::try_from(calls.max(1))
        .unwrap_or(Engine::MAX_CELLS)
        .saturating_mul(2)
        .min(Engine::MAX_CELLS);
    let builder = builder.cells(cells).threads(calls.min(cores)).secrets(config.secrets.clone());
    let builder = builder.egress(with_proxy_hint(printer, config.egress(), proxy_hint(config)));
    let state = state::dir(global.state_dir.as_deref());
    let builder = builder.keys(Keys::new(state.as_deref(), config.path.as_deref()));
    let builder = match &state {
        Some(state) => builder.directory_counts(state.join(toolcell_config::Engines::COUNTS)),
        None => builder,
    };
    let now = global.now.map(|Date(date)| date);
    let fixed = Deterministic { now, seed: global.seed, ..Deterministic::default() };
    let builder = builder.deterministic(fixed);
    // Optimised code would be ready too late for a single call, and without a cache no later call
    // has it.
    let keeping_nothing =
        if calls > 1 { builder.clone() } else { builder.clone().optimise(Optimise::Never) };
    let cache = cache_dir(printer, global);
    let (pooled, strict) = (OnceCell::new(), OnceCell::new());
    let builder = builder.cache_bytes(global.cache_size.0);
    Ok(Engines { printer, uncached: keeping_nothing, builder, cache, state, pooled, strict })
}

impl Engines<'_> {
    /// Changes settings of all engines.
    fn with(self, set: impl Fn(EngineBuilder) -> EngineBuilder) -> Self {
        Self { builder: set(self.builder), uncached: set(self.uncached), ..self }
    }

    /// Makes the engines perform a dry run: they record the tool's requests and execute none.
    pub(crate) fn dry_run(self, recorder: &Recorder) -> Self {
        self.with(|builder| builder.dry_run(recorder.clone()))
    }

    /// Places calls in the caller's task, for a command that makes a single call: it competes with
    /// no other call of this process. On low-priority threads, a busy machine would end it at its
    /// time limit.
    pub(crate) fn inline(self) -> Self {
        self.with(|builder| builder.placement(Placement::Inline))
    }

    /// Sets the hint for a tool's request that gets no connection.
    pub(crate) fn with_proxy_hint(self, config: &Config, hint: Option<String>) -> Self {
        let egress = with_proxy_hint(self.printer, config.egress(), hint);
        self.with(|builder| builder.egress(egress.clone()))
    }

    /// Returns the engine for this isolation of cells.
    pub(crate) fn of(&self, isolation: Isolation) -> Result<&Engine, Failure> {
        let (kept, kind) = match isolation {
            Isolation::Pooled => (&self.pooled, toolcell::runtime::Isolation::Pooled),
            // A worker process has strict cells too.
            Isolation::Strict | Isolation::Process => {
                (&self.strict, toolcell::runtime::Isolation::Strict)
            }
        };
        match kept.get() {
            Some(engine) => Ok(engine),
            None => {
                let engine = self.build(kind)?;
                Ok(kept.get_or_init(|| engine))
            }
        }
    }

    fn build(&self, kind: toolcell::runtime::Isolation) -> Result<Engine, Failure> {
        let keeping_nothing = || self.uncached.clone().isolation(kind).build();
        let Some(dir) = &self.cache else { return Ok(keeping_nothing()?) };
        self.builder.clone().isolation(kind).cache(dir).build().or_else(|error| {
            let engine = keeping_nothing()?;
            self.printer.note("warning", &format!("{error}; compiled components are not kept"));
            self.printer.note(
                "hint",
                &format!("{} with `--cache-dir DIR`, or pass `--no-cache`", error.hint()),
            );
            Ok(engine)
        })
    }
}

/// Returns the engine's settings. The child's program is required: in this process, a component
/// made to stall the compiler would stall the command.
fn builder(worker: io::Result<PathBuf>, compile_time: Duration) -> Result<EngineBuilder, Failure> {
    let worker = program_path(worker, "compile in a separate process")?;
    Ok(Engine::builder().compile_in(worker, [args::COMPILE_WORKER], compile_time))
}

/// Makes an engine print a note when it compiles a large component and no spinner can be drawn.
pub(crate) fn with_compile_notes(printer: &Printer, builder: EngineBuilder) -> EngineBuilder {
    let printer = printer.clone();
    builder.on_compile(move |bytes| {
        if bytes > SMALL {
            printer.step(&format!(
                "compiling a component of {}, which can take some seconds",
                Size(bytes).rounded()
            ));
        }
    })
}

/// Returns the hint for requests without a proxy, if the environment names one. Its line can be
/// pasted, and has no password.
pub(crate) fn proxy_hint(config: &Config) -> Option<String> {
    let (variable, value) = env::proxy()?;
    let line = match Proxy::new(&value) {
        Ok(_) => format!("proxy = {{ env = \"{variable}\" }}"),
        Err(_) => "proxy = \"http://HOST:PORT\"".to_owned(),
    };
    let file = config.file.as_deref().unwrap_or(config::NAME);
    Some(format!(
        "a request of a tool got no connection, and requests of tools do not use the proxy of `{variable}`; to send them \
         through a proxy, write in `{file}`:\n[network]\n{line}"
    ))
}

/// Prints this hint at the first request without a connection, once in this process.
pub(crate) fn with_proxy_hint(printer: &Printer, egress: Egress, hint: Option<String>) -> Egress {
    static ONCE: Once = Once::new();
    let Some(hint) = hint else { return egress };
    let printer = printer.clone();
    egress.on_no_connection(move || ONCE.call_once(|| printer.note("hint", &hint)))
}

/// Makes an engine compile in a child of this program.
pub(crate) fn compile_worker(
    global: &Global,
) -> Result<impl FnOnce(EngineBuilder) -> EngineBuilder, Failure> {
    let worker = program_path(env::own_program(), "compile in a separate process")?;
    let time = global.max_compile_time.0;
    Ok(move |builder: EngineBuilder| builder.compile_in(worker, [args::COMPILE_WORKER], time))
}

/// Returns the file of this program, or the error that it is needed for this purpose.
pub(crate) fn program_path(
    program: io::Result<PathBuf>,
    purpose: &'static str,
) -> Result<PathBuf, Failure> {
    let program = program.with_context(|| {
        format!("cannot find the file of this program, which is needed to {purpose}")
    });
    program.map_err(|error| {
        Failure::environment(
            error,
            "mount `/proc`: toolcell finds the path of its own program there",
        )
    })
}

pub(crate) fn cache_dir(printer: &Printer, global: &Global) -> Option<PathBuf> {
    if global.no_cache {
        return None;
    }
    let dir = global.cache_dir.clone().or_else(env::cache_dir);
    if dir.is_none() {
        printer.note("warning", "no cache: neither `XDG_CACHE_HOME` nor `HOME` is set");
        printer.note("hint", "pass `--cache-dir DIR`, or `--no-cache` if you want none");
    }
    dir
}

/// Loads a component under these grants, with a spinner if that takes long.
pub(crate) async fn load(
    printer: &Printer,
    engine: &Engine,
    component: ComponentBytes,
    path: &Path,
    grants: Grants,
    missing: OnMissingGrant,
) -> Result<Component, Error> {
    let options = LoadOptions { grants, missing, ..LoadOptions::default() };
    let loading = Component::load_with(engine, component, options);
    let loaded = with_spinner(printer, "compiling", path, loading).await?;
    let (compile_time, pooled) = (loaded.compile_time(), loaded.is_pooled());
    tracing::info!(component = %path.display(), ?compile_time, pooled, "loaded");
    Ok(loaded)
}

/// Waits until the component is optimised, or cannot be, and shows a spinner if that takes long.
/// The result is cached for later commands.
pub(crate) async fn optimised(printer: &Printer, component: &Component, path: &Path) -> CodeTier {
    let size = component.inspection().size;
    if component.code() == CodeTier::Quick && size > SMALL {
        printer.step(&format!(
            "optimising a component of {}, which can take some seconds",
            Size(size).rounded()
        ));
    }
    with_spinner(printer, "optimising", path, component.optimised()).await
}

/// Waits for the work, and shows a spinner after [`SPINNER_DELAY`].
async fn with_spinner<T>(
    printer: &Printer,
    doing: &str,
    path: &Path,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    match tokio::time::timeout(SPINNER_DELAY, work.as_mut()).await {
        Ok(done) => done,
        Err(_) => {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            let _spinner = printer.spinner(&format!("{doing} {name}"));
            work.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilation_requires_child_process() {
        let failure = builder(Err(io::ErrorKind::NotFound.into()), Duration::from_secs(1))
            .unwrap_err()
            .to_json();
        assert_eq!(failure["kind"], "environment", "{failure}");
        assert!(
            failure["message"].as_str().unwrap().contains("cannot find the file of this program"),
            "{failure}"
        );
        assert!(failure["hint"].as_str().unwrap().contains("`/proc`"), "{failure}");
    }
}
