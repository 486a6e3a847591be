//! Turns the completion of a call (its result and usage) into the message for the model, and
//! decides if the agent loop continues.
//!
//! A run calls [`settle`] for each call that has ended. It encodes the result, counts the call in
//! the tool's statistics, and returns a [`CallSettlement`]: the message, the usage (the resources
//! that the call took), and the next action, such as asking a person. A failure goes by the run's
//! policy: `settle` returns a [`Failed`], which the run awaits. A policy function is called once for
//! each failure and never about its own failure. If the encoder fails, the call counts as failed,
//! and its message is still sent.

use toolcell_contract::call::usage::Usage;
use toolcell_contract::call::{CallResult, Completion, ToolCall};
use toolcell_contract::json::Json;
use toolcell_contract::message::encode::{EncodeError, EncodeInput, fallback, into_plain};
use toolcell_contract::message::failure::Failure;
use toolcell_contract::message::{Message, RunEvent, RunHalt, SettledCall};
use toolcell_contract::outcome::tool_error::ToolError;
use toolcell_contract::outcome::{Halt, HandlerError, Outcome, Output, Question};

use super::ask::{Decision, decide};
use super::shared::Shared;
use crate::tool::Tool;
use crate::tool::statistics::Counting;

/// A call that is over.
pub(super) struct CallSettlement {
    /// Its place in the run's input.
    pub(super) index: usize,
    pub(super) message: Message,
    pub(super) usage: Usage,
    next: NextAction,
}

/// The next step after a call.
enum NextAction {
    Continue,
    Ask(Question),
    Halt { reason: String, result: Json },
    Fail { exception: Option<String> },
}

impl CallSettlement {
    /// Returns the reason why the loop does not continue, if there is one.
    pub(super) fn halted(&self) -> Option<RunHalt> {
        let id = || self.message.tool_call_id.clone();
        Some(match &self.next {
            NextAction::Continue => return None,
            NextAction::Ask(question) => RunHalt::by(question.clone(), id()),
            NextAction::Halt { reason, result } => RunHalt::Handler {
                reason: reason.clone(),
                tool_call_id: id(),
                result: result.clone(),
            },
            NextAction::Fail { exception } => {
                RunHalt::ToolError { tool_call_id: id(), exception: exception.clone() }
            }
        })
    }

    /// Returns the last event of the call.
    pub(super) fn settled(self) -> RunEvent {
        let Message { tool_call_id, name: tool_name, content, .. } = self.message.clone();
        let settled = match self.next {
            NextAction::Continue | NextAction::Fail { .. } => {
                SettledCall::Encoded { id: tool_call_id, content }
            }
            NextAction::Ask(Question { question, options, answer_schema, state, .. }) => {
                SettledCall::AskUser {
                    tool_call_id,
                    tool_name,
                    question,
                    options,
                    answer_schema,
                    state,
                }
            }
            NextAction::Halt { reason, result } => {
                SettledCall::Halt { tool_call_id, reason, result, content }
            }
        };
        RunEvent::Settled { settled, message: self.message }
    }
}

/// Settles one completion and counts it, or returns a [`Failed`] if the policy has to decide. For a
/// tool that is not registered, the model gets the text `unknown`.
pub(super) fn settle<'a>(
    shared: &'a Shared,
    (index, unknown): (usize, Option<String>),
    completion: Completion,
    counting: Counting<'_>,
) -> Result<CallSettlement, Box<Failed<'a>>> {
    let mut message = Message::new(completion.id, completion.tool, String::new());
    message.attributes = completion.attributes;
    let end = End { shared, index, message, usage: completion.usage, unknown };
    let ended = end.of(completion.result);
    counting.end_as(completion.usage.wall, ended.as_ref().err().map(|failed| &failed.failure));
    ended
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

/// A failed end, which the policy decides about.
pub(super) struct Failed<'a> {
    end: End<'a>,
    failure: Failure,
}

