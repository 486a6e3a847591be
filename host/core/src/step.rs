//! One call inside of an agent loop: gated, made, recorded.
//!
//! In: what a model asked for, and the [`Turn`]. Out: a [`Step`], always: what the loop does next.
//! The stages: judge → stop? → context → gate → dispatch → window → notice → restart? → entry.
//! Invariants: a tool is dispatched at most once; a stop beats a result; nothing an embedder plugged in breaks a step.
//! Source: contract, section 6, whose stages are numbered below.

mod config;
mod entry;
mod raw_call;
#[cfg(test)]
mod tests;
mod turn;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

pub use self::config::{
    DEFAULT_MAX_ERRORS, DEFAULT_SOFT_WARN_AT, DEFAULT_STEP_TIMEOUT, MIN_STEP_TIMEOUT, STEP_TIMEOUT_VARIABLE, StepConfig,
};
pub use self::entry::{FunctionResponse, HistoryEntry};
pub use self::raw_call::RawCall;
pub use self::turn::{DEFAULT_CONTEXT_TURNS, Deliberate, Turn};
use crate::call::{AbortSignal, CallContext, CallOptions, CallResult, Completion, Resume, ToolCall};
use crate::clock::before;
use crate::encode::{Encoder, Fenced};
use crate::executor::Executor;
use crate::fence::{Fenced as FencedFuture, dispose, fenced};
use crate::json::Json;
use crate::names;
use crate::policy::Failure;
use crate::registry::{Entry, Registry, Toolbox};
use crate::statistics::Counting;
use crate::tool::Tool;
use crate::tool_error::{Exit, ToolError};

/// The context's extension that holds the person's language.
const LOCALE: &str = "locale";
/// The context's extension that asks tools to mention how to stop the turn.
const SHOW_KILL_HINT: &str = "show_kill_hint";

/// What the loop does next.
///
/// # Shape
/// As JSON: `{"kind": "restart" | "abort" | "history", …}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    /// Ask the model again: the result went into its context, and nothing of this call goes into the history.
    Restart,
    /// End the turn.
    Abort {
        /// Why.
        status: AbortStatus,
    },
    /// Put the entry into the history and go on.
    History {
        /// The tool, as the model called it.
        name: String,
        /// Whether it succeeded. A question and a halt count as success.
        success: bool,
        /// The model need not speak after this: the tool said so, or a person is asked, or the loop is halted. The
        /// entry's `halted` tells the last two.
        end_turn: bool,
        /// The call and its response.
        entry: Box<HistoryEntry>,
    },
}

/// Why a turn ends.
///
/// # Shape
/// As JSON: `"error"` or `"stopped_by_user"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortStatus {
    /// The call was none, or too many failed in a row.
    Error,
    /// A person stopped it.
    StoppedByUser,
}

/// What an observer of steps sees, and the person in front does not.
///
/// # Shape
/// As JSON: `{"type": "trigger_notice", "id", "tool", "trigger"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepEvent {
    /// A tool ran that a trigger had brought up.
    TriggerNotice {
        /// The call's id, if it had one.
        id: Option<String>,
        /// The tool.
        tool: String,
        /// What matched.
        trigger: String,
    },
}

type Observer = dyn Fn(StepEvent) + Send + Sync;
type Hook = dyn Fn(Arc<Completion>) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync;

/// Makes the steps of agent loops. Cheap to clone; serves any number of turns at once.
///
/// # Defaults
/// An executor with its own defaults, [`StepConfig::default`], no encoder, no observer, no hook.
#[derive(Clone)]
pub struct Stepper {
    registry: Registry,
    executor: Executor,
    config: StepConfig,
    encoder: Option<Fenced>,
    observer: Option<Arc<Observer>>,
    hook: Option<Arc<Hook>>,
}

