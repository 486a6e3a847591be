//! Reads the configuration with the options of every command, creates the engines, and loads
//! components on them.
//!
//! [`Cli::config`] finds and reads the configuration. An engine compiles and runs WebAssembly. A
//! command calls [`engines`] with the number of concurrent calls and the configuration. It gets
//! [`Engines`], which creates one engine for each kind of isolation when it is first needed: those
//! of `toolcell-config`, with the options of the command line. [`Engines::load`] loads a component
//! with a spinner if that takes long.
//!
//! An untrusted component is compiled in a child process or not at all. An unusable cache causes a
//! warning, never an error. Background optimisation ends with the command; only commands that
//! prepare later ones wait for it, with [`optimised`].

use std::cell::Cell;
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
use toolcell::{Component, Engine, Grants};
use toolcell_config::{Engines as ConfiguredEngines, ReadOptions};

use crate::args::{self, Global};
use crate::config::{self, Config, HintCommand, Isolation, ResolvedComponent, SecretSelection};
use crate::grants::rule_lines::RuleLines;
use crate::os::interrupt::Interrupt;
use crate::os::traces::Traces;
use crate::os::{env, state};
use crate::print::units::Date;
use crate::print::{Failure, Printer, Result, Size};

/// Work that takes no longer shows no spinner.
const SPINNER_DELAY: Duration = Duration::from_millis(150);
/// Bytes of a component that compiles fast enough for no message.
const SMALL: u64 = 1 << 20;

/// The global options, and the parts of the process that `main` starts for every command.
pub(crate) struct Cli {
    pub(crate) printer: Printer,
    pub(crate) global: Global,
    pub(crate) interrupt: Interrupt,
    pub(crate) traces: Traces,
}

impl Cli {
    /// Finds and reads the configuration, with the values of the wanted secrets only. The file is
    /// the one that `--config` names, else the variable `TOOLCELL_CONFIG`, else the first that is
    /// found in this directory or above.
    pub(crate) fn config(&self, wanted: SecretSelection) -> Result<Config> {
        let Global { config, cache_dir, state_dir, .. } = &self.global;
        let mut options = ReadOptions::from_environment()
            .with_wanted(wanted)
            .with_hint_command(self.hint_command());
        if let Some(dir) = cache_dir {
            options = options.with_cache_dir(dir);
        }
        if let Some(dir) = state_dir {
            options = options.with_state_dir(dir);
        }
        match (config, env::config()) {
            (Some(named), _) => Ok(Config::read_with(named, options)?),
            (None, Some(named)) => {
                let read = Config::read_with(named, options).map_err(Failure::from);
                read.map_err(|failure| {
                    failure.about("the configuration that the variable `TOOLCELL_CONFIG` names")
                })
            }
            (None, None) => Ok(Config::find(options)?),
        }
    }

    /// Returns the program and global options for hints that repeat the command. `TOOLCELL_CONFIG`
    /// is repeated as `--config`, because the variable may have been set for one command alone.
    fn hint_command(&self) -> HintCommand {
        let Global { config, state_dir, max_compile_time, .. } = &self.global;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let config = config.clone().or_else(env::config);
        let compile_time =
            Some(max_compile_time).filter(|time| time.0 != Engine::DEFAULT_COMPILE_TIME);
        let typed = [
            ("--config", config.as_deref().map(path)),
            ("--state-dir", state_dir.as_deref().map(path)),
            ("--max-compile-time", compile_time.map(ToString::to_string)),
        ];
        let options =
            typed.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten();
        HintCommand::new(env::program(), options)
    }
}

/// The engines of one command.
pub(crate) struct Engines<'a> {
    pub(crate) printer: &'a Printer,
    pub(crate) config: &'a Config,
    cached: ConfiguredEngines,
    /// Used without a cache, and if the cache cannot be used.
    uncached: ConfiguredEngines,
    is_uncached: Cell<bool>,
    /// The directory of stored keys and of the counts of granted directories.
    pub(crate) state: Option<PathBuf>,
}

/// Prepares engines for this many concurrent calls, with the cache if it can be used.
pub(crate) fn engines<'a>(cli: &'a Cli, calls: usize, config: &'a Config) -> Result<Engines<'a>> {
    let Cli { printer, global, .. } = cli;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Two cells for each call: a tenant leaves as many cells to other tenants of the configuration
    // as it holds.
    let cells = u32::try_from(calls.max(1)).unwrap_or(Engine::MAX_CELLS);
    let cells = cells.saturating_mul(2).min(Engine::MAX_CELLS);
    let now = global.now.map(|Date(date)| date);
    let fixed = Deterministic { now, seed: global.seed, ..Deterministic::default() };
    let cached = of_configuration(cli, config)?.with(|builder| {
        let builder = with_compile_notes(printer, builder).deterministic(fixed);
        builder.cells(cells).threads(calls.min(cores))
    });
    // Optimised code would be ready too late for a single call, and without a cache no later call
    // has it.
    let uncached = cached.clone().with(|builder| {
        let builder = builder.without_cache();
        if calls > 1 { builder } else { builder.optimise(Optimise::Never) }
    });
    let is_uncached = Cell::new(cache_dir(cli).is_none());
    let state = state::dir(global.state_dir.as_deref());
    Ok(Engines { printer, config, cached, uncached, is_uncached, state })
}

/// Returns the engines of the configuration with the global options: the cache's size, a child
/// process for compiling, and the hint for requests without a connection.
pub(crate) fn of_configuration(cli: &Cli, config: &Config) -> Result<ConfiguredEngines> {
    let global = &cli.global;
    let worker = compile_worker(env::own_program(), global.max_compile_time.0)?;
    let (bytes, hint) = (global.cache_size.0, proxy_hint(config));
    let engines = config.engines().with(|builder| worker(builder).cache_bytes(bytes));
    Ok(engines.with_egress(|egress| with_proxy_hint(&cli.printer, egress, hint)))
}

