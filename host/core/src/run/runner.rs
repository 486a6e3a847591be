//! A run: a batch of calls under one policy for failures.
//!
//! An embedder (the program that uses this library) passes the calls of one model answer and
//! [`RunOptions`] to a [`Runner`]. [`Runner::run`] waits for all and returns one message for each
//! call in input order, their usage, and the reason of a halt; [`Runner::stream`] gives the events
//! as they come. Both use one path. No call runs before all are checked: an unknown tool, a
//! repeated id or a bad option fails the run as a whole. Every call that started is settled (has a
//! message), also if another one halts the run; the earliest halting call in the input gives the
//! reason.
//!
//! Source: docs/contract.md, section 3.

pub(crate) mod ask;
mod batch;
mod options;
mod settle;
mod stream;

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use toolcell_contract::call::{ToolCall, usage::Usage};
use toolcell_contract::error::Error;
use toolcell_contract::message::encode::{Encoder, GuardedEncoder};
use toolcell_contract::message::{Message, RunHalt};

use super::registry::Registry;
use crate::executor::Executor;
use batch::Batch;

pub(crate) use ask::{Decision, MAX_BLOCKING as POLICIES, decide};
pub(crate) use options::usual_concurrency;
pub use options::{RunOptions, UnknownTools};
pub use stream::RunStream;

/// Runs several calls of a model at the same time, under one policy for failures. Cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::{Value, json};
/// use toolcell::{Definition, Registry, RunOptions, Runner, Tool, ToolCall};
///
/// let registry = Registry::new();
/// let definition = Definition::new("double", "Doubles a number.")?;
/// registry.register(Tool::native(definition, async |arguments: Value| json!(arguments["n"].as_i64().map(|n| 2 * n)))?)?;
///
/// let calls = [ToolCall::new("a", "double", r#"{"n": 4}"#), ToolCall::new("b", "double", "[]")];
/// let outcome = Runner::new(registry).run(calls, RunOptions::default()).await?;
/// // One message per call, in the order of the calls. The second call is refused: its arguments are not an object.
/// assert_eq!(outcome.messages[0].content, "8");
/// assert!(outcome.messages[1].is_error && outcome.halted.is_none());
/// # Ok(()) }
/// ```
///
/// # Defaults
/// An executor with [`Limits::default`](crate::Limits::default) except for the time of a call,
/// which each run sets by itself ([`RunOptions::tool_timeout`]);
/// [`JsonEncoder`](crate::message::JsonEncoder).
#[derive(Debug, Clone)]
#[must_use]
pub struct Runner {
    registry: Registry,
    executor: Executor,
    encoder: GuardedEncoder,
    /// Permits for policy functions that run.
    deciding: Arc<Semaphore>,
}

/// The result of a run.
///
/// # Shape
/// As JSON: `{"messages": […], "usage": […]}`, and `halt` with `halted_reason` if the agent loop
/// must not continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunOutcome {
    /// One message per call, in the order of the calls.
    pub messages: Vec<Message>,
    /// The usage of each call, in the order of the calls.
    pub usage: Vec<Usage>,
    /// The reason why the agent loop must not continue, if there is one.
    #[serde(rename = "halt", skip_serializing_if = "Option::is_none")]
    pub halted: Option<RunHalt>,
}

impl Runner {
    /// Creates a runner of these tools, with the defaults.
    pub fn new(registry: Registry) -> Self {
        let executor = Executor::new().of_a_run();
        let deciding = Arc::new(Semaphore::new(ask::MAX_BLOCKING));
        Self { registry, executor, encoder: GuardedEncoder::default(), deciding }
    }

    /// Sets the executor. Its observer sees every event, and its limits apply to every call. That
    /// includes its timeout: a run with a longer [`tool_timeout`](RunOptions::tool_timeout) does
    /// not start. An executor without [`with_limits`](Executor::with_limits) sets no timeout: then
    /// each run sets one.
    pub fn with_executor(mut self, executor: Executor) -> Self {
        self.executor = executor.of_a_run();
        self
    }

    /// Sets the encoder of results.
    pub fn with_encoder(mut self, encoder: impl Encoder) -> Self {
        self.encoder = GuardedEncoder::new(encoder);
        self
    }

    /// Returns the registry of the tools.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Makes all calls and waits for the last. A failed call becomes a message.
    ///
    /// # Errors
    /// Before any call runs: [`Error::is_unknown_tool`] unless [`RunOptions::unknown_tools`] is
    /// [`UnknownTools::Answer`], [`Error::is_duplicate`] for two calls of one id,
    /// [`Error::is_options`].
    ///
    /// # Cancel safety
    /// When dropped, every running call is cancelled and the others never start.
    pub async fn run(
        &self,
        calls: impl IntoIterator<Item = ToolCall>,
        options: RunOptions,
    ) -> Result<RunOutcome, Error> {
        let batch = Batch::new(self, calls, options)?;
        let mut settled = vec![None; batch.len()];
        let mut first: Option<(usize, RunHalt)> = None;
        let mut ends = pin!(batch.call_ends(|| false));
        while let Some(ended) = ends.next().await {
            if first.as_ref().is_none_or(|(index, _)| ended.index < *index) {
                first = ended.halted.map(|halted| (ended.index, halted)).or(first);
            }
            settled[ended.index] = Some((ended.message, ended.usage));
        }
        let (messages, usage) = settled.into_iter().flatten().unzip();
        Ok(RunOutcome { messages, usage, halted: first.map(|(_, halted)| halted) })
    }

    /// Makes all calls while the stream is read: if it is not read, no further call starts. If the
    /// run cannot start, the stream has one event,
    /// [`RunEvent::Error`](crate::run::RunEvent::Error).
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    pub fn stream(
        &self,
        calls: impl IntoIterator<Item = ToolCall>,
        options: RunOptions,
    ) -> RunStream {
        RunStream::new(self, calls, options)
    }
}

#[cfg(test)]
mod tests;
