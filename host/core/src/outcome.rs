//! What a handler says: ok, error, ask the user, or halt.
//!
//! In: a guest's answer or a native closure's. Out: [`Outcome`].
//! Invariants: exactly one of four shapes (contract, section 2). Nothing of the host's own is expressible here.
//! Not here: [`ToolError`](crate::ToolError), which the host says when the handler could not say anything.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::{Json, present};

/// Halt reasons that belong to the loop. A handler that uses one gets `invalid_return`. Source: contract, section 3.
pub const RESERVED_HALT_REASONS: [&str; 6] =
    ["ask_user", "max_turns", "halt_when", "tool_error", "cancelled", "completed"];

/// Parts of one answer, at most. Each is an item of what a model reads, and costs more than its bytes.
pub const MAX_PARTS: usize = 100;

/// The handler's answer.
///
/// # Shape
/// As JSON: an object with one member:
/// `{"ok": {"value", "message"?, "parts"?, "end_turn"?, "extensions"?}}`,
/// `{"error": {"message", "data"?, "retryable"?, "retry_after_ms"?}}`,
/// `{"ask_user": {"question", "options"?, "answer_schema"?, "state"?}}` or `{"halt": {"reason", "result"}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Success.
    Ok(Output),
    /// The handler reports failure. Passed through unchanged.
    Error(HandlerError),
    /// Suspend the loop and ask a person.
    AskUser(Question),
    /// Stop the loop with this result.
    Halt(Halt),
}

impl Outcome {
    /// Success with a value and nothing beside it.
    pub fn ok(value: impl Into<Json>) -> Self {
        Self::Ok(Output::new(value))
    }

    /// Failure with a message and nothing beside it.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(HandlerError::new(message))
    }

    /// Bytes of all its text and content together, which is what the limit of a result counts.
    #[must_use]
    pub fn size(&self) -> u64 {
        let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.as_str().len());
        let bytes = match self {
            Self::Ok(output) => {
                let extensions = output.extensions.iter().map(|(name, value)| name.len() + value.as_str().len());
                output.value.as_str().len()
                    + output.message.as_ref().map_or(0, String::len)
                    + output.parts.iter().map(Part::size).sum::<usize>()
                    + extensions.sum::<usize>()
            }
            Self::Error(error) => error.message.len() + json(&error.data),
            Self::AskUser(ask) => ask.question.len() + json(&ask.options) + json(&ask.answer_schema) + json(&ask.state),
            Self::Halt(halt) => halt.reason.len() + halt.result.as_str().len(),
        };
        bytes as u64
    }

    /// Looks at every part that is JSON, until one is not as it should be.
    pub(crate) fn each_json<E>(&self, mut look: impl FnMut(&'static str, &Json) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Ok(output) => {
                look("value", &output.value)?;
                output.extensions.values().try_for_each(|json| look("extensions", json))
            }
            Self::Error(error) => error.data.iter().try_for_each(|json| look("data", json)),
            Self::AskUser(ask) => {
                [("options", &ask.options), ("answer_schema", &ask.answer_schema), ("state", &ask.state)]
                    .into_iter()
                    .try_for_each(|(name, json)| json.iter().try_for_each(|json| look(name, json)))
            }
            Self::Halt(halt) => look("result", &halt.result),
        }
    }
}

impl From<Value> for Outcome {
    fn from(value: Value) -> Self {
        Self::ok(value)
    }
}

impl<T: Into<Json>, E: std::fmt::Display> From<Result<T, E>> for Outcome {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::ok(value),
            Err(error) => Self::error(error.to_string()),
        }
    }
}

/// What an `ok` carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Output {
    /// The result. Where it is `null`, a model gets the message instead.
    pub value: Json,
    /// A line for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Content beside the value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The model need not speak after this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end_turn: bool,
    /// Fields of later contract versions, passed through.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Json>,
}

