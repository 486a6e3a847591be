//! What a step leaves in the history: the call and its response, as one pair.
//!
//! In: how a call ended. Out: a [`HistoryEntry`].
//! Invariants: never one half without the other; whatever fails to be encoded, the model gets an answer.
//! Source: contract, section 6, stages 4 and 9.

use std::collections::{BTreeMap, BTreeSet};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::raw_call::Judged;
use crate::call::{CallResult, Completion};
use crate::encode::{Fenced, Said, plain};
use crate::json::Json;
use crate::message::{AWAITING_USER, Halted, Message};
use crate::outcome::{Halt, Media, Outcome, Part};
use crate::policy::Failure;
use crate::tool::Tool;
use crate::tool_error::ToolError;

/// A call and its response.
///
/// # Shape
/// As JSON: `{"functionCall": {"id"?, "name", "args"}, "functionResponse": {"id"?, "name", "response"}}`. Beside these two,
/// where there is something to say: `message` (a line for a person), `media` (`[{"type", "mimeType", "bytes"}]`, what images and sounds there are), `parts`
/// (all content beside the result), `halted` (why the loop is not to go on) and `attributes`. The loop reads those; the
/// model gets the two.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The provider's id of the call, if it sent one.
    pub id: Option<String>,
    /// The tool, as the model called it.
    pub name: String,
    /// The arguments; empty where there were more of them than a call may have.
    pub args: Map<String, Value>,
    /// What the model gets.
    pub response: FunctionResponse,
    /// The handler's line for a person.
    pub message: Option<String>,
    /// Content beside it.
    pub parts: Vec<Part>,
    /// A person is asked, or the handler halts the loop.
    pub halted: Option<Halted>,
    /// Free metadata of the tool's definition.
    pub attributes: BTreeMap<String, Value>,
}

/// What the model gets.
///
/// # Shape
/// As JSON: `{"result"}`, `{"error", "data"?}`, or `{"status", "functionName", "allowedToolNames"}` for a tool that is
/// closed in this turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FunctionResponse {
    /// Success.
    Result {
        /// The value, or the encoder's text for it.
        result: Json,
    },
    /// Failure.
    Error {
        /// What went wrong.
        error: Json,
        /// More of it, in the handler's own form.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Json>,
    },
    /// The tool was not dispatched: deliberate mode keeps it closed. Source: contract, section 6, stage 4.
    #[serde(rename_all = "camelCase")]
    Blocked {
        /// `blocked_by_deliberate_tool_mode`.
        status: &'static str,
        /// The tool, as the model called it.
        function_name: String,
        /// What it may call instead.
        allowed_tool_names: Vec<String>,
    },
}

impl FunctionResponse {
    /// A failure in words.
    pub(super) fn error(message: impl Into<String>) -> Self {
        Self::Error { error: text(message), data: None }
    }

