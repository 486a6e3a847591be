//! The formats of OpenAI's two APIs, chat completions and responses.
//!
//! `Provider` calls these functions: `chat_tool` and `responses_tool` write a definition,
//! `chat_calls` and `responses_calls` read the calls of a response, `chat_result` and
//! `responses_result` write a tool's message. Functions are declared with `"strict": false`: strict
//! mode requires that every member is required and every object closed, which third-party schemas
//! do not satisfy. The root of a schema must be a plain object, and an array must describe its
//! items; other schemas are rewritten, with notes. Chat results are text only; responses take
//! images.
//!
//! Source: the API references of `chat/completions` and `responses`, the guide to function calling.

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use toolcell_contract::definition::Definition;
use toolcell_contract::message::Message;
use toolcell_contract::outcome::Media;

use super::{description, set};
use crate::calls::Calls;
use crate::note::Changes;
use crate::part::{base64, text, text_and_images};
use crate::place::Place;
use crate::schema::{Open, Rewrite, each_subschema, is_array};
use crate::{Converted, Note, Provider};

/// Finish reasons of a chat completion that was cut: OpenAI's, then those of compatible providers.
const CHAT_CUTS: [&str; 6] = [
    "length",
    "content_filter",
    "max_tokens",
    "model_length",
    "error",
    "insufficient_system_resource",
];
/// Statuses of an incomplete response.
const RESPONSES_CUTS: [&str; 5] = ["incomplete", "in_progress", "queued", "cancelled", "failed"];
/// Characters. The longest description of a function in chat completions. Source: the API's error
/// messages.
const MAX_DESCRIPTION: usize = 1024;
/// Keywords that the root of a schema must not have, beside the alternatives, which are merged
/// before.
const NOT_AT_TOP: [&str; 3] = ["const", "enum", "not"];

pub(crate) fn chat_tool(definition: &Definition, changes: &mut Changes<'_>) -> Converted {
    let mut function = function(definition, changes)?;
    if definition.description.chars().nth(MAX_DESCRIPTION).is_some() {
        let kept: String = definition.description.chars().take(MAX_DESCRIPTION - 1).collect();
        function["description"] = (kept + "…").into();
        let change = format!("cut to {MAX_DESCRIPTION} characters");
        changes.note("/description", &change, "the API refuses a request with a longer one");
    }
    Ok(json!({"type": "function", "function": function}))
}

pub(crate) fn responses_tool(definition: &Definition, changes: &mut Changes<'_>) -> Converted {
    let mut tool = function(definition, changes)?;
    tool["type"] = "function".into();
    Ok(tool)
}

fn function(definition: &Definition, changes: &mut Changes<'_>) -> Converted {
    let mut rewrite = Rewrite::new(definition.parameters.as_ref(), "/parameters", changes);
    let mut parameters = rewrite.object(&mut Open::new())?;
    let reason = "the API does not allow it at the top";
    for keyword in NOT_AT_TOP {
        if let Some(value) = parameters.remove(keyword) {
            rewrite.describe_keyword(&mut parameters, keyword, &value, "/parameters", reason);
        }
    }
    let mut parameters = rewrite.plain(parameters)?;
    each_subschema(&mut parameters, &mut |schema| {
        if is_array(schema) {
            schema.entry("items").or_insert_with(|| json!({}));
        }
    });
    // `strict` is set explicitly, because the default is false in one API and true in the other.
    let mut function = json!({"name": definition.name, "parameters": parameters, "strict": false});
    set(&mut function, "description", description(definition));
    Ok(function)
}