impl Output {
    /// A value and nothing beside it.
    pub fn new(value: impl Into<Json>) -> Self {
        Self { value: value.into(), message: None, parts: Vec::new(), end_turn: false, extensions: BTreeMap::new() }
    }

    /// A message and no value: the value is `null`, and a model gets the message.
    pub fn from_message(message: impl Into<String>) -> Self {
        Self::new(Json::null()).with_message(message)
    }

    /// With a line for a person.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// With one more piece of content.
    #[must_use]
    pub fn with_part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// The text that a model gets where the value is `null`: the message, or no text at all beside parts. None where the
    /// value, `null` included, is all that there is.
    pub(crate) fn stand_in(&self) -> Option<&str> {
        if self.value.as_str() != "null" {
            return None;
        }
        let message = self.message.as_deref().filter(|message| !message.is_empty());
        message.or_else(|| (!self.parts.is_empty()).then_some(""))
    }
}

/// A piece of content beside the value.
///
/// # Shape
/// As JSON: `{"type": "text" | "image" | "audio" | "resource_link", …}` with the fields by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A pointer to something elsewhere.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// Its short name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

impl Part {
    fn size(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image(media) | Self::Audio(media) => media.mime_type.len() + media.data.len(),
            Self::ResourceLink { uri, name, description, mime_type } => {
                let beside = [name, description, mime_type].map(|text| text.as_ref().map_or(0, String::len));
                uri.len() + beside.iter().sum::<usize>()
            }
        }
    }
}

/// Bytes with a media type.
///
/// # Shape
/// As JSON: `{"mime_type", "data"}`, the bytes in base64 with padding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Media type, `image/png` for instance.
    pub mime_type: String,
    /// The bytes.
    #[serde(with = "base64_text")]
    pub data: Vec<u8>,
}

/// The handler's own report of failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HandlerError {
    /// What went wrong, for a model.
    pub message: String,
    /// More of it, in the handler's own form.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub data: Option<Json>,
    /// Whether the same call may succeed later. Absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// When to try again, in milliseconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl HandlerError {
    /// A message and nothing beside it.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), data: None, retryable: None, retry_after_ms: None }
    }

    /// With more of it, in the handler's own form.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Worth another try after this time.
    #[must_use]
    pub fn retryable_after(mut self, wait: Duration) -> Self {
        self.retryable = Some(true);
        self.retry_after_ms = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }
}

/// A question to a person. The cell is gone while the person thinks: `state` is all that stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The question.
    pub question: String,
    /// What to offer.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub options: Option<Json>,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer_schema: Option<Json>,
    /// Handed back with the answer. From an executor with a [`Sealer`](crate::Sealer), which takes at most
    /// [`MAX_STATE`](crate::MAX_STATE) bytes, it comes sealed: a JSON string that says nothing to anybody else.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub state: Option<Json>,
}

impl Question {
    /// A question and nothing beside it.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), options: None, answer_schema: None, state: None }
    }

    /// With this to offer.
    #[must_use]
    pub fn with_options(mut self, options: impl Into<Json>) -> Self {
        self.options = Some(options.into());
        self
    }

    /// With this JSON Schema of the answer.
    #[must_use]
    pub fn with_answer_schema(mut self, schema: impl Into<Json>) -> Self {
        self.answer_schema = Some(schema.into());
        self
    }

    /// With this, to be handed back with the answer.
    #[must_use]
    pub fn with_state(mut self, state: impl Into<Json>) -> Self {
        self.state = Some(state.into());
        self
    }
}

/// A terminal result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Halt {
    /// Any word but [`RESERVED_HALT_REASONS`]. An empty one is an `invalid_return`.
    pub reason: String,
    /// The result of the loop.
    pub result: Json,
}

impl Halt {
    /// Stop for this reason with this result.
    pub fn new(reason: impl Into<String>, result: impl Into<Json>) -> Self {
        Self { reason: reason.into(), result: result.into() }
    }
}

/// Bytes as standard base64 with padding.
mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        STANDARD.encode(bytes).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
