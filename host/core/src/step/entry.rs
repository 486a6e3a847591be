//! The history entry of a step: the model's call and the response to it.
//!
//! At the end of a step, the stepper makes a [`HistoryEntry`] from the call and its result, which
//! the agent loop puts into the conversation. An entry always has both halves: a call that no tool
//! answered, or a result that cannot be encoded, gets a response that says so. A
//! [`FunctionResponse`] is a value, a failure, or the note that the tool is closed in this turn.
//! [`HistoryEntry::message`] gives the response as a message like that of a run.
//!
//! Source: docs/contract.md, section 6, stages 4 and 9.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use toolcell_contract::call::CallResult;
use toolcell_contract::json::Json;
use toolcell_contract::message::encode::{EncodeInput, GuardedEncoder, plain};
use toolcell_contract::message::{Message, RunHalt, failure::Failure};
use toolcell_contract::outcome::{Halt, Outcome, Part, tool_error::ToolError};

use super::raw_call::ParsedCall;
use crate::tool::Tool;

/// A call and its response.
///
/// # Shape
/// As JSON: `{"functionCall": {"id"?, "name", "args"}, "functionResponse": {"id"?, "name",
/// "response": {"result"}}}`. Optional members beside these two: `is_error` (the response is a
/// failure), `message` (a line for a person), `media` (`[{"type", "mimeType", "bytes"}]`, the
/// images and sounds), `parts` (all content beside the result), `halted` (the reason why the loop
/// must not continue), `attributes` and `extensions`. The loop reads these; the model gets the two.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The provider's id of the call, if it sent one.
    pub id: Option<String>,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments: an object as the model wrote it. It is empty if they exceed the limit for
    /// arguments.
    pub args: Json,
    /// The response for the model.
    pub response: FunctionResponse,
    /// The handler's text for a person.
    pub message: Option<String>,
    /// Images and other content beside the result.
    pub parts: Vec<Part>,
    /// Set if the loop must stop: a question for a person, a halt by the handler, or a failure
    /// under a policy that halts.
    pub halted: Option<RunHalt>,
    /// Free metadata of the tool's definition.
    pub attributes: BTreeMap<String, Value>,
    /// Fields of later contract versions, passed through from the handler's answer.
    pub extensions: BTreeMap<String, Json>,
}

/// The response for the model.
///
/// # Shape
/// As JSON: `{"result": …}`, with the value, with `{"error", "data"?}`, or with `{"status",
/// "functionName", "allowedToolNames"}` for a tool that is closed in this turn.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionResponse {
    /// Success.
    Result {
        /// The value, or the encoder's text for it.
        result: Json,
    },
    /// Failure.
    Error {
        /// The message of the failure.
        error: Json,
        /// More details, in the handler's own form.
        data: Option<Json>,
    },
    /// The tool was not dispatched, because deliberate mode does not allow it in this turn. Source:
    /// docs/contract.md, section 6, stage 4.
    Blocked {
        /// `blocked_by_deliberate_tool_mode`.
        status: &'static str,
        /// The tool, as the model called it.
        function_name: String,
        /// The tools that the model may call instead.
        allowed_tool_names: Vec<String>,
    },
}

/// The status of a tool that deliberate mode does not allow. Source: docs/contract.md, section 6,
/// stage 4.
pub(super) const BLOCKED: &str = "blocked_by_deliberate_tool_mode";

impl FunctionResponse {
    /// Returns the response for the model, or the failure if the result is one or cannot be encoded.
    pub(super) fn of(
        result: &CallResult,
        encoder: Option<&GuardedEncoder>,
    ) -> Result<Self, Failure> {
        match result {
            CallResult::Outcome(Outcome::Ok(output)) => {
                let stand_in = output.stand_in().map(text);
                Self::value(
                    EncodeInput::Ok(output),
                    stand_in.as_ref().unwrap_or(&output.value),
                    encoder,
                )
            }
            CallResult::Outcome(Outcome::Halt(halt)) => {
                Self::value(EncodeInput::Value(&halt.result), &halt.result, encoder)
            }
            CallResult::Outcome(Outcome::AskUser(_)) => {
                Ok(Self::Result { result: text(Message::AWAITING_USER) })
            }
            CallResult::Outcome(Outcome::Error(error)) => Err(Failure::Error(error.clone())),
            CallResult::ToolError(error) => Err(Failure::ToolError(error.clone())),
            CallResult::Refusal(refusal) => Err(Failure::Refusal(refusal.clone())),
        }
    }

    /// Creates a failure with this message.
    pub(super) fn error(message: impl Into<String>) -> Self {
        Self::Error { error: text(message), data: None }
    }

