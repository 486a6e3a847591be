//! The stages of a step, except the dispatch of the call to the executor.
//!
//! The stepper runs them in three parts. `gate` checks the call, a stop, and that the tool may be
//! called in this turn (stages 1 to 4); a call that may not gets a history entry at once. `end`
//! dispatches the call (stage 5), counts it and applies the policy for failures. `settle` keeps a
//! successful tool allowed, reports a trigger, asks the restart hook and records the entry (stages
//! 6 to 9). Each can end the turn with an [`AbortStatus`], for a stop or for too many errors in a
//! row. Panics of the observer and the hook are caught.
//!
//! Source: docs/contract.md, section 6, whose stages are numbered below.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolcell_contract::call::{AbortSignal, CallContext, CallResult, Completion, Resume, ToolCall};
use toolcell_contract::json::Json;
use toolcell_contract::message::{RunHalt, encode::EncodeInput, failure::Failure};
use toolcell_contract::outcome::tool_error::ToolError;
use toolcell_contract::panic_guard::{GuardedFuture, dispose, guarded};

use super::entry::{FunctionResponse, HistoryEntry};
use super::next::{AbortStatus, Step, StepEvent};
use super::raw_call::{Malformed, ParsedCall, RawCall};
use super::{Stepper, check_not_stopped, turn::Turn};
use crate::os::clock::before;
use crate::run::runner::{Decision, decide};
use crate::tool::{Tool, handler::options::CallOptions, statistics::Counting};
use toolcell_contract::limits::Limits;

/// The context's extension that holds the person's language.
const LOCALE: &str = "locale";
/// The context's extension that asks tools to mention how to stop the turn.
const SHOW_KILL_HINT: &str = "show_kill_hint";
/// The most characters of a model's text in a line of the log.
const LOGGED_CHARS: usize = 200;

/// A call after some stages: a stage has answered it, or it continues.
pub(super) enum Gated<T> {
    Closed(Box<HistoryEntry>),
    Open(Box<T>),
}

/// A call that may be dispatched.
pub(super) struct Ready {
    parsed: ParsedCall,
    tool: Tool,
    options: CallOptions,
}

/// The end of a dispatched call, and the response for the model.
pub(super) struct DispatchedCall {
    parsed: ParsedCall,
    tool: Tool,
    completion: Completion,
    response: FunctionResponse,
    /// True if the call did not fail and its result could be encoded.
    success: bool,
    /// Set if the policy halts the loop.
    halted: Option<RunHalt>,
}

impl Stepper {
    pub(super) async fn stages(&self, call: RawCall, turn: &mut Turn) -> Result<Step, AbortStatus> {
        let gate = self.gate(call, turn).await?;
        let end = self.end(gate).await?;
        self.settle(end, turn).await
    }

    /// Stages 1 to 4.
    pub(super) async fn gate(
        &self,
        call: RawCall,
        turn: &Turn,
    ) -> Result<Gated<Ready>, AbortStatus> {
        let limits = Limits { timeout: self.config.timeout, ..self.executor.limits() }
            .tightened(&turn.call.limits);
        // 1: checks that it is a call. The problem is logged as a debug string, because it quotes a
        // model.
        let warn = |problem: &Malformed| tracing::warn!(problem = ?beginning(&problem.to_string()), "Malformed function call");
        let mut judged =
            call.parse(limits.arguments).inspect_err(warn).map_err(|_| AbortStatus::Error)?;
        if let Some(problem) = &judged.problem {
            // The executor refuses the call, in words by which the model can correct it.
            warn(problem);
        }
        // 2: checks that the turn was not stopped.
        check_not_stopped(&turn.call.abort)?;
        // 3: builds the context.
        let context = self.context(turn, judged.resume.take());
        // 4: checks that the tool may be called in this turn. If not, the name is not looked up.
        let name = judged.call.name.as_str();
        if let Some(allowed) = turn.allowed_names().filter(|allowed| !allowed.contains(name)) {
            // As a debug string, because the name comes from the model.
            tracing::warn!(tool = ?beginning(name), "Function call blocked by deliberate tool mode");
            let response = FunctionResponse::blocked(name, &allowed);
            return Ok(Gated::Closed(Box::new(HistoryEntry::unanswered(judged, response))));
        }
        let toolbox = self.registry.toolbox();
        let Some(tool) = toolbox.get(name).cloned() else {
            let asked = (&self.executor, &context);
            let words = toolbox.no_such_tool(name, asked, |name| turn.allows(name)).await;
            let response = FunctionResponse::error(words);
            return Ok(Gated::Closed(Box::new(HistoryEntry::unanswered(judged, response))));
        };
        let options = CallOptions { context: context.into(), limits, ..turn.call.clone() };
        Ok(Gated::Open(Box::new(Ready { parsed: judged, tool, options })))
    }

    /// Stage 5, and the response for the model.
    pub(super) async fn end(
        &self,
        gate: Gated<Ready>,
    ) -> Result<Gated<DispatchedCall>, AbortStatus> {
        let Ready { parsed: judged, tool, options } = match gate {
            Gated::Closed(entry) => return Ok(Gated::Closed(entry)),
            Gated::Open(ready) => *ready,
        };
        // A stop may have come while the calls beside it ran.
        check_not_stopped(&options.abort)?;
        // A policy function has the same time again after the call.
        let (abort, time) = (options.abort.clone(), tool.tightened(options.limits).timeout);
        let counting = Counting::new(tool.counters());
        let completion = self.dispatch(&tool, judged.call.clone(), options).await?;
        let answer = FunctionResponse::of(&completion.result, self.encoder.as_ref());
        counting.end_as(completion.usage.wall, answer.as_ref().err());
        let success = answer.is_ok();
        let (response, halted) = match answer {
            Ok(response) => (response, None),
            Err(failure) => self.decided(&judged.call, failure, (time, &abort)).await,
        };
        check_not_stopped(&abort)?;
        Ok(Gated::Open(Box::new(DispatchedCall {
            parsed: judged,
            tool,
            completion,
            response,
            success,
            halted,
        })))
    }

