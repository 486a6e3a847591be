//! Runs tools in a worker process, so that a guest that escapes from its cell finds the memory of
//! one tenant only.
//!
//! A guest is the WebAssembly code of a tool; its cell is a fresh instance for one call. A host
//! with several tenants builds a [`WorkerProcess`] for a tenant: it names the program to start,
//! which must call [`Worker::begin`] and offer tools. The host gets a [`Tool`] for each, and calls
//! it as any other; the call runs in the child. No guest of these tools runs in the host. When a
//! worker dies, only its own calls end, and the next worker is started; a tool that repeatedly ends
//! workers is no longer called. Messages of a worker are bounded for each call, and dropped if that
//! call does not run in it. The worker ends with its `WorkerProcess` and with the host.
//!
//! Not here: rights of the operating system. A worker runs as the same user with all rights of that
//! user, and so does a guest that can run machine code of its own there.
//!
//! Source: docs/threat-model.md, rows 52 and 83.

mod request_table;
mod supervisor;
mod wire;
mod worker;
mod worker_handler;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use toolcell_contract::error::Error;

use crate::os::clock;
use crate::tool::{self, Tool};
use supervisor::{KillOnDrop, Supervisor};
use worker_handler::WorkerHandler;

pub use worker::Worker;

/// Configures and starts a [`WorkerProcess`].
///
/// # Defaults
/// No arguments, an empty environment, [`WorkerProcess::DEFAULT_GRACE`]. The worker has this
/// process's working directory and standard error.
#[derive(Clone)]
#[must_use]
pub struct WorkerProcessBuilder {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
    grace: Duration,
}

impl WorkerProcessBuilder {
    /// Sets the command-line arguments of the worker.
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Adds an environment variable. The worker gets only the variables that are added here, so
    /// that it does not see what this process's environment holds for other tenants.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Sets the time after a call's end after which a worker that has not answered is killed.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Starts the worker, and waits until it has loaded its tools.
    ///
    /// # Errors
    /// [`Error::is_environment`] if the worker cannot be started, or dies before it has loaded its
    /// tools. [`Error::is_worker`] if it called [`Worker::refuse`]; its text is the source.
    /// [`Error::is_definition`] if the definition of a tool is not usable.
    ///
    /// # Cancel safety
    /// When dropped, the worker is killed.
    pub async fn start(self) -> Result<WorkerProcess, Error> {
        let supervisor = Arc::new(Supervisor::new(self, clock::sleeps()?));
        let guard = Arc::new(KillOnDrop(Arc::clone(&supervisor)));
        let (first, offered) = oneshot::channel();
        std::thread::Builder::new()
            .name("toolcell-worker".into())
            .spawn(move || supervisor.supervise(first))
            .map_err(|error| {
                Error::engine("no thread can be started for the worker process").with_source(error)
            })?;
        let offered = offered.await.unwrap_or_else(|_| {
            Err(Error::engine("the thread that supervises the worker process died"))
        })?;
        let tools = offered.into_iter().map(|offered| {
            let handler = WorkerHandler::new(Arc::clone(&guard), &offered);
            Ok(Tool::with_handler(offered.definition, handler)?.with_limits(offered.limits))
        });
        Ok(WorkerProcess { tools: tools.collect::<Result<_, Error>>()?, guard })
    }
}

/// A worker process that runs tools. A host with several tenants starts one for each tenant that
/// needs a process of its own. Cheap to clone. The process ends when the last clone of this value
/// and of its tools is dropped.
///
/// When a worker dies, the next one is started at once. If workers die again and again, there is a
/// growing pause before the next one.
///
/// The death of a worker affects calls as follows:
///
/// - A call that the worker had received ends as `handler_exit`, status `process_ended`. If the
///   tool claims to be idempotent or read-only, the call is made once more instead.
/// - A call that the worker had not received goes to the next worker.
/// - During a pause of a second or more, and if the next worker is not ready in time, calls are
///   refused as `restarting`.
/// - A tool whose calls were running in three workers as they died, without an answer in between,
///   is refused as `quarantined` until this value is dropped.
///
/// A worker loads its tools when it starts, so give its engine a
/// [cache](crate::runtime::EngineBuilder::cache). A [store of keys on
/// disk](crate::capability::kv::SqliteStore) can be open in the host and in any number of workers
/// at the same time.
///
/// These things differ from tools in this process:
///
/// - The usage of a call whose worker died, or that was dropped, does not include what was used
///   in the worker.
/// - Each worker enforces rights by itself. So [`Tool::rights`] of its tools is `None`, and
///   requests are searched only for the secrets that the worker knows.
/// - Each attempt of a [retried](Tool::with_retry) call has a budget of requests of its own.
#[derive(Clone)]
pub struct WorkerProcess {
    tools: Arc<[Tool]>,
    guard: Arc<KillOnDrop>,
}

impl WorkerProcess {
    /// The time after a call's end (its deadline or its cancellation) after which a worker that has
    /// not answered is killed: 2 s. A worker normally ends a guest within a millisecond.
    pub const DEFAULT_GRACE: Duration = Duration::from_secs(2);

    /// Configures a worker process that runs this program. The program must detect that it is the
    /// worker, for instance by an argument, and then call [`Worker::begin`].
    pub fn builder(program: impl Into<PathBuf>) -> WorkerProcessBuilder {
        let (program, arguments, environment) = (program.into(), Vec::new(), BTreeMap::new());
        WorkerProcessBuilder { program, arguments, environment, grace: Self::DEFAULT_GRACE }
    }

    /// Returns the tools of the worker process.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the tool of this name.
    ///
    /// # Errors
    /// [`Error::is_unknown_tool`], with the nearest name as a hint.
    pub fn tool(&self, name: &str) -> Result<&Tool, Error> {
        tool::find_tool(&self.tools, name)
    }

    /// Returns the process id of the current worker, or `None` while there is none.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.guard.0.pid()
    }
}

impl fmt::Debug for WorkerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerProcess")
            .field("tools", &self.tools)
            .field("pid", &self.pid())
            .finish()
    }
}

/// Leaves out the environment, which holds values of secrets.
impl fmt::Debug for WorkerProcessBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerProcessBuilder")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
