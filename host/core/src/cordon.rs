//! Tools in a process of their own: whoever breaks out of a cell there finds one tenant's memory.
//!
//! In: how to start a child, which lends itself with a [`Ward`]. Out: a [`Cordon`] and its [`Tool`]s, whose calls are the
//! child's.
//! Invariants: nothing of a guest runs in this process; a child that dies ends the calls that it had, and no others; what
//! it says is bounded and believed about its own calls only; it does not outlive the cordon, nor this process.
//! Not here: what it may reach. A child runs as the same user, and with all that user's rights: a guest that can run
//! machine code of its own there has them too. Source: docs/threat-model.md, rows 52 and 83.

mod asking;
mod book;
mod forms;
mod keeper;
mod ward;
mod wire;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock;
use crate::error::Error;
use crate::tool::Tool;
use asking::Cordoned;
use keeper::{Keeper, Tie};

pub use ward::Ward;

/// How long a child may keep a call that is over, by its deadline or by its caller, before it is killed: it ends guests
/// within a tick, so one that takes so long is stuck.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(2);

/// How the child of a [`Cordon`] is started.
#[derive(Clone)]
pub(crate) struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
}

/// Makes a [`Cordon`].
///
/// # Defaults
/// No arguments, an empty environment, [`DEFAULT_GRACE`]. The child has this process's directory and its standard error.
#[derive(Clone)]
#[must_use]
pub struct CordonBuilder {
    launch: Launch,
    grace: Duration,
}

impl CordonBuilder {
    /// With these arguments.
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.launch.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// With this variable, and others only as they are named: what this process's environment holds for one tenant is not
    /// for another's child.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.launch.environment.insert(name.into(), value.into());
        self
    }

    /// How long the child may keep a call that is over.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Starts the child, and waits until it offers its tools.
    ///
    /// # Errors
    /// [`Error::is_environment`] when it cannot be started or dies before; [`Error::is_cordon`] when it says why it offers
    /// none, with its words as the source; [`Error::is_definition`] for tools that could not be served.
    ///
    /// # Cancel safety
    /// When dropped, the child is killed.
    pub async fn start(self) -> Result<Cordon, Error> {
        let keeper = Arc::new(Keeper::new(self.launch, self.grace, clock::sleeps()?));
        let tie = Arc::new(Tie(Arc::clone(&keeper)));
        let (first, offered) = oneshot::channel();
        std::thread::Builder::new()
            .name("toolcell-cordon".into())
            .spawn(move || keeper.keep(first))
            .map_err(|error| Error::engine("no thread for a cordon").with_source(error))?;
        let offered = offered.await.unwrap_or_else(|_| Err(Error::engine("the keeper of a cordon died")))?;
        let tools = offered.into_iter().map(|offered| {
            let handler = Cordoned::new(Arc::clone(&tie), &offered);
            Ok(Tool::with_handler(offered.definition, handler)?.with_limits(offered.limits))
        });
        Ok(Cordon { tools: tools.collect::<Result<_, Error>>()?, tie })
    }
}

/// A child process that hosts tools, one for each tenant who is to have one. A child that dies is followed by the next at
/// once, and after a rest that grows when it dies again and again. Cheap to clone; the child ends with the last clone of the
/// cordon and of its tools.
///
/// What becomes of a call when the child dies: one that was handed over ends with `handler_exit`, status `died`, but for a
/// tool that says of itself that it is idempotent or read-only, whose call is made once more; one that was not is the next
/// child's. While a child rests for a second or longer, calls are refused as `restarting`. A tool that was at work in three
/// children as they died, and answered no call in between, is refused as `quarantined` for as long as the cordon lives.
///
/// The next child is there as soon as it has loaded its tools, so its engine needs a [cache](crate::EngineBuilder::cache). What
/// waits for it longer than its time is refused likewise: it never ran.
///
/// The receipt of a call whose child died, or that was dropped, does not tell what was used in the child.
///
/// A [store of keys on disk](crate::kv::DiskStore) may be open in the parent and in any number of children at once.
///
/// Each child knows and enforces rights by itself: [`Tool::rights`] tells none of its tools', and what a tool sends is searched
/// for the secrets that its own process knows. Not carried over is the budget of requests when a call is
/// [tried again](Tool::with_retry).
#[derive(Clone)]
pub struct Cordon {
    tools: Arc<[Tool]>,
    tie: Arc<Tie>,
}

impl Cordon {
    /// A cordon around a child that is this program, which must find out that it is one and call [`Ward::begin`].
    pub fn builder(program: impl Into<PathBuf>) -> CordonBuilder {
        let launch = Launch { program: program.into(), arguments: Vec::new(), environment: BTreeMap::new() };
        CordonBuilder { launch, grace: DEFAULT_GRACE }
    }

    /// The tools, in the child's order.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The tool of this name.
    ///
    /// # Errors
    /// [`Error::is_unknown_tool`], with the nearest name as a hint.
    pub fn tool(&self, name: &str) -> Result<&Tool, Error> {
        self.tools.iter().find(|tool| tool.definition().name == name).ok_or_else(|| {
            Error::no_such_tool(name, self.tools.iter().map(|tool| tool.definition().name.clone()).collect())
        })
    }

    /// The process that hosts the tools now; none between one and the next.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.tie.0.pid()
    }
}

impl fmt::Debug for Cordon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cordon").field("tools", &self.tools).field("pid", &self.pid()).finish()
    }
}

/// Without the environment, which holds values of secrets.
impl fmt::Debug for CordonBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Launch { program, arguments, .. } = &self.launch;
        f.debug_struct("CordonBuilder")
            .field("program", program)
            .field("arguments", arguments)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
