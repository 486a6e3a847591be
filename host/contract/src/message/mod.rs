//! The output of a run: a message for each call, a stream of events, the reason of a halt.
//!
//! A run makes many tool calls of one model turn under one policy. For each call it returns one
//! [`Message`] for the model, with the encoded result. A [`RunEvent`] is one event of its stream:
//! an event of a call, the settled end of a call, or the halt. [`SettledCall`] says how a call
//! ended for the agent loop; [`RunHalt`] says why the loop must stop: a question to a person, a
//! halt by the tool, or a failure under a policy that halts.
//!
//! Not here: the code that makes these values, in `run` and `step`.
//!
//! Source: docs/contract.md, section 3.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::error::Error;
use super::event::Event;
use super::json::Json;
use super::outcome::{Part, Question};

pub mod encode;
pub mod failure;
mod form;
pub mod view;

/// A tool's message to the model.
///
/// # Shape
/// As JSON: `{"role": "tool", "tool_call_id", "name", "content", "message"?, "parts"?, "is_error"?,
/// "end_turn"?, "attributes"?}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename(serialize = "tool"))]
#[non_exhaustive]
pub struct Message {
    /// The call that it answers.
    pub tool_call_id: String,
    /// The tool.
    pub name: String,
    /// The encoded result.
    pub content: String,
    /// The handler's line for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Content beside the encoded result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// True if the call failed, as far as the model is concerned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// True if the handler said that the model's turn can end after this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end_turn: bool,
    /// Free metadata of the tool's definition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
}

impl Message {
    /// The content of the message of a call that waits for a person. Source: docs/contract.md,
    /// section 3.
    pub const AWAITING_USER: &str = "<awaiting user response>";

    /// Creates a message with this content and no other fields.
    pub fn new(
        tool_call_id: impl Into<String>,
        name: impl Into<String>,
        content: impl Into<String>,
    ) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            name: name.into(),
            content: content.into(),
            message: None,
            parts: Vec::new(),
            is_error: false,
            end_turn: false,
            attributes: BTreeMap::new(),
        }
    }

    /// Marks the message as that of a call that failed.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Adds a piece of content.
    #[must_use]
    pub fn with_part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }
}

/// One event of a run. For each call, in this order: `Call(Started)`, any number of
/// `Call(Progress)` and `Call(Log)`, `Call(Completed)`, and exactly one of `Encoded`, `AskUser` and
/// `Halt`. If the run halted, `RunHalt` is its last event.
///
/// # Shape
/// As JSON: the event itself; its `type` tells which. `RunHalt` is `{"type": "run_halted", "halt":
/// {"halted_reason", …}}`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum RunEvent {
    /// An event of a call, as an observer of that call gets it.
    Call(Event),
    /// The settled end of a call.
    Settled {
        /// The way in which the call ended.
        #[serde(flatten)]
        settled: SettledCall,
        /// The call's message, the same as in `RunOutcome`. Not part of the event's JSON.
        #[serde(skip)]
        message: Message,
    },
    /// The run halted. Emitted once, after the events of every call.
    #[serde(serialize_with = "run_halted")]
    Halted(RunHalt),
    /// The run could not start. This is its only event.
    Error(RunFailure),
}

fn run_halted<S: Serializer>(halted: &RunHalt, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("type", "run_halted")?;
    map.serialize_entry("halt", halted)?;
    map.end()
}

