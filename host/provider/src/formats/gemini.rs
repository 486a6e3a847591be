//! The format of Gemini's API `generateContent`.
//!
//! `Provider` calls these functions: `tool` and `tools` write definitions, `calls` reads the
//! `functionCall` parts of a candidate, `results` writes all results into one content. Parameters
//! are written in the API's own `Schema`, which every model and both endpoints support, not in
//! `parametersJsonSchema`, which only some support. A call without an id gets one from its index.
//! Numbers travel as doubles, so larger integers are written as text, with a note.
//!
//! Source: the API reference (`FunctionDeclaration`, `Schema`, `FunctionCall`, `FunctionResponse`),
//! and the API's error messages.

mod subset;

use std::borrow::Cow;

use serde_json::{Value, json};
use toolcell_contract::definition::Definition;
use toolcell_contract::json::{exact, parse_strict};
use toolcell_contract::message::Message;
use toolcell_contract::outcome::{Media, Part};

use super::set;
use crate::calls::Calls;
use crate::note::Changes;
use crate::part::{base64, is_empty, text};
use crate::place::{Place, is_placed, placed_id};
use crate::schema::Rewrite;
use crate::{Converted, Note, Provider};
use subset::Subset;

/// Image and audio types that models accept. Source: the guides to images and audio.
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
/// Finish reasons of a candidate that was cut.
const CUTS: [&str; 8] = [
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "OTHER",
];
/// The largest integer up to which a double is exact: numbers are sent as doubles.
const MAX_EXACT: u64 = 1 << 53;

pub(crate) fn tools(declarations: Vec<Value>) -> Value {
    if declarations.is_empty() {
        json!([])
    } else {
        json!([{"functionDeclarations": declarations}])
    }
}

pub(crate) fn tool(definition: &Definition, changes: &mut Changes<'_>) -> Converted {
    if !definition.name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return Err(changes.refusal("/name", "it must begin with a letter or an underscore"));
    }
    let (noted, document) = (changes.count(), definition.parameters.as_ref());
    let places = *changes.places;
    let parameters =
        Subset::new(Rewrite::new(document, "/parameters", changes)).parameters().or_else(|_| {
            // A schema that is too large with its recursion expanded may fit if it is expanded
            // once.
            changes.truncate(noted);
            *changes.places = places;
            Subset::new(Rewrite::new(document, "/parameters", changes).with_recursion(1))
                .parameters()
        })?;
    let mut tool = json!({"name": definition.name, "description": definition.description});
    if parameters.contains_key("properties") {
        tool["parameters"] = parameters.into();
    } else if let Some(Value::String(words)) = parameters.get("description")
        && !definition.description.contains(words.as_str())
    {
        // An object without members must be left out as a whole; its description is kept.
        tool["description"] = format!("{}\n{words}", definition.description).trim_start().into();
    }
    Ok(tool)
}

pub(crate) fn calls(response: &Place<'_>) -> Converted<Calls> {
    const EXPECTED: &str = "a response with `candidates`, a candidate, a content with `parts`, or the list of its parts";
    let candidate = match response.get("candidates") {
        Some(candidates) => {
            candidates.only("one candidate: pass only the candidate that you use")?
        }
        None => response
            .get("content")
            .filter(|content| content.value.is_object())
            .map(|_| response.clone()),
    };
    let mut cut = None;
    let parts = match candidate {
        Some(candidate) if candidate.is_word("finishReason", "MALFORMED_FUNCTION_CALL") => {
            return Err(candidate.malformed("a valid call: the model wrote a malformed one"));
        }
        Some(candidate) => {
            cut = candidate.word("finishReason", &CUTS);
            candidate.get("content").and_then(|content| content.get("parts"))
        }
        // No candidate, or the prompt was blocked.
        None if response.get("candidates").is_some()
            || response.get("promptFeedback").is_some() =>
        {
            None
        }
        None if response.value.is_array() => Some(response.clone()),
        None if response.get("role").is_some() => response.get("parts"),
        None => Some(response.need("parts", EXPECTED)?),
    };
    let Some(parts) = parts else { return Ok(Calls::default()) };
    let parts = parts.items(EXPECTED)?;
    let calls = Place::calls_among(parts, |part| part.get("functionCall").is_some())?;
    let calls = calls.iter().filter_map(|part| part.get("functionCall")).enumerate();
    Ok(Calls::of(calls.map(|(index, call)| {
        let placed = placed_id(index);
        let has_id = call.get("id").is_some();
        let id = if has_id { call.text("id", "the id of the call") } else { Ok(&*placed) };
        // Vertex AI can stream the arguments of one call in pieces.
        let is_piece = call.get("partialArgs").is_some() || call.value["willContinue"] == true;
        let whole = if is_piece {
            Err(call.malformed("a whole call: this is a piece of one"))
        } else {
            Ok(call.clone())
        };
        call.read(id, whole, "args")
    }))
    .cut(Provider::Gemini, cut))
}

/// Returns one content with every result: there must be as many results as there were calls.
pub(crate) fn results(messages: &[Message], notes: &mut Vec<Note>) -> Vec<Value> {
    let parts: Vec<_> = messages.iter().flat_map(|message| result(message, notes)).collect();
    if parts.is_empty() { Vec::new() } else { vec![json!({"role": "user", "parts": parts})] }
}

/// Returns the response, followed by its media.
fn result(message: &Message, notes: &mut Vec<Note>) -> Vec<Value> {
    let structured =
        parse_strict(&message.content).ok().filter(|value| value.is_object() || value.is_array());
    let response = match structured {
        Some(mut value) => {
            if let Cow::Owned(written) = exact(&message.content, is_double) {
                value = parse_strict(&written).unwrap_or(value);
                let change = "large numbers written as text";
                let reason = "numbers are sent as doubles, which can lose digits of a large number";
                notes.push(Note::new(&message.name, "/content", change, reason));
            }
            // Text beside the value goes into a member of its own, so that the value stays
            // unchanged.
            let mut without_value = message.clone();
            without_value.content.clear();
            let beside = text(&without_value, is_shown, notes);
            let mut response = match (message.is_error, value) {
                (true, error @ Value::Object(_)) if error.get("error").is_some() => error,
                (true, error) => json!({"error": error}),
                (false, output) => json!({"output": output}),
            };
            set(&mut response, "content", Some(beside).filter(|text| !text.is_empty()));
            response
        }
        None => {
            json!({if message.is_error { "error" } else { "output" }: text(message, is_shown, notes)})
        }
    };
    let mut function = json!({"name": message.name, "response": response});
    let id = message.tool_call_id.as_str();
    set(&mut function, "id", (!is_placed(id)).then_some(id));
    let media = message.parts.iter().filter_map(supported_media);
    let media = media.map(
        |media| json!({"inlineData": {"mimeType": media.mime_type, "data": base64(&media.data)}}),
    );
    std::iter::once(json!({"functionResponse": function})).chain(media).collect()
}

fn is_shown(part: &Part) -> bool {
    supported_media(part).is_some()
}

fn supported_media(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) | Part::Audio(media) => {
            Some(media).filter(|media| !is_empty(part) && MEDIA.contains(&media.mime_type.as_str()))
        }
        Part::Text { .. } | Part::Resource(_) | Part::ResourceLink { .. } => None,
    }
}

/// Returns true if a double holds this integer, and each smaller one, exactly.
fn is_double(number: &str) -> bool {
    number.trim_start_matches('-').parse::<u64>().is_ok_and(|size| size <= MAX_EXACT)
}