    /// Creates the response for a tool that deliberate mode does not allow. Source:
    /// docs/contract.md, section 6, stage 4.
    pub(super) fn blocked(name: &str, allowed: &BTreeSet<&str>) -> Self {
        Self::Blocked {
            status: BLOCKED,
            function_name: name.to_owned(),
            allowed_tool_names: allowed.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// Creates the response for a failure, with the encoder's text. Without an encoder, or if it
    /// fails, the failure's own text is used.
    pub(super) fn failed(failure: &Failure, encoder: Option<&GuardedEncoder>) -> Self {
        if let Some(Ok(encoded)) =
            encoder.map(|encoder| encoder.encode(EncodeInput::Failure(failure)))
        {
            // The usual object is kept as an object, so that the model reads the same text as in a
            // run.
            return match serde_json::from_str(&encoded) {
                Ok(Encoded { error, data }) => Self::Error { error, data },
                Err(_) => Self::error(encoded),
            };
        }
        Self::Error { error: text(failure.to_string()), data: failure.data().map(Cow::into_owned) }
    }

    /// Creates the response for a value, with the encoder's text, or with the value itself if there
    /// is no encoder.
    pub(super) fn value(
        said: EncodeInput<'_>,
        value: &Json,
        encoder: Option<&GuardedEncoder>,
    ) -> Result<Self, Failure> {
        match encoder.map(|encoder| encoder.encode(said)) {
            None => Ok(Self::Result { result: value.clone() }),
            Some(Ok(encoded)) => Ok(Self::Result { result: text(encoded) }),
            Some(Err(error)) => Err(Failure::ToolError(ToolError::EncodingFailed(error.0))),
        }
    }

    pub(super) fn is_success(&self) -> bool {
        matches!(self, Self::Result { .. })
    }
}

/// A failure in the form of the default encoder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    error: Json,
    data: Option<Json>,
}

fn text(text: impl Into<String>) -> Json {
    Json::from(Value::String(text.into()))
}

impl HistoryEntry {
    /// Returns the response as a message like that of a run, for a loop that talks to its model in
    /// a [`Provider`](crate::Provider)'s format: a string as it is, everything else as JSON, a
    /// failure as `{"error", "data"?}`. If the provider sent no id, the message's id is empty. Its
    /// `end_turn` is always false: see [`Step::History`](crate::step::Step::History).
    #[must_use]
    pub fn message(&self) -> Message {
        let (id, name) = (self.id.clone().unwrap_or_default(), self.name.clone());
        let mut message = match &self.response {
            FunctionResponse::Result { result } => Message::new(id, name, plain(result)),
            // It consists of strings and checked JSON, so it cannot fail.
            error @ (FunctionResponse::Error { .. } | FunctionResponse::Blocked { .. }) => {
                Message::new(id, name, serde_json::to_string(&error.content()).unwrap_or_default())
                    .failed()
            }
        };
        message.message.clone_from(&self.message);
        message.parts.clone_from(&self.parts);
        message.attributes.clone_from(&self.attributes);
        message
    }

    /// Creates the entry of a call that no tool answered.
    pub(super) fn unanswered(judged: ParsedCall, response: FunctionResponse) -> Self {
        let args = judged.arguments();
        let ParsedCall { call, id, .. } = judged;
        Self {
            id,
            name: call.name,
            args,
            response,
            message: None,
            parts: Vec::new(),
            halted: None,
            attributes: BTreeMap::new(),
            extensions: BTreeMap::new(),
        }
    }

    /// Creates the entry of a call that a tool answered. Returns the entry, and true if the turn
    /// can end without another answer of the model. `said` is the handler's result, if it is not a
    /// failure.
    pub(super) fn answered(
        judged: ParsedCall,
        tool: &Tool,
        response: FunctionResponse,
        said: Option<CallResult>,
    ) -> (Self, bool) {
        let tool_call_id = judged.call.id.clone();
        let mut entry = Self::unanswered(judged, response);
        entry.attributes.clone_from(&tool.definition().attributes);
        let end_turn = match said {
            Some(CallResult::Outcome(Outcome::Ok(output))) => {
                (entry.message, entry.parts) = (output.message, output.parts);
                entry.extensions = output.extensions;
                output.end_turn
            }
            Some(CallResult::Outcome(Outcome::AskUser(question))) => {
                entry.halted = Some(RunHalt::by(question, tool_call_id));
                true
            }
            Some(CallResult::Outcome(Outcome::Halt(Halt { reason, result, .. }))) => {
                entry.halted = Some(RunHalt::Handler { reason, tool_call_id, result });
                true
            }
            Some(
                CallResult::Outcome(Outcome::Error(_))
                | CallResult::ToolError(_)
                | CallResult::Refusal(_),
            )
            | None => false,
        };
        (entry, end_turn)
    }
}