/// The settled end of a call.
///
/// # Shape
/// As JSON: `{"type": "tool_result_encoded" | "ask_user_requested" | "tool_halt", …}` with the
/// fields by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum SettledCall {
    /// The result as the model gets it, also of a failure that the policy let pass.
    #[serde(rename = "tool_result_encoded")]
    Encoded {
        /// The call.
        id: String,
        /// The text that the model gets.
        content: String,
    },
    /// A person is asked, and the loop waits for the answer.
    #[serde(rename = "ask_user_requested")]
    AskUser {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The question.
        question: String,
        /// The options of the answer, as the handler gave them. `null` in JSON if it gave no
        /// options.
        options: Option<Json>,
        /// JSON Schema of the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer_schema: Option<Json>,
        /// The state to send back with the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<Json>,
    },
    /// The handler halts the loop.
    #[serde(rename = "tool_halt")]
    Halt {
        /// The call.
        tool_call_id: String,
        /// Its reason.
        reason: String,
        /// Its result.
        result: Json,
        /// The encoded result.
        content: String,
    },
}

impl SettledCall {
    /// The call's id.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Encoded { id, .. } => id,
            Self::AskUser { tool_call_id, .. } | Self::Halt { tool_call_id, .. } => tool_call_id,
        }
    }

    /// The content of the call's message.
    #[must_use]
    pub fn content(&self) -> &str {
        match self {
            Self::Encoded { content, .. } | Self::Halt { content, .. } => content,
            Self::AskUser { .. } => Message::AWAITING_USER,
        }
    }
}

/// The error of a run that did not start.
///
/// # Shape
/// As JSON: `{"type": "error", "reason", "message", "hint"}`.
#[derive(Debug)]
pub struct RunFailure(pub Error);

impl Serialize for RunFailure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("type", "error")?;
        map.serialize_entry("reason", self.0.reason())?;
        map.serialize_entry("message", &self.0.to_string())?;
        map.serialize_entry("hint", &self.0.hint())?;
        map.end()
    }
}

/// The reason for which the loop has to stop, from the halting call that is earliest in the run's
/// input.
///
/// # Shape
/// As JSON: `{"halted_reason": "ask_user", "pending_question", "pending_tool_call_id",
/// "ask_user_opts", "answer_schema"?, "state"?}` with the handler's options or `null`, or
/// `{"halted_reason": REASON, "halt_tool_call_id", "halt_result"}` with the handler's reason, or
/// `{"halted_reason": "tool_error", "halt_tool_call_id", "on_tool_error_exception"?}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "halted_reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunHalt {
    /// A person is asked.
    AskUser {
        /// The question.
        #[serde(rename = "pending_question")]
        question: String,
        /// The call that waits.
        #[serde(rename = "pending_tool_call_id")]
        tool_call_id: String,
        /// The options of the answer, as the handler gave them.
        #[serde(rename = "ask_user_opts")]
        options: Option<Json>,
        /// JSON Schema of the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer_schema: Option<Json>,
        /// The state to send back with the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<Json>,
    },
    /// A call failed, under a policy that halts.
    ToolError {
        /// The call.
        #[serde(rename = "halt_tool_call_id")]
        tool_call_id: String,
        /// The panic message of the policy function, if it panicked.
        #[serde(rename = "on_tool_error_exception", skip_serializing_if = "Option::is_none")]
        exception: Option<String>,
    },
    /// A handler halted.
    // Its own reason stands in the place of the tag.
    #[serde(untagged)]
    Handler {
        /// Its reason.
        #[serde(rename = "halted_reason")]
        reason: String,
        /// The call.
        #[serde(rename = "halt_tool_call_id")]
        tool_call_id: String,
        /// Its result.
        #[serde(rename = "halt_result")]
        result: Json,
    },
}

impl RunHalt {
    /// The id of the call that halted the run.
    #[must_use]
    pub fn tool_call_id(&self) -> &str {
        match self {
            Self::AskUser { tool_call_id, .. }
            | Self::Handler { tool_call_id, .. }
            | Self::ToolError { tool_call_id, .. } => tool_call_id,
        }
    }

    /// Creates the halt of a call that asks a question.
    #[doc(hidden)]
    pub fn by(question: Question, tool_call_id: String) -> Self {
        let Question { question, options, answer_schema, state } = question;
        Self::AskUser { question, tool_call_id, options, answer_schema, state }
    }
}
