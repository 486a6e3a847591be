//! Single steps of an agent loop: a call is checked, made and recorded.
//!
//! An agent loop that records each call by itself uses a [`Stepper`] instead of a run. It passes
//! the call that a model asked for and the [`Turn`], the state of the conversation's current turn
//! (iteration, allowed tools, errors in a row). The result is always one [`Step`] for each call,
//! which says what the loop does next: put an entry into the history, ask the model again, or end
//! the turn.
//!
//! The stages are: judge → stop? → context → gate → dispatch → window → notice → restart? → entry.
//! Of several calls, all pass their gates first, then all are dispatched side by side, then the
//! other stages follow for each call in order. A tool is dispatched at most once, a stop takes
//! precedence over a result, and a panic in code of the embedder (the program that uses this
//! library) does not break a step.
//!
//! Source: docs/contract.md, section 6, whose stages are numbered below.

mod config;
mod entry;
mod form;
mod next;
mod raw_call;
mod stages;
#[cfg(test)]
mod tests;
mod turn;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use tokio::sync::Semaphore;

pub use self::config::StepConfig;
pub use self::entry::{FunctionResponse, HistoryEntry};
pub use self::next::{AbortStatus, Step, StepEvent};
pub use self::raw_call::RawCall;
pub use self::turn::{Deliberate, Turn, TurnMemory};
use toolcell_contract::call::{AbortSignal, CallResult, Completion, ToolCall};
use toolcell_contract::message::encode::{Encoder, GuardedEncoder};
use toolcell_contract::outcome::tool_error::{Exit, ToolError};

use crate::executor::Executor;
use crate::run::runner::{POLICIES, usual_concurrency};
use crate::run::{policy::OnToolError, registry::Registry};
use crate::tool::{Tool, handler::options::CallOptions};

type Observer = dyn Fn(StepEvent) + Send + Sync;
type Hook = dyn Fn(Arc<Completion>) -> BoxFuture<'static, bool> + Send + Sync;

/// Makes the steps of agent loops. Cheap to clone; one stepper serves any number of turns at the
/// same time.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::{Value, json};
/// use toolcell::step::Step;
/// use toolcell::{Definition, Registry, Stepper, Tool, Turn};
///
/// let registry = Registry::new();
/// registry.register(Tool::native(Definition::new("now", "Tells the time.")?, async |_: Value| json!("noon"))?)?;
/// let stepper = Stepper::new(registry);
///
/// let mut turn = Turn::default();
/// let asked = json!({"id": "call-1", "name": "now", "args": {}});
/// let Step::History { success, entry, .. } = stepper.step(asked, &mut turn).await else { panic!("the turn ended") };
/// // The entry goes into the history of the conversation.
/// assert!(success);
/// assert_eq!(serde_json::to_value(&entry)?["functionResponse"]["response"]["result"], "noon");
/// # Ok(()) }
/// ```
///
/// # Defaults
/// An executor with its own defaults, [`StepConfig::default`], [`OnToolError::Continue`], no
/// encoder, no observer, no hook.
#[derive(Clone)]
pub struct Stepper {
    registry: Registry,
    executor: Executor,
    config: StepConfig,
    encoder: Option<GuardedEncoder>,
    policy: OnToolError,
    /// Permits for policy functions that run.
    deciding: Arc<Semaphore>,
    observer: Option<Arc<Observer>>,
    hook: Option<Arc<Hook>>,
}

