//! Gemini: `generateContent`.
//!
//! Parameters are written in the API's own `Schema`, which every model and both endpoints know, not in
//! `parametersJsonSchema`, which some do.
//! Source: the API reference (`FunctionDeclaration`, `Schema`, `FunctionCall`, `FunctionResponse`), and the API's own
//! refusals.

mod subset;

use serde_json::{Map, Value, json};

use super::calls::Calls;
use super::note::Changes;
use super::part::{base64, text};
use super::place::{Place, is_placed, placed_id};
use super::schema::Rewrite;
use super::{Note, ProviderError};
use crate::definition::Definition;
use crate::json::parse_strict;
use crate::message::Message;
use crate::outcome::{Media, Part};
use subset::Subset;

/// What a model can look at and listen to. Source: the guides to images and audio.
const MEDIA: [&str; 11] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "audio/wav",
    "audio/mp3",
    "audio/aiff",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
];
/// The largest integer up to which a double holds each: numbers travel as doubles.
const MAX_EXACT: u64 = 1 << 53;

pub(super) fn tools(declarations: Vec<Value>) -> Value {
    if declarations.is_empty() { json!([]) } else { json!([{"functionDeclarations": declarations}]) }
}

pub(super) fn tool(definition: &Definition, changes: &mut Changes<'_>) -> Result<Value, ProviderError> {
    if !definition.name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return Err(changes.refusal("/name", "it must begin with a letter or an underscore"));
    }
    let rewrite = Rewrite::new(definition.parameters.as_ref(), "/parameters", changes);
    let parameters = Subset::new(rewrite).parameters()?;
    let mut tool = json!({"name": definition.name, "description": definition.description});
    if parameters.contains_key("properties") {
        tool["parameters"] = parameters.into();
    } else if let Some(Value::String(words)) = parameters.get("description")
        && !definition.description.contains(words.as_str())
    {
        // An object without members must be left out as a whole; what is said of it need not be.
        tool["description"] = format!("{}\n{words}", definition.description).trim_start().into();
    }
    Ok(tool)
}

pub(super) fn calls(response: &Place<'_>) -> Result<Calls, ProviderError> {
    const EXPECTED: &str = "a response with `candidates`, a content with `parts`, or the list of its parts";
    let parts = match response.get("candidates") {
        Some(candidates) => match candidates.only("one candidate: give the content of the one that counts")? {
            Some(candidate) if candidate.says("finishReason", "MALFORMED_FUNCTION_CALL") => {
                return Err(candidate.malformed("a call that the model could finish"));
            }
            Some(candidate) => candidate.get("content").and_then(|content| content.get("parts")),
            None => None,
        },
        // The prompt was blocked.
        None if response.get("promptFeedback").is_some() => None,
        None if response.value.is_array() => Some(response.clone()),
        None if response.get("role").is_some() => response.get("parts"),
        None => Some(response.need("parts", EXPECTED)?),
    };
    let Some(parts) = parts else { return Ok(Calls::default()) };
    let parts = parts.items(EXPECTED)?;
    let calls = parts.iter().filter_map(|part| part.get("functionCall")).enumerate();
    Ok(Calls::of(calls.map(|(index, call)| {
        let placed = placed_id(index);
        let id = if call.get("id").is_some() { call.text("id", "the id of the call") } else { Ok(placed.as_str()) };
        call.read(id, Ok(call.clone()), "args")
    })))
}

/// One content with every result: there must be as many of them as there were calls.
pub(super) fn results(messages: &[Message], notes: &mut Vec<Note>) -> Vec<Value> {
    let parts: Vec<_> = messages.iter().flat_map(|message| result(message, notes)).collect();
    if parts.is_empty() { Vec::new() } else { vec![json!({"role": "user", "parts": parts})] }
}

/// The response, and after it what it shows.
fn result(message: &Message, notes: &mut Vec<Note>) -> Vec<Value> {
    let said = text(message, |part| shown(part).is_some(), notes);
    let structured =
        parse_strict(&said).ok().filter(|value| (value.is_object() || value.is_array()) && is_exact(value));
    let response = match (message.is_error, structured) {
        (true, Some(error)) if error.get("error").is_some() => error,
        (true, error) => json!({"error": error.unwrap_or_else(|| said.into())}),
        (false, output) => json!({"output": output.unwrap_or_else(|| said.into())}),
    };
    let mut function =
        Map::from_iter([("name".to_owned(), message.name.as_str().into()), ("response".to_owned(), response)]);
    if !is_placed(&message.tool_call_id) {
        function.insert("id".into(), message.tool_call_id.as_str().into());
    }
    let media = message.parts.iter().filter_map(shown);
    let media = media.map(|media| json!({"inlineData": {"mimeType": media.mime_type, "data": base64(media)}}));
    std::iter::once(json!({"functionResponse": function})).chain(media).collect()
}

fn shown(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) | Part::Audio(media) => {
            Some(media).filter(|media| MEDIA.contains(&media.mime_type.as_str()))
        }
        Part::Text { .. } | Part::ResourceLink { .. } => None,
    }
}

/// Whether every number survives as a double. Text does in any case.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), ..) => whole <= MAX_EXACT,
            (None, Some(whole), _) => whole.unsigned_abs() <= MAX_EXACT,
            (None, None, double) => double.is_some_and(|double| double.abs() <= MAX_EXACT as f64),
        },
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