    /// A tool that deliberate mode keeps closed. Source: contract, section 6, stage 4.
    pub(super) fn blocked(name: &str, allowed: &BTreeSet<&str>) -> Self {
        Self::Blocked {
            status: "blocked_by_deliberate_tool_mode",
            function_name: name.to_owned(),
            allowed_tool_names: allowed.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// A failure as the encoder puts it, or in its own words where there is none or it fails too.
    fn failed(failure: &Failure, encoder: Option<&Fenced>) -> Self {
        if let Some(Ok(encoded)) = encoder.map(|encoder| encoder.encode(Said::Failure(failure))) {
            return Self::error(encoded);
        }
        let data = if let Failure::Error(error) = failure { error.data.clone() } else { None };
        Self::Error { error: text(failure.to_string()), data }
    }

    /// A value as the encoder puts it, or as it is where there is none.
    fn value(said: Said<'_>, value: &Json, encoder: Option<&Fenced>) -> Self {
        match encoder.map(|encoder| encoder.encode(said)) {
            None => Self::Result { result: value.clone() },
            Some(Ok(encoded)) => Self::Result { result: text(encoded) },
            Some(Err(error)) => Self::failed(&Failure::ToolError(ToolError::EncodingFailed(error.0)), encoder),
        }
    }

    pub(super) fn is_success(&self) -> bool {
        matches!(self, Self::Result { .. })
    }
}

fn text(text: impl Into<String>) -> Json {
    Json::from(Value::String(text.into()))
}

impl HistoryEntry {
    /// The response as a message, as a run makes it, for a loop that talks to its model in a
    /// [`Provider`](crate::Provider)'s format: a string as it is, everything else as JSON, a failure as `{"error", "data"?}`.
    /// Where the provider sent no id, it is empty; whether the turn ends, the step alone knows.
    #[must_use]
    pub fn message(&self) -> Message {
        let (id, name) = (self.id.clone().unwrap_or_default(), self.name.clone());
        let message = match &self.response {
            FunctionResponse::Result { result } => Message::new(id, name, plain(result)),
            // Strings and checked JSON: nothing in it can fail.
            error @ (FunctionResponse::Error { .. } | FunctionResponse::Blocked { .. }) => {
                Message::new(id, name, serde_json::to_string(error).unwrap_or_default()).failed()
            }
        };
        Message {
            message: self.message.clone(),
            parts: self.parts.clone(),
            attributes: self.attributes.clone(),
            ..message
        }
    }

    /// The entry of a call that no tool answered.
    pub(super) fn unanswered(judged: Judged, response: FunctionResponse) -> Self {
        let args = judged.arguments();
        let Judged { call, id, .. } = judged;
        Self {
            id,
            name: call.name,
            args,
            response,
            message: None,
            parts: Vec::new(),
            halted: None,
            attributes: BTreeMap::new(),
        }
    }

    /// The entry of a call that ended like this, and whether the model need not speak after it.
    pub(super) fn answered(
        judged: Judged,
        tool: &Tool,
        completion: Completion,
        encoder: Option<&Fenced>,
    ) -> (Self, bool) {
        let Completion { id: tool_call_id, result, .. } = completion;
        let (mut message, mut parts, mut halted, mut end_turn) = (None, Vec::new(), None, false);
        let response = match result {
            CallResult::Outcome(Outcome::Ok(output)) => {
                let stand_in = output.stand_in().map(text);
                let response =
                    FunctionResponse::value(Said::Ok(&output), stand_in.as_ref().unwrap_or(&output.value), encoder);
                (message, parts, end_turn) = (output.message, output.parts, output.end_turn);
                response
            }
            CallResult::Outcome(Outcome::AskUser(question)) => {
                (halted, end_turn) = (Some(Halted::by(question, tool_call_id)), true);
                FunctionResponse::Result { result: text(AWAITING_USER) }
            }
            CallResult::Outcome(Outcome::Halt(Halt { reason, result })) => {
                let response = FunctionResponse::value(Said::Value(&result), &result, encoder);
                (halted, end_turn) = (Some(Halted::Handler { reason, tool_call_id, result }), true);
                response
            }
            CallResult::Outcome(Outcome::Error(error)) => FunctionResponse::failed(&Failure::Error(error), encoder),
            CallResult::ToolError(error) => FunctionResponse::failed(&Failure::ToolError(error), encoder),
            CallResult::Refusal(refusal) => FunctionResponse::failed(&Failure::Refusal(refusal), encoder),
        };
        let attributes = tool.definition().attributes.clone();
        (Self { message, parts, halted, attributes, ..Self::unanswered(judged, response) }, end_turn)
    }
}

impl Serialize for HistoryEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (id, name) = (self.id.as_deref(), self.name.as_str());
        let media: Vec<_> = self.parts.iter().filter_map(MediaNote::of).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("functionCall", &Half { id, name, args: Some(&self.args), response: None })?;
        map.serialize_entry("functionResponse", &Half { id, name, args: None, response: Some(&self.response) })?;
        if let Some(message) = &self.message {
            map.serialize_entry("message", message)?;
        }
        if !media.is_empty() {
            map.serialize_entry("media", &media)?;
        }
        if !self.parts.is_empty() {
            map.serialize_entry("parts", &self.parts)?;
        }
        if let Some(halted) = &self.halted {
            map.serialize_entry("halted", halted)?;
        }
        if !self.attributes.is_empty() {
            map.serialize_entry("attributes", &self.attributes)?;
        }
        map.end()
    }
}

/// One half of the pair.
#[derive(Serialize)]
struct Half<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a FunctionResponse>,
}

/// What there is to know of an image or a sound without its bytes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MediaNote<'a> {
    r#type: &'static str,
    mime_type: &'a str,
    bytes: usize,
}

impl<'a> MediaNote<'a> {
    fn of(part: &'a Part) -> Option<Self> {
        let note = |r#type, media: &'a Media| Self { r#type, mime_type: &media.mime_type, bytes: media.data.len() };
        match part {
            Part::Image(media) => Some(note("image", media)),
            Part::Audio(media) => Some(note("audio", media)),
            Part::Text { .. } | Part::ResourceLink { .. } => None,
        }
    }
}