impl Engines<'_> {
    /// Changes settings of all engines.
    fn with(self, set: impl Fn(EngineBuilder) -> EngineBuilder) -> Self {
        Self { cached: self.cached.with(&set), uncached: self.uncached.with(&set), ..self }
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
    pub(crate) fn with_proxy_hint(self, hint: Option<String>) -> Self {
        let set = |egress| with_proxy_hint(self.printer, egress, hint.clone());
        let (cached, uncached) = (self.cached.with_egress(set), self.uncached.with_egress(set));
        Self { cached, uncached, ..self }
    }

    /// Returns the engine for this isolation of cells.
    pub(crate) fn of(&self, isolation: Isolation) -> Result<&Engine> {
        if self.is_uncached.get() {
            return Ok(self.uncached.of(isolation)?);
        }
        self.cached.of(isolation).or_else(|error| {
            let engine = self.uncached.of(isolation)?;
            self.is_uncached.set(true);
            self.printer.warning(format!("{error}; compiled components are not kept"));
            self.printer
                .hint(format!("{} with `--cache-dir DIR`, or pass `--no-cache`", error.hint()));
            Ok(engine)
        })
    }

    /// Loads a component under these grants, with a spinner if that takes long.
    pub(crate) async fn load(
        &self,
        chosen: &ResolvedComponent<'_>,
        component: ComponentBytes,
        grants: Grants,
        missing: OnMissingGrant,
    ) -> Result<Component> {
        let path = &chosen.path;
        let options = LoadOptions { grants, missing, ..LoadOptions::default() };
        let loading = Component::load_with(self.of(chosen.isolation)?, component, options);
        let loaded = with_spinner(self.printer, "compiling", path, loading).await?;
        let (compile_time, pooled) = (loaded.compile_time(), loaded.is_pooled());
        tracing::info!(component = %path.display(), ?compile_time, pooled, "loaded");
        Ok(loaded)
    }
}

/// Makes an engine print a note when it compiles a large component and no spinner can be drawn.
pub(crate) fn with_compile_notes(printer: &Printer, builder: EngineBuilder) -> EngineBuilder {
    let printer = printer.clone();
    builder.on_compile(move |bytes| print_long_step(&printer, "compiling", bytes))
}

/// Prints a note on work that takes long, for a large component.
fn print_long_step(printer: &Printer, doing: &str, bytes: u64) {
    if bytes > SMALL {
        let size = Size(bytes).rounded();
        printer.step(format!("{doing} a component of {size}, which can take some seconds"));
    }
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
    // A second section of this name would be an error.
    let section = RuleLines::read(config).and_then(|rules| rules.part(&["network"]));
    let place = match section {
        Some(section) => format!("[network] of `{file}`, line {}:", section.line),
        None => format!("`{file}`:\n[network]"),
    };
    Some(format!(
        "a request of a tool got no connection, and requests of tools do not use the proxy of `{variable}`; to send them \
         through a proxy, write in {place}\n{line}"
    ))
}

/// Prints this hint at the first request without a connection, once in this process.
pub(crate) fn with_proxy_hint(printer: &Printer, egress: Egress, hint: Option<String>) -> Egress {
    static ONCE: Once = Once::new();
    let Some(hint) = hint else { return egress };
    let printer = printer.clone();
    egress.on_no_connection(move || ONCE.call_once(|| printer.hint(&hint)))
}

/// Makes an engine compile in a child of this program. The program is required: in this process, a
/// component made to stall the compiler would stall the command.
pub(crate) fn compile_worker(
    worker: io::Result<PathBuf>,
    time: Duration,
) -> Result<impl FnOnce(EngineBuilder) -> EngineBuilder> {
    let worker = program_path(worker, "compile in a separate process")?;
    Ok(move |builder: EngineBuilder| builder.compile_in(worker, [args::COMPILE_WORKER], time))
}

/// Returns the file of this program, or the error that it is needed for this purpose.
pub(crate) fn program_path(program: io::Result<PathBuf>, purpose: &'static str) -> Result<PathBuf> {
    let program = program.with_context(|| {
        format!("cannot find the file of this program, which is needed to {purpose}")
    });
    let hint = "mount `/proc`: toolcell finds the path of its own program there";
    program.map_err(|error| Failure::environment(error, hint))
}

pub(crate) fn cache_dir(cli: &Cli) -> Option<PathBuf> {
    let Cli { printer, global, .. } = cli;
    if global.no_cache {
        return None;
    }
    let dir = global.cache_dir.clone().or_else(env::cache_dir);
    if dir.is_none() {
        printer.warning("no cache: neither `XDG_CACHE_HOME` nor `HOME` is set");
        printer.hint("pass `--cache-dir DIR`, or `--no-cache` if you want none");
    }
    dir
}

/// Waits until the component is optimised, or cannot be, and shows a spinner if that takes long.
/// The result is cached for later commands.
pub(crate) async fn optimised(printer: &Printer, component: &Component, path: &Path) -> CodeTier {
    if component.code() == CodeTier::Quick {
        print_long_step(printer, "optimising", component.inspection().size);
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
        let worker = Err(io::ErrorKind::NotFound.into());
        let failure = compile_worker(worker, Duration::from_secs(1)).err().unwrap().to_json();
        assert_eq!(failure["kind"], "environment", "{failure}");
        assert!(
            failure["message"].as_str().unwrap().contains("cannot find the file of this program"),
            "{failure}"
        );
        assert!(failure["hint"].as_str().unwrap().contains("`/proc`"), "{failure}");
    }
}
