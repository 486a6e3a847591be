//! The answer of a tool's handler: ok, error, ask the user, or halt.
//!
//! A handler is the code behind a tool, a guest (the WebAssembly code of a tool) in a cell (a fresh
//! WebAssembly instance for one call) or a Rust closure. Its answer becomes an [`Outcome`], which
//! has exactly one of the four shapes: a value for the model, a failure that the handler itself
//! reports, a question to a person, or the end of the agent loop. The executor checks the outcome
//! and passes it on unchanged, except for a question's state, which it seals (encrypts for the
//! client). A handler cannot express the host's own errors.
//!
//! Not here: the error that the host reports if the handler gives no valid answer, in `tool_error`;
//! the reasons for which a call is refused before, in `refusal`.
//!
//! Source: docs/contract.md, section 2.

mod part;
pub mod refusal;
pub mod tool_error;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json::{Json, present};

pub use part::{Media, Part, Resource, ResourceContent};

/// The answer of a handler.
///
/// # Shape
/// As JSON: an object with one member: `{"ok": {"value", "message"?, "parts"?, "end_turn"?,
/// "extensions"?}}`, `{"error": {"message", "data"?, "retryable"?, "retry_after_ms"?}}`,
/// `{"ask_user": {"question", "options"?, "answer_schema"?, "state"?}}` or `{"halt": {"reason",
/// "result"}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Success.
    Ok(Output),
    /// The handler reports a failure. It is passed on unchanged.
    Error(HandlerError),
    /// Suspend the agent loop and ask a person.
    AskUser(Question),
    /// Stop the agent loop with this result.
    Halt(Halt),
}

impl Outcome {
    /// The maximum number of parts of one answer. A model reads each as an item, which costs more
    /// than its bytes.
    pub const MAX_PARTS: usize = 100;

    /// Creates a success with this value.
    pub fn ok(value: impl Into<Json>) -> Self {
        Self::Ok(Output::new(value))
    }

    /// Creates a failure with this message.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(HandlerError::new(message))
    }

    /// Returns the bytes of all texts and contents together. The limit of a result counts these.
    #[must_use]
    pub fn size(&self) -> u64 {
        let mut bytes = match self {
            Self::Ok(output) => {
                output.message.as_ref().map_or(0, String::len)
                    + output.parts.iter().map(Part::size).sum::<usize>()
                    + output.extensions.keys().map(String::len).sum::<usize>()
            }
            Self::Error(error) => error.message.len(),
            Self::AskUser(ask) => ask.question.len(),
            Self::Halt(halt) => halt.reason.len(),
        };
        let Ok(()) = self.each_json(|_, json| {
            bytes += json.as_str().len();
            Ok::<_, Infallible>(())
        });
        bytes as u64
    }

    /// Calls `look` with the name and the value of each JSON part; stops at the first error.
    #[doc(hidden)]
    pub fn each_json<E>(
        &self,
        mut look: impl FnMut(&'static str, &Json) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Ok(output) => {
                look("value", &output.value)?;
                output.extensions.values().try_for_each(|json| look("extensions", json))
            }
            Self::Error(error) => error.data.iter().try_for_each(|json| look("data", json)),
            Self::AskUser(ask) => [
                ("options", &ask.options),
                ("answer_schema", &ask.answer_schema),
                ("state", &ask.state),
            ]
            .into_iter()
            .try_for_each(|(name, json)| json.iter().try_for_each(|json| look(name, json))),
            Self::Halt(halt) => look("result", &halt.result),
        }
    }
}

impl From<Value> for Outcome {
    fn from(value: Value) -> Self {
        Self::ok(value)
    }
}

impl From<Json> for Outcome {
    fn from(value: Json) -> Self {
        Self::ok(value)
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self::Ok(output)
    }
}

impl From<HandlerError> for Outcome {
    fn from(error: HandlerError) -> Self {
        Self::Error(error)
    }
}

/// The text of the error becomes the message.
impl<T: Into<Self>, E: std::fmt::Display> From<Result<T, E>> for Outcome {
    fn from(result: Result<T, E>) -> Self {
        result.map_or_else(|error| Self::error(error.to_string()), Into::into)
    }
}

/// The error is kept whole. [`HandlerError`] does not implement `Display`, so that it cannot be
/// reduced to its message.
impl<T: Into<Self>> From<Result<T, HandlerError>> for Outcome {
    fn from(result: Result<T, HandlerError>) -> Self {
        result.map_or_else(Self::Error, Into::into)
    }
}

