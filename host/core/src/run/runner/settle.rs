//! Turns the completion of a call (its result and usage) into the message for the model, and
//! decides if the agent loop continues.
//!
//! A run calls [`settle`] for each call that has ended. It encodes the result, counts the call in
//! the tool's statistics, and returns a [`CallSettlement`]: the message, the usage (the resources
//! that the call took), and the reason to halt the loop, if there is one, such as a question to a
//! person. A failure goes by the run's policy: `settle` returns the future of the decision, which
//! the run awaits. A policy function is called once for each failure and never about its own
//! failure. If the encoder fails, the call counts as failed, and its message is still sent.
//!
//! `Batch` builds one [`Shared`] for a run: the executor, the encoder, the options and the tools of
//! all its calls.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use toolcell_contract::call::{CallResult, Completion, ToolCall, usage::Usage};
use toolcell_contract::json::Json;
use toolcell_contract::message::encode::{
    EncodeError, EncodeInput, GuardedEncoder, fallback, into_plain,
};
use toolcell_contract::message::{Message, RunEvent, RunHalt, SettledCall, failure::Failure};
use toolcell_contract::outcome::{Halt, HandlerError, Outcome, Output, tool_error::ToolError};

use super::RunOptions;
use super::ask::{Decision, decide};
use crate::executor::Executor;
use crate::run::registry::Toolbox;
use crate::tool::{Tool, statistics::Counting};

/// The state that the calls of a run share.
pub(super) struct Shared {
    pub(super) executor: Executor,
    pub(super) encoder: GuardedEncoder,
    pub(super) options: RunOptions,
    pub(super) deciding: Arc<Semaphore>,
    /// The tools at the start of the run. Later registrations do not change it.
    pub(super) toolbox: Toolbox,
}

/// A call that is over.
pub(super) struct CallSettlement {
    /// Its place in the run's input.
    pub(super) index: usize,
    pub(super) message: Message,
    pub(super) usage: Usage,
    /// The reason why the loop does not continue, if there is one.
    pub(super) halted: Option<RunHalt>,
}

impl CallSettlement {
    /// Returns the last event of the call.
    pub(super) fn settled(self) -> RunEvent {
        let Message { tool_call_id: id, name: tool_name, content, .. } = self.message.clone();
        let settled = match self.halted {
            Some(RunHalt::AskUser { question, tool_call_id, options, answer_schema, state }) => {
                SettledCall::AskUser {
                    tool_call_id,
                    tool_name,
                    question,
                    options,
                    answer_schema,
                    state,
                }
            }
            Some(RunHalt::Handler { reason, tool_call_id, result }) => {
                SettledCall::Halt { tool_call_id, reason, result, content }
            }
            Some(RunHalt::ToolError { .. } | _) | None => SettledCall::Encoded { id, content },
        };
        RunEvent::Settled { settled, message: self.message }
    }
}

/// Settles one completion and counts it. Returns the future of the decision if the policy has to
/// decide about a failure. It is on the heap, because it is rare and would make every call's future
/// larger. `call` is the copy for a policy function. For a tool that is not registered, the model
/// gets the text `unknown`.
pub(super) fn settle<'a>(
    shared: &'a Shared,
    (index, unknown): (usize, Option<String>),
    completion: Completion,
    counting: Counting<'_>,
    (call, tool): (Option<Box<ToolCall>>, &'a Tool),
) -> Result<CallSettlement, BoxFuture<'a, CallSettlement>> {
    let mut message = Message::new(completion.id, completion.tool, String::new());
    message.attributes = completion.attributes;
    let mut end = End { shared, index, message, usage: completion.usage, unknown };
    let encoded = end.encode(completion.result);
    counting.end_as(completion.usage.wall, encoded.as_ref().err());
    match encoded {
        Ok((content, halted)) => Ok(end.settled(content, halted)),
        Err(failure) => Err(Box::pin(end.decided(failure, call, tool))),
    }
}