impl Stepper {
    /// Steps that call the tools of this registry.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        let (executor, config) = (Executor::new(), StepConfig::default());
        Self { registry, executor, config, encoder: None, observer: None, hook: None }
    }

    /// With this executor, but for its timeout: a step has its own, see [`StepConfig::with_timeout`].
    #[must_use]
    pub fn with_executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// With this configuration.
    #[must_use]
    pub fn with_config(mut self, config: StepConfig) -> Self {
        self.config = config;
        self
    }

    /// Lets this encoder make text of results and failures. Without one a value stays the JSON it is.
    #[must_use]
    pub fn with_encoder(mut self, encoder: impl Encoder) -> Self {
        self.encoder = Some(Fenced::new(encoder));
        self
    }

    /// With this observer. It must be quick; a panic in it costs that event only.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Fn(StepEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Asks this hook about the end of every call that a tool was dispatched for, failures included: `true` when it took
    /// the result into the model's context, which makes the step a [`Step::Restart`]. A panic in it, or no answer within
    /// the step's timeout, leaves the result where it is.
    #[must_use]
    pub fn with_restart_hook<Answer>(mut self, hook: impl Fn(Arc<Completion>) -> Answer + Send + Sync + 'static) -> Self
    where
        Answer: Future<Output = bool> + Send + 'static,
    {
        self.hook = Some(Arc::new(move |completion| Box::pin(hook(completion))));
        self
    }

    /// Makes one step.
    ///
    /// # Cancel safety
    /// When dropped, the tool is stopped as by [`Executor::call`], and the step counts for nothing: the turn stays as it
    /// was, but for the window of a tool that had succeeded already.
    pub async fn step(&self, call: impl Into<RawCall>, turn: &mut Turn) -> Step {
        let call = call.into();
        self.stages(call, turn).await.unwrap_or_else(|status| Step::Abort { status })
    }

    async fn stages(&self, call: RawCall, turn: &mut Turn) -> Result<Step, AbortStatus> {
        let limits = self.executor.limits().with_timeout(self.config.timeout).tightened(&turn.limits);
        // 1: is it a call?
        let mut judged = call.judged(limits.arguments).map_err(|malformed| {
            // As a debug string: the text quotes a stranger.
            tracing::warn!(problem = ?malformed.to_string(), "Malformed function call");
            AbortStatus::Error
        })?;
        // 2: is anybody still waiting for it?
        go_on(&turn.abort)?;
        // 3: where it comes from
        let context = self.context(turn, judged.resume.take());
        // 4: may it be called in this turn? If not, nobody even looks whether it exists.
        let name = judged.call.name.clone();
        if let Some(allowed) = turn.allowed_names().filter(|allowed| !allowed.contains(name.as_str())) {
            let response = FunctionResponse::blocked(&name, &allowed);
            return self.record(HistoryEntry::unanswered(judged, response), false, turn);
        }
        let toolbox = self.registry.toolbox();
        let Entry { tool, counters } = match toolbox.entry(&name).map(AsRef::as_ref) {
            Ok(entry) => entry,
            Err(error) => {
                let near = nearest(&toolbox, &name, &context, turn).await;
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let response = FunctionResponse::error(format!("{error}{hint}"));
                return self.record(HistoryEntry::unanswered(judged, response), false, turn);
            }
        };
        // 5: once
        let options = CallOptions::default().with_context(context).with_limits(limits).with_abort(turn.abort.clone());
        let counting = Counting::new(counters);
        let completion = counting.end(self.dispatch(tool, judged.call.clone(), options).await?);
        // 6: keep it at hand
        if Failure::of(&completion.result).is_none() {
            turn.keep_open(&name);
        }
        // 7: say what brought it up
        if let Some(trigger) = turn.trigger(&name) {
            self.emit(StepEvent::TriggerNotice { id: judged.id.clone(), tool: name, trigger: trigger.to_owned() });
        }
        // 8: has the model's context taken it?
        let completion = Arc::new(completion);
        if self.is_consumed(&completion, &turn.abort).await? {
            turn.count_success();
            return Ok(Step::Restart);
        }
        // 9: call and response
        let completion = Arc::unwrap_or_clone(completion);
        let (entry, end_turn) = HistoryEntry::answered(judged, tool, completion, self.encoder.as_ref());
        self.record(entry, end_turn, turn)
    }

    /// Stage 3. Remaining time and the abort signal travel in the call's options.
    fn context(&self, turn: &Turn, resume: Option<Resume>) -> CallContext {
        let mut context = turn.context.clone();
        context.resume = resume;
        if let Some(locale) = &turn.locale {
            context.extensions.insert(LOCALE.into(), Json::from(Value::String(locale.clone())));
        }
        if turn.iteration >= self.config.soft_warn_at {
            context.extensions.insert(SHOW_KILL_HINT.into(), Json::from(Value::Bool(true)));
        }
        context
    }

    /// Stage 5. The executor keeps the time and ends a stopped call, so that either is a completion like any other.
    async fn dispatch(&self, tool: &Tool, call: ToolCall, options: CallOptions) -> Result<Completion, AbortStatus> {
        let (name, abort) = (&tool.definition().name, options.abort.clone());
        // The step's own timeout stands in the options; the executor's would undercut it.
        let executor = self.executor.clone().with_limits(options.limits);
        let completion = executor.call(tool, call, options.with_stop_grace(self.config.stop_grace)).await;
        let is_stopped = matches!(completion.result, CallResult::ToolError(ToolError::HandlerExit(Exit::Cancelled)));
        let how = if is_stopped { "stopped" } else { "completed" };
        tracing::info!("Function call {how}: {name} ({} ms)", completion.usage.wall.as_millis());
        // A stop that came with the result beats it.
        go_on(&abort).map(|()| completion)
    }

    /// Stage 7.
    fn emit(&self, event: StepEvent) {
        if let Some(observer) = &self.observer {
            // An observer's mistake must not become the turn's.
            let _ = fenced(|| observer(event));
        }
    }

    /// Stage 8.
    async fn is_consumed(&self, completion: &Arc<Completion>, abort: &AbortSignal) -> Result<bool, AbortStatus> {
        let Some(hook) = &self.hook else { return Ok(false) };
        let asked = FencedFuture::new(|| hook(Arc::clone(completion)));
        let answer = tokio::select! {
            biased;
            answer = before(Instant::now().checked_add(self.config.timeout), asked) => answer,
            () = abort.raised() => None,
        };
        go_on(abort)?;
        match answer {
            Some(Ok(consumed)) => Ok(consumed),
            failed @ (Some(Err(_)) | None) => {
                if let Some(Err(panic)) = failed {
                    dispose(panic);
                }
                tracing::warn!(tool = completion.tool, "the restart hook panicked or gave no answer in time");
                Ok(false)
            }
        }
    }

    /// The end of every step that has an entry: errors are counted, and too many in a row end the turn.
    fn record(&self, entry: HistoryEntry, end_turn: bool, turn: &mut Turn) -> Result<Step, AbortStatus> {
        go_on(&turn.abort)?;
        let (name, success) = (entry.name.clone(), entry.response.is_success());
        if success {
            turn.count_success();
        } else {
            turn.count_error();
            if turn.consecutive_errors() > self.config.max_errors {
                tracing::warn!(errors = turn.consecutive_errors(), "too many function calls failed in a row");
                return Err(AbortStatus::Error);
            }
        }
        Ok(Step::History { name, success, end_turn, entry: Box::new(entry) })
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

/// Whether the turn was not stopped.
fn go_on(abort: &AbortSignal) -> Result<(), AbortStatus> {
    if abort.is_raised() { Err(AbortStatus::StoppedByUser) } else { Ok(()) }
}

/// The nearest name that the model may know of: the turn allows it, and the tool is offered in this context.
async fn nearest<'a>(toolbox: &'a Toolbox, name: &str, context: &CallContext, turn: &Turn) -> Option<&'a str> {
    let names = toolbox.tools().map(|tool| tool.definition().name.as_str());
    let near = names::nearest(name, names.filter(|name| turn.allows(name)))?;
    toolbox.get(near)?.is_visible(context).await.then_some(near)
}
