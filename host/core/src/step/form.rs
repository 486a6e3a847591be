//! Writes a history entry as JSON, and reads it back.
//!
//! A loop stores conversations in this form, through serde. The JSON has `functionCall` and
//! `functionResponse` for the model, and optional members for the loop. Images and sounds appear
//! twice: complete in `parts`, and as a short description in `media`, which is not read back. A
//! response that is marked as an error is read as a failure or as a closed tool, any other as a
//! value.
//!
//! Source: docs/contract.md, section 6, stages 4 and 9.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolcell_contract::json::{Json, Members};
use toolcell_contract::outcome::{Media, Part};

use super::entry::{BLOCKED, FunctionResponse, HistoryEntry};

impl FunctionResponse {
    /// Returns the content of `result`.
    pub(super) fn content(&self) -> Content<'_> {
        match self {
            Self::Result { result } => Content::Result(result),
            Self::Error { error, data } => Content::Error { error, data: data.as_ref() },
            Self::Blocked { status, function_name, allowed_tool_names } => {
                Content::Blocked { status, function_name, allowed_tool_names }
            }
        }
    }
}

impl Serialize for FunctionResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("result", self.content())])
    }
}

/// The content of a response's `result`.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Result(&'a Json),
    Error {
        error: &'a Json,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Json>,
    },
    #[serde(rename_all = "camelCase")]
    Blocked {
        status: &'a str,
        function_name: &'a str,
        allowed_tool_names: &'a [String],
    },
}

impl Serialize for HistoryEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (id, name) = (self.id.as_deref(), self.name.as_str());
        let media: Vec<_> = self.parts.iter().filter_map(MediaNote::of).collect();
        let mut map = serializer.serialize_map(None)?;
        let half = |args, response| Half { id, name, args, response };
        map.serialize_entry("functionCall", &half(Some(&self.args), None))?;
        map.serialize_entry("functionResponse", &half(None, Some(&self.response)))?;
        if !self.response.is_success() {
            map.serialize_entry("is_error", &true)?;
        }
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
        if !self.extensions.is_empty() {
            map.serialize_entry("extensions", &self.extensions)?;
        }
        map.end()
    }
}

/// The call or the response of an entry.
#[derive(Serialize)]
struct Half<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a FunctionResponse>,
}

/// The description of an image or a sound without its bytes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MediaNote<'a> {
    r#type: &'static str,
    mime_type: &'a str,
    bytes: usize,
}

impl<'a> MediaNote<'a> {
    fn of(part: &'a Part) -> Option<Self> {
        let note = |r#type, media: &'a Media| Self {
            r#type,
            mime_type: &media.mime_type,
            bytes: media.data.len(),
        };
        match part {
            Part::Image(media) => Some(note("image", media)),
            Part::Audio(media) => Some(note("audio", media)),
            Part::Text { .. } | Part::Resource(_) | Part::ResourceLink { .. } => None,
        }
    }
}

/// `media` is not read, because `parts` contains the same.
impl<'de> Deserialize<'de> for HistoryEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut of = <Members>::deserialize(deserializer)?;
        let mut call: Members = of.needed("functionCall")?;
        let mut answer: Members = of.needed("functionResponse")?;
        let args: Json = call.needed("args")?;
        if !args.as_str().trim_start().starts_with('{') {
            return Err(D::Error::custom("`args` is not an object"));
        }
        let result: Json = answer.needed::<Members, D::Error>("response")?.needed("result")?;
        let is_error: bool = of.present("is_error")?.unwrap_or_default();
        Ok(Self {
            id: call.optional("id")?,
            name: call.needed("name")?,
            args,
            response: if is_error {
                failure(&result)?
            } else {
                FunctionResponse::Result { result }
            },
            message: of.optional("message")?,
            parts: of.present("parts")?.unwrap_or_default(),
            halted: of.optional("halted")?,
            attributes: of.present("attributes")?.unwrap_or_default(),
            extensions: of.present("extensions")?.unwrap_or_default(),
        })
    }
}

/// Reads the content of a failure's `result`.
fn failure<E: serde::de::Error>(result: &Json) -> Result<FunctionResponse, E> {
    let mut of: Members = serde_json::from_str(result.as_str()).map_err(E::custom)?;
    if let Some(error) = of.optional::<_, E>("error")? {
        return Ok(FunctionResponse::Error { error, data: of.present::<_, E>("data")? });
    }
    match (
        of.optional::<String, E>("status")?,
        of.optional::<_, E>("functionName")?,
        of.optional::<_, E>("allowedToolNames")?,
    ) {
        (Some(status), Some(function_name), Some(allowed_tool_names)) if status == BLOCKED => {
            Ok(FunctionResponse::Blocked { status: BLOCKED, function_name, allowed_tool_names })
        }
        _ => Err(E::missing_field("error")),
    }
}