/// The state of an end that is being made.
struct End<'a> {
    shared: &'a Shared,
    index: usize,
    message: Message,
    usage: Usage,
    /// The text for the model if the tool is not registered.
    unknown: Option<String>,
}

impl End<'_> {
    /// Returns the text for the model and the reason of a halt, or the failure if the result is one
    /// or cannot be encoded.
    fn encode(&mut self, result: CallResult) -> Result<(String, Option<RunHalt>), Failure> {
        let encoder = &self.shared.encoder;
        let tool_call_id = || self.message.tool_call_id.clone();
        let encoded = match result {
            CallResult::Outcome(Outcome::Ok(output)) => {
                let encoded = encoder.encode_custom(EncodeInput::Ok(&output)).transpose();
                let stand_in = output.stand_in().map(str::to_owned);
                let Output { value, message, parts, end_turn, .. } = output;
                encoded.map(|encoded| {
                    self.message.message = message;
                    self.message.parts = parts;
                    self.message.end_turn = end_turn;
                    (encoded.or(stand_in).unwrap_or_else(|| into_plain(value)), None)
                })
            }
            CallResult::Outcome(Outcome::AskUser(question)) => {
                let halted = RunHalt::by(question, tool_call_id());
                Ok((Message::AWAITING_USER.to_owned(), Some(halted)))
            }
            CallResult::Outcome(Outcome::Halt(Halt { reason, result, .. })) => {
                encoder.encode(EncodeInput::Value(&result)).map(|content| {
                    let tool_call_id = tool_call_id();
                    (content, Some(RunHalt::Handler { reason, tool_call_id, result }))
                })
            }
            CallResult::Outcome(Outcome::Error(error)) => return Err(Failure::Error(error)),
            CallResult::ToolError(error) => return Err(Failure::ToolError(error)),
            CallResult::Refusal(refusal) => return Err(Failure::Refusal(refusal)),
        };
        encoded.map_err(not_encoded)
    }

    /// Applies the policy to a failure. `call` is the copy for a function.
    async fn decided(
        self,
        failure: Failure,
        call: Option<Box<ToolCall>>,
        tool: &Tool,
    ) -> CallSettlement {
        let Shared { options, deciding, encoder, .. } = self.shared;
        let (id, name) = (&*self.message.tool_call_id, &*self.message.name);
        let stop = || (options.signal(id), options.call.stop_grace);
        let call = || call.map_or_else(|| ToolCall::new(id, name, ""), |call| *call);
        let limits = self.shared.executor.limits().tightened(&options.limits_of_a_call());
        let asked = (deciding, tool.tightened(limits).timeout);
        let encode = |value: &Json| encoder.encode(EncodeInput::Value(value)).map_err(not_encoded);
        match decide(&options.on_tool_error, asked, call, failure, stop, encode).await {
            Decision::Report(failure) => self.reported(&failure),
            Decision::Replace(content) => self.settled(content, None),
            Decision::Halt(failure, exception) => {
                let halted = RunHalt::ToolError { tool_call_id: id.to_owned(), exception };
                CallSettlement { halted: Some(halted), ..self.reported(&failure) }
            }
        }
    }

    /// Reports the failure to the model.
    fn reported(mut self, failure: &Failure) -> CallSettlement {
        self.message.is_error = true;
        let is_not_found = matches!(failure, Failure::ToolError(ToolError::NotFound));
        let words = self.unknown.take().filter(|_| is_not_found);
        let named = words.map(|words| Failure::Error(HandlerError::new(words)));
        let failure = named.as_ref().unwrap_or(failure);
        let encoded = self.shared.encoder.encode(EncodeInput::Failure(failure));
        self.settled(encoded.unwrap_or_else(|_| fallback(failure)), None)
    }

    fn settled(mut self, content: String, halted: Option<RunHalt>) -> CallSettlement {
        self.message.content = content;
        CallSettlement { index: self.index, message: self.message, usage: self.usage, halted }
    }
}

fn not_encoded(error: EncodeError) -> Failure {
    Failure::ToolError(ToolError::EncodingFailed(error.0))
}