/// The content of an `ok`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Output {
    /// The result. If it is `null`, the model gets the message instead.
    pub value: Json,
    /// A line for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Content beside the value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// True if the model's turn can end after this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end_turn: bool,
    /// Fields of later contract versions, passed on unchanged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Json>,
}

impl Output {
    /// Creates an output with this value and nothing else.
    pub fn new(value: impl Into<Json>) -> Self {
        Self {
            value: value.into(),
            message: None,
            parts: Vec::new(),
            end_turn: false,
            extensions: BTreeMap::new(),
        }
    }

    /// Creates an output with a message and no value: the value is `null`, and the model gets the
    /// message.
    pub fn from_message(message: impl Into<String>) -> Self {
        Self::new(Json::null()).with_message(message)
    }

    /// Sets the line for a person.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Adds one piece of content.
    #[must_use]
    pub fn with_part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Returns the text that a model gets in place of a `null` value: the message, or an empty text
    /// if there are only parts. `None` if the value is not `null`, or if there is neither a message
    /// nor a part.
    #[doc(hidden)]
    pub fn stand_in(&self) -> Option<&str> {
        if self.value.as_str() != "null" {
            return None;
        }
        let message = self.message.as_deref().filter(|message| !message.is_empty());
        message.or_else(|| (!self.parts.is_empty()).then_some(""))
    }
}

/// A failure that the handler reports.
///
/// # Shape
/// As JSON: `{"message", "data"?, "retryable"?, "retry_after_ms"?}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HandlerError {
    /// The message of the failure. The model reads it.
    pub message: String,
    /// Details for programs, in a form that the handler chooses.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub data: Option<Json>,
    /// True if the same call may succeed later. Absent if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// When to try again, in milliseconds from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl HandlerError {
    /// Creates an error with this message and nothing else.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), data: None, retryable: None, retry_after_ms: None }
    }

    /// Sets the details.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Marks the error as retryable after this time.
    #[must_use]
    pub fn retryable_after(mut self, wait: Duration) -> Self {
        self.retryable = Some(true);
        self.retry_after_ms = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }
}

/// A question to a person. No cell exists while the person thinks: only `state` is kept, by the
/// caller.
///
/// # Shape
/// As JSON: `{"question", "options"?, "answer_schema"?, "state"?}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The question.
    pub question: String,
    /// The choices to offer.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub options: Option<Json>,
    /// JSON Schema of the answer. An executor with a `Sealer` refuses an answer that does not fit
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer_schema: Option<Json>,
    /// State that the handler gets back with the answer. An executor with a `Sealer` seals it: it
    /// becomes a JSON string that only the same key can open, of at most `Sealer::MAX_STATE` bytes.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub state: Option<Json>,
}

impl Question {
    /// Creates a question with this text and nothing else.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), options: None, answer_schema: None, state: None }
    }

    /// Sets the choices.
    #[must_use]
    pub fn with_options(mut self, options: impl Into<Json>) -> Self {
        self.options = Some(options.into());
        self
    }

    /// Sets the JSON Schema of the answer.
    #[must_use]
    pub fn with_answer_schema(mut self, schema: impl Into<Json>) -> Self {
        self.answer_schema = Some(schema.into());
        self
    }

    /// Sets the state, which the handler gets back with the answer.
    #[must_use]
    pub fn with_state(mut self, state: impl Into<Json>) -> Self {
        self.state = Some(state.into());
        self
    }
}

/// The end of the agent loop, with its result.
///
/// # Shape
/// As JSON: `{"reason", "result"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Halt {
    /// A word that is not blank and not one of [`Halt::RESERVED_REASONS`].
    pub reason: String,
    /// The result of the loop.
    pub result: Json,
}

impl Halt {
    /// Halt reasons that the host reserves for the agent loop: `ask_user`, `max_turns`,
    /// `halt_when`, `tool_error`, `cancelled`, `completed`. A handler that uses one gets
    /// `invalid_return`, also in other letters or with spaces around it: `Completed`, `completed `.
    pub const RESERVED_REASONS: [&str; 6] =
        ["ask_user", "max_turns", "halt_when", "tool_error", "cancelled", "completed"];

    /// Creates a halt for this reason with this result.
    pub fn new(reason: impl Into<String>, result: impl Into<Json>) -> Self {
        Self { reason: reason.into(), result: result.into() }
    }
}