impl Stepper {
    /// Creates a stepper for the tools of this registry.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            executor: Executor::new(),
            config: StepConfig::default(),
            encoder: None,
            policy: OnToolError::Continue,
            deciding: Arc::new(Semaphore::new(POLICIES)),
            observer: None,
            hook: None,
        }
    }

    /// Sets the executor. Its timeout does not apply: a step has its own, see
    /// [`StepConfig::timeout`].
    #[must_use]
    pub fn with_executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// Sets the configuration. A timeout below [`StepConfig::MIN_TIMEOUT`] is raised to it, with a
    /// warning in the log; a `max_concurrency` of 0 counts as 1.
    #[must_use]
    pub fn with_config(mut self, config: StepConfig) -> Self {
        self.config = config.clamped();
        self
    }

    /// Encodes results and failures as text with this encoder. Without one, a value stays JSON.
    #[must_use]
    pub fn with_encoder(mut self, encoder: impl Encoder) -> Self {
        self.encoder = Some(GuardedEncoder::new(encoder));
        self
    }

    /// Sets the policy for failures of the handler, the executor, the host and the encoder. It does
    /// not apply to a tool that does not exist or is not allowed in this turn. As in a run, it
    /// decides what the model gets and whether the loop halts. It does not change what happened:
    /// with [`Verdict::Continue`](crate::run::Verdict::Continue) the call still counts as failed
    /// for statistics, windows and errors in a row.
    #[must_use]
    pub fn with_on_tool_error(mut self, policy: OnToolError) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the observer of events. It must return quickly. If it panics, only that event is lost.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Fn(StepEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Sets a hook that is called when a dispatched call has ended, with success or not. If it
    /// returns `true`, it has put the result into the model's context, and the step is a
    /// [`Step::Restart`]. If it panics, or does not return within the step's timeout, that counts
    /// as `false`.
    #[must_use]
    pub fn with_restart_hook<Answer>(
        mut self,
        hook: impl Fn(Arc<Completion>) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = bool> + Send + 'static,
    {
        self.hook = Some(Arc::new(move |completion| Box::pin(hook(completion))));
        self
    }

    /// Makes one step.
    ///
    /// # Cancel safety
    /// When dropped, the tool is stopped as by [`Executor::call`], and the turn stays as it was,
    /// except that the tool stays allowed if it had already succeeded.
    pub async fn step(&self, call: impl Into<RawCall>, turn: &mut Turn) -> Step {
        let call = call.into();
        self.stages(call, turn).await.unwrap_or_else(|status| Step::Abort { status })
    }

    /// Makes the steps of all calls of one answer of the model: one step per call, in the order of
    /// the calls. First every call passes its gates, in order. Then the tools run side by side, as
    /// many at the same time as [`StepConfig::max_concurrency`] says. When the last one has
    /// ended, stages 6 to 9 follow for each call in order.
    ///
    /// - The turn ends before any tool runs if a call has no name, if a call has arguments that are
    ///   not an object and no id, or if a stop is requested before the first dispatch. Every step
    ///   is then this [`Step::Abort`].
    /// - Otherwise the steps are independent. A [`Step::Restart`], a halt or too many errors in a
    ///   row do not affect the calls after it: they have run, and are recorded.
    /// - A stop applies to all: running calls are ended, and every call that is not recorded yet
    ///   becomes [`AbortStatus::StoppedByUser`].
    /// - A tool that a success allows is allowed from the next step on, not for the other calls of
    ///   this answer.
    ///
    /// # Cancel safety
    /// As [`step`](Self::step). Calls that were recorded before the drop stay counted in the turn.
    pub async fn step_all<Call: Into<RawCall>>(
        &self,
        calls: impl IntoIterator<Item = Call>,
        turn: &mut Turn,
    ) -> Vec<Step> {
        let calls: Vec<RawCall> = calls.into_iter().map(Into::into).collect();
        let count = calls.len();
        let mut gated = Vec::with_capacity(count);
        for call in calls {
            match self.gate(call, turn).await {
                Ok(gate) => gated.push(gate),
                Err(status) => return vec![Step::Abort { status }; count],
            }
        }
        let most = self.config.max_concurrency.unwrap_or_else(|| usual_concurrency(count));
        let running = gated
            .into_iter()
            .enumerate()
            .map(|(index, gate)| async move { (index, self.end(gate).await) });
        let mut ends: Vec<_> = stream::iter(running).buffer_unordered(most).collect().await;
        ends.sort_unstable_by_key(|(index, _)| *index);
        let mut steps = Vec::with_capacity(count);
        for (_, end) in ends {
            let step = match end {
                Ok(end) => self.settle(end, turn).await,
                Err(status) => Err(status),
            };
            steps.push(step.unwrap_or_else(|status| Step::Abort { status }));
        }
        steps
    }

    /// Stage 5. The executor enforces the timeout and ends a stopped call, so that either is a
    /// completion like any other.
    async fn dispatch(
        &self,
        tool: &Tool,
        call: ToolCall,
        options: CallOptions,
    ) -> Result<Completion, AbortStatus> {
        let (name, abort) = (&tool.definition().name, options.abort.clone());
        // The options contain the step's own timeout; the executor's limits would shorten it.
        let registry = self.registry.clone();
        let executor = self
            .executor
            .clone()
            .with_limits(options.limits)
            .calling(move |name| registry.get(name));
        let completion = executor.uncounted(tool, call, options, None).await;
        let is_stopped = matches!(
            completion.result,
            CallResult::ToolError(ToolError::HandlerExit(Exit::Cancelled))
        );
        let how = if is_stopped { "stopped" } else { "completed" };
        tracing::info!("Function call {how}: {name} ({} ms)", completion.usage.wall.as_millis());
        // A stop takes precedence over a result that came at the same time.
        check_not_stopped(&abort).map(|()| completion)
    }
}

impl fmt::Debug for Stepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stepper")
            .field("registry", &self.registry)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Fails if the turn was stopped.
fn check_not_stopped(abort: &AbortSignal) -> Result<(), AbortStatus> {
    if abort.is_raised() { Err(AbortStatus::StoppedByUser) } else { Ok(()) }
}
