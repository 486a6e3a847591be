//! From a completion to what the model gets, and whether the loop goes on.
//!
//! Invariants: a policy function is called once per failure and never about its own; an encoder that fails costs the text
//! it would have made, never a message.

use std::sync::Arc;
use std::time::Instant;

use super::batch::Shared;
use crate::call::{CallResult, Completion, ToolCall};
use crate::clock;
use crate::encode::{Said, fallback};
use crate::fence::dispose;
use crate::json::Json;
use crate::message::{AWAITING_USER, AskOptions, Halted, Message, Settled};
use crate::outcome::{Halt, Outcome, Output, Question};
use crate::policy::{Failure, OnToolError, Verdict};
use crate::tool::Tool;
use crate::tool_error::{Raised, ReturnRule, Timeout, ToolError};

/// A call that is over.
pub(super) struct Ended {
    /// Its place in the run's input.
    pub(super) index: usize,
    pub(super) message: Message,
    pub(super) settled: Settled,
    pub(super) halted: Option<Halted>,
}

/// Settles one completion.
pub(super) async fn settle(
    shared: &Shared,
    index: usize,
    completion: Completion,
    call: Option<ToolCall>,
    tool: &Tool,
) -> Ended {
    let mut message = Message::new(completion.id, completion.tool, String::new());
    message.attributes.clone_from(&tool.definition().attributes);
    let end = End { shared, index, message };
    match completion.result {
        CallResult::Outcome(Outcome::Ok(output)) => end.ok(output, call).await,
        CallResult::Outcome(Outcome::AskUser(question)) => end.ask(question),
        CallResult::Outcome(Outcome::Halt(halt)) => end.halt(halt, call).await,
        CallResult::Outcome(Outcome::Error(error)) => end.failed(Failure::Error(error), call).await,
        CallResult::ToolError(error) => end.failed(Failure::ToolError(error), call).await,
        CallResult::Refusal(refusal) => end.failed(Failure::Refusal(refusal), call).await,
    }
}

/// An end in the making.
struct End<'a> {
    shared: &'a Shared,
    index: usize,
    message: Message,
}

impl End<'_> {
    async fn ok(mut self, output: Output, call: Option<ToolCall>) -> Ended {
        match self.shared.encoder.encode(Said::Ok(&output)) {
            Ok(content) => {
                self.message.parts = output.parts;
                self.message.end_turn = output.end_turn;
                self.encoded(content, None)
            }
            Err(error) => self.failed(Failure::ToolError(ToolError::EncodingFailed(error.0)), call).await,
        }
    }

    fn ask(self, question: Question) -> Ended {
        let Self { index, mut message, .. } = self;
        AWAITING_USER.clone_into(&mut message.content);
        let Question { question, options, answer_schema, state } = question;
        let options = AskOptions { options, answer_schema, state };
        let settled = Settled::AskUser {
            tool_call_id: message.tool_call_id.clone(),
            tool_name: message.name.clone(),
            question: question.clone(),
            options: options.clone(),
        };
        let halted = Halted::AskUser { question, tool_call_id: message.tool_call_id.clone(), options };
        Ended { index, message, settled, halted: Some(halted) }
    }

    async fn halt(self, halt: Halt, call: Option<ToolCall>) -> Ended {
        let content = match self.shared.encoder.encode(Said::Value(&halt.result)) {
            Ok(content) => content,
            Err(error) => return self.failed(Failure::ToolError(ToolError::EncodingFailed(error.0)), call).await,
        };
        let Self { index, mut message, .. } = self;
        message.content.clone_from(&content);
        let Halt { reason, result } = halt;
        let tool_call_id = message.tool_call_id.clone();
        let settled = Settled::Halt {
            tool_call_id: tool_call_id.clone(),
            reason: reason.clone(),
            result: result.clone(),
            content,
        };
        Ended { index, message, settled, halted: Some(Halted::Handler { reason, tool_call_id, result }) }
    }

    /// Asks the policy about a failure.
    async fn failed(self, failure: Failure, call: Option<ToolCall>) -> Ended {
        let function = match &self.shared.options.on_tool_error {
            OnToolError::Continue => return self.reported(&failure),
            OnToolError::Halt => return self.halted(&failure, None),
            OnToolError::Decide(function) => Arc::clone(function),
        };
        // A thread of its own: one that never answers takes nobody else's, and is given up after the call's time.
        let (started, budget) = (Instant::now(), self.shared.options.tool_timeout);
        let Ok(timers) = clock::timers() else { return self.halted(&failure, None) };
        let call = call.unwrap_or_else(|| ToolCall::new(&*self.message.tool_call_id, &*self.message.name, ""));
        let about = failure.clone();
        let asked = timers.spawn_blocking(move || function(&call, &about));
        match clock::before(started.checked_add(budget), asked).await {
            Some(Ok(Verdict::Continue(replacement))) => self.replaced(&replacement),
            Some(Ok(Verdict::Halt)) => self.halted(&failure, None),
            Some(Err(error)) => {
                let said = match error.try_into_panic() {
                    Ok(panic) => {
                        let said = Raised::panicked(&*panic).panic_message.unwrap_or_default();
                        dispose(panic);
                        said
                    }
                    Err(error) => error.to_string(),
                };
                let rule = ReturnRule::Policy { detail: said.clone() };
                self.halted(&Failure::ToolError(ToolError::InvalidReturn(rule)), Some(said))
            }
            None => {
                let late = Timeout::Blocked { budget, used: started.elapsed() };
                self.halted(&Failure::ToolError(ToolError::Timeout(late)), None)
            }
        }
    }

    /// What a policy function put in a failure's place.
    fn replaced(self, replacement: &Json) -> Ended {
        match self.shared.encoder.encode(Said::Value(replacement)) {
            Ok(content) => self.encoded(content, None),
            Err(error) => self.halted(&Failure::ToolError(ToolError::EncodingFailed(error.0)), None),
        }
    }

    /// The model gets the failure.
    fn reported(mut self, failure: &Failure) -> Ended {
        self.message.is_error = true;
        let content = self.shared.encoder.encode(Said::Failure(failure)).unwrap_or_else(|_| fallback(failure));
        self.encoded(content, None)
    }

    /// The same, and the loop does not go on.
    fn halted(self, failure: &Failure, exception: Option<String>) -> Ended {
        let halted = Halted::ToolError { tool_call_id: self.message.tool_call_id.clone(), exception };
        Ended { halted: Some(halted), ..self.reported(failure) }
    }

    fn encoded(self, content: String, halted: Option<Halted>) -> Ended {
        let Self { index, mut message, .. } = self;
        message.content.clone_from(&content);
        Ended { index, settled: Settled::Encoded { id: message.tool_call_id.clone(), content }, message, halted }
    }
}