pub(crate) fn chat_calls(response: &Place<'_>) -> Converted<Calls> {
    const EXPECTED: &str =
        "a response with `choices`, a choice, an assistant message, or its `tool_calls`";
    if response.value.is_array() {
        return chat_list(response, false);
    }
    let (choice, message) = match response.get("choices") {
        Some(choices) => match choices.only("one choice: pass only the choice that you use")? {
            Some(choice) => {
                let expected = "the message of a choice; put a streamed answer together first";
                let message = choice.need("message", expected)?;
                (choice, message)
            }
            None => return Ok(Calls::default()),
        },
        None => (response.clone(), response.get("message").unwrap_or_else(|| response.clone())),
    };
    if let Some(call) = message.get("function_call") {
        return Err(call.malformed("`tool_calls`: a `function_call` has no id to answer to"));
    }
    // Pieces come in a `delta`, or before the reason.
    let is_whole = has(&choice, "message") && has(&choice, "finish_reason");
    let calls = match message.get("tool_calls") {
        Some(calls) => chat_list(&calls, is_whole)?,
        None if has(&message, "role") || has(&message, "content") => Calls::default(),
        None => return Err(message.malformed(EXPECTED)),
    };
    Ok(calls.cut(Provider::OpenAi, choice.word("finish_reason", &CHAT_CUTS)))
}

fn has(place: &Place<'_>, name: &str) -> bool {
    place.get(name).is_some()
}

/// Returns the calls of a list, which may have pieces of a stream instead unless it `is_whole`.
/// AG-UI uses the same form.
pub(super) fn chat_list(list: &Place<'_>, is_whole: bool) -> Converted<Calls> {
    let calls = list.items("a list of tool calls")?;
    let is_function = |call: &Place<'_>| {
        let is_bare = !has(call, "type")
            && (has(call, "function") || !(has(call, "name") || has(call, "choices")));
        call.is_word("type", "function") || (is_bare && call.value.is_object())
    };
    let functions = Place::calls_among(calls, is_function)?;
    if !is_whole && has_pieces(&functions) {
        return Err(list.malformed(
            "whole calls: these are pieces of a stream, to be put together by their `index`",
        ));
    }
    Ok(Calls::of(functions.iter().map(|call| {
        let function = call.need("function", "the function that is called");
        call.read(call.text("id", "the id of the call"), function, "arguments")
    })))
}

/// Returns true if items with an `index` are pieces of a stream. Some APIs write an `index` in
/// whole calls too.
fn has_pieces(calls: &[Place<'_>]) -> bool {
    let mut places = BTreeSet::new();
    calls.iter().any(|call| {
        let Some(index) = call.get("index") else { return false };
        let member =
            |name: &str| call.value.get("function").and_then(|function| function.get(name));
        let is_whole = match member("arguments") {
            // Arguments that a tree cannot hold count as whole: that call is refused alone.
            Some(Value::String(text)) => serde_json::from_str::<IgnoredAny>(text).is_ok(),
            arguments => arguments.is_some(),
        };
        !has(call, "id")
            || member("name").is_none()
            || !is_whole
            || !places.insert(index.value.to_string())
    })
}

pub(crate) fn responses_calls(response: &Place<'_>) -> Converted<Calls> {
    const EXPECTED: &str = "a response with `output`, or the list of its items";
    let is_list = response.value.is_array();
    let list = if is_list { response.clone() } else { response.need("output", EXPECTED)? };
    let items = list.items(EXPECTED)?;
    let calls = Place::calls_among(items, |item| item.is_word("type", "function_call"))?;
    let details = response.value.pointer("/incomplete_details/reason").and_then(Value::as_str);
    let cut = response.word("status", &RESPONSES_CUTS).map(|status| details.unwrap_or(status));
    Ok(Calls::of(calls.iter().map(|call| {
        let finished = if call.word("status", &["incomplete", "in_progress"]).is_some() {
            Err(call.malformed("a call that the model has finished"))
        } else {
            Ok(call.clone())
        };
        call.read(call.text("call_id", "the `call_id` of the call"), finished, "arguments")
    }))
    .cut(Provider::OpenAiResponses, cut))
}

pub(crate) fn chat_result(message: &Message, notes: &mut Vec<Note>) -> Value {
    let content = text(message, |_| false, notes);
    json!({"role": "tool", "tool_call_id": message.tool_call_id, "content": content})
}

pub(crate) fn responses_result(message: &Message, notes: &mut Vec<Note>) -> Value {
    let block = |media: &Media| {
        let url = format!("data:{};base64,{}", media.mime_type, base64(&media.data));
        json!({"type": "input_image", "image_url": url, "detail": "auto"})
    };
    let output = text_and_images(message, "input_text", block, notes);
    json!({"type": "function_call_output", "call_id": message.tool_call_id, "output": output})
}