    /// Applies the policy to a failure: returns the response for the model, and the halt if the
    /// loop halts.
    async fn decided(
        &self,
        call: &ToolCall,
        failure: Failure,
        (time, abort): (Duration, &AbortSignal),
    ) -> (FunctionResponse, Option<RunHalt>) {
        let (asked, stop) = ((&self.deciding, time), || (abort.clone(), Duration::ZERO));
        let encoder = self.encoder.as_ref();
        let encode =
            |value: &Json| FunctionResponse::value(EncodeInput::Value(value), value, encoder);
        match decide(&self.policy, asked, || call.clone(), failure, stop, encode).await {
            Decision::Report(failure) => (FunctionResponse::failed(&failure, encoder), None),
            Decision::Replace(response) => (response, None),
            Decision::Halt(failure, exception) => {
                let halted = RunHalt::ToolError { tool_call_id: call.id.clone(), exception };
                (FunctionResponse::failed(&failure, encoder), Some(halted))
            }
        }
    }

    /// Stages 6 to 9.
    pub(super) async fn settle(
        &self,
        end: Gated<DispatchedCall>,
        turn: &mut Turn,
    ) -> Result<Step, AbortStatus> {
        let DispatchedCall { parsed: judged, tool, completion, response, success, halted } =
            match end {
                Gated::Closed(entry) => return self.record(entry, false, false, turn),
                Gated::Open(ended) => *ended,
            };
        check_not_stopped(&turn.call.abort)?;
        let name = &judged.call.name;
        // 6: keeps the tool allowed.
        if success {
            turn.keep_allowed(name);
        }
        let completion = Arc::new(completion);
        if was_dispatched(&completion.result) {
            // 7: reports the trigger that allowed the tool.
            if let Some(trigger) = turn.trigger(name) {
                let (tool, trigger) = (name.clone(), trigger.to_owned());
                self.emit(StepEvent::TriggerNotice { id: judged.id.clone(), tool, trigger });
            }
            // 8: asks the hook if it has put the result into the model's context.
            if self.is_result_consumed(&completion, &turn.call.abort).await? {
                turn.count_success();
                return Ok(Step::Restart);
            }
        }
        // 9: records call and response.
        let result = Arc::unwrap_or_clone(completion).result;
        let (mut entry, mut end_turn) =
            HistoryEntry::answered(judged, &tool, response, Some(result).filter(|_| success));
        if halted.is_some() {
            (entry.halted, end_turn) = (halted, true);
        }
        self.record(Box::new(entry), success, end_turn, turn)
    }

    /// Stage 3. Remaining time and the abort signal are in the call's options.
    fn context(&self, turn: &Turn, resume: Option<Resume>) -> CallContext {
        let mut context = CallContext::clone(&turn.call.context);
        context.resume = resume;
        if let Some(locale) = &turn.locale {
            context.extensions.insert(LOCALE.into(), Json::from(Value::String(locale.clone())));
        }
        if turn.iteration >= self.config.soft_warn_at {
            context.extensions.insert(SHOW_KILL_HINT.into(), Json::from(Value::Bool(true)));
        }
        context
    }

    /// Stage 7.
    fn emit(&self, event: StepEvent) {
        if let Some(observer) = &self.observer {
            // A panic of the observer must not end the turn.
            let _ = guarded(|| observer(event));
        }
    }

    /// Stage 8.
    async fn is_result_consumed(
        &self,
        completion: &Arc<Completion>,
        abort: &AbortSignal,
    ) -> Result<bool, AbortStatus> {
        let Some(hook) = &self.hook else { return Ok(false) };
        let asked = GuardedFuture::new(|| hook(Arc::clone(completion)));
        let answer = tokio::select! {
            biased;
            answer = before(Instant::now().checked_add(self.config.timeout), asked) => answer,
            () = abort.raised() => None,
        };
        check_not_stopped(abort)?;
        let consumed = answer.and_then(|answer| answer.map_err(dispose).ok());
        if consumed.is_none() {
            tracing::warn!(
                tool = completion.tool,
                "the restart hook panicked or gave no answer in time, so the step goes on without a restart"
            );
        }
        Ok(consumed.unwrap_or(false))
    }

    /// Ends every step that has an entry: counts errors, and ends the turn after too many in a row.
    fn record(
        &self,
        entry: Box<HistoryEntry>,
        success: bool,
        end_turn: bool,
        turn: &mut Turn,
    ) -> Result<Step, AbortStatus> {
        check_not_stopped(&turn.call.abort)?;
        let name = entry.name.clone();
        if success {
            turn.count_success();
        } else {
            turn.count_error();
            if turn.consecutive_errors() > self.config.max_errors {
                tracing::warn!(
                    errors = turn.consecutive_errors(),
                    "too many function calls failed in a row"
                );
                return Err(AbortStatus::Error);
            }
        }
        Ok(Step::History { name, success, end_turn, entry })
    }
}

/// Returns true if a handler was called. A refusal comes before the handler, and a tool in manual
/// mode has none.
fn was_dispatched(result: &CallResult) -> bool {
    !matches!(result, CallResult::Refusal(_) | CallResult::ToolError(ToolError::NotFound))
}

/// Returns the beginning of a text of a model for the log, so that a long text does not fill it.
fn beginning(text: &str) -> String {
    text.chars().take(LOGGED_CHARS).collect()
}