impl Failed<'_> {
    /// Applies the policy. `call` is the copy for a function.
    pub(super) async fn decided(self, call: Option<Box<ToolCall>>, tool: &Tool) -> CallSettlement {
        let Self { end, failure } = self;
        let Shared { options, deciding, encoder, .. } = end.shared;
        let (id, name) = (&*end.message.tool_call_id, &*end.message.name);
        let stop = || (options.signal(id), options.call.stop_grace);
        let call = || call.map_or_else(|| ToolCall::new(id, name, ""), |call| *call);
        let asked = (deciding, end.shared.time_of_a_call(tool));
        let encode = |value: &Json| encoder.encode(EncodeInput::Value(value)).map_err(not_encoded);
        match decide(&options.on_tool_error, asked, call, failure, stop, encode).await {
            Decision::Report(failure) => end.reported(&failure),
            Decision::Replace(content) => end.settled(content, NextAction::Continue),
            Decision::Halt(failure, exception) => end.halted(&failure, exception),
        }
    }
}

impl<'a> End<'a> {
    /// Returns the end of a result that is not a failure and can be encoded.
    fn of(self, result: CallResult) -> Result<CallSettlement, Box<Failed<'a>>> {
        match result {
            CallResult::Outcome(Outcome::Ok(output)) => self.ok(output),
            CallResult::Outcome(Outcome::AskUser(question)) => Ok(self.ask(question)),
            CallResult::Outcome(Outcome::Halt(halt)) => self.halt(halt),
            CallResult::Outcome(Outcome::Error(error)) => Err(self.failed(Failure::Error(error))),
            CallResult::ToolError(error) => Err(self.failed(Failure::ToolError(error))),
            CallResult::Refusal(refusal) => Err(self.failed(Failure::Refusal(refusal))),
        }
    }

    fn failed(self, failure: Failure) -> Box<Failed<'a>> {
        Box::new(Failed { end: self, failure })
    }

    fn ok(mut self, output: Output) -> Result<CallSettlement, Box<Failed<'a>>> {
        let encoded = self.shared.encoder.encode_custom(EncodeInput::Ok(&output)).transpose();
        let stand_in = output.stand_in().map(str::to_owned);
        let Output { value, message, parts, end_turn, .. } = output;
        match encoded {
            Ok(encoded) => {
                self.message.message = message;
                self.message.parts = parts;
                self.message.end_turn = end_turn;
                let content = encoded.or(stand_in).unwrap_or_else(|| into_plain(value));
                Ok(self.settled(content, NextAction::Continue))
            }
            Err(error) => Err(self.failed(not_encoded(error))),
        }
    }

    fn ask(self, question: Question) -> CallSettlement {
        self.settled(Message::AWAITING_USER.to_owned(), NextAction::Ask(question))
    }

    fn halt(self, Halt { reason, result, .. }: Halt) -> Result<CallSettlement, Box<Failed<'a>>> {
        match self.shared.encoder.encode(EncodeInput::Value(&result)) {
            Ok(content) => Ok(self.settled(content, NextAction::Halt { reason, result })),
            Err(error) => Err(self.failed(not_encoded(error))),
        }
    }

    /// Reports the failure to the model.
    fn reported(mut self, failure: &Failure) -> CallSettlement {
        self.message.is_error = true;
        let is_not_found = matches!(failure, Failure::ToolError(ToolError::NotFound));
        let words = self.unknown.take().filter(|_| is_not_found);
        let named = words.map(|words| Failure::Error(HandlerError::new(words)));
        let failure = named.as_ref().unwrap_or(failure);
        let content = self
            .shared
            .encoder
            .encode(EncodeInput::Failure(failure))
            .unwrap_or_else(|_| fallback(failure));
        self.settled(content, NextAction::Continue)
    }

    /// Reports the failure to the model and ends the loop.
    fn halted(self, failure: &Failure, exception: Option<String>) -> CallSettlement {
        CallSettlement { next: NextAction::Fail { exception }, ..self.reported(failure) }
    }

    fn settled(mut self, content: String, then: NextAction) -> CallSettlement {
        self.message.content = content;
        CallSettlement { index: self.index, message: self.message, usage: self.usage, next: then }
    }
}

fn not_encoded(error: EncodeError) -> Failure {
    Failure::ToolError(ToolError::EncodingFailed(error.0))
}
