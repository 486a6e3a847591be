//! The format of Anthropic's API `messages`.
//!
//! `Provider` calls these functions: `tool` writes a definition, `calls` reads the `tool_use`
//! blocks of a message, `result` and `results` write all results into one user message, as the API
//! requires. The API accepts only a plain object at the root of a schema, with member names of the
//! form `[A-Za-z0-9_.-]{1,64}`; alternatives at the root are merged and noted, and another name is
//! refused. Images of four types are passed on, other media are described in text.
//!
//! Source: the API reference of `messages`, the guide to tool use, and the API's error messages.

use serde_json::{Value, json};
use toolcell_contract::definition::Definition;
use toolcell_contract::json::inside;
use toolcell_contract::message::Message;
use toolcell_contract::outcome::Media;

use super::{description, set};
use crate::calls::Calls;
use crate::note::Changes;
use crate::part::{base64, text, text_and_images};
use crate::place::Place;
use crate::schema::{Open, Rewrite};
use crate::{Converted, Note, Provider};

/// Stop reasons of a message that was cut.
const CUTS: [&str; 3] = ["max_tokens", "model_context_window_exceeded", "refusal"];
/// Longest member name at the root, in characters.
const MAX_MEMBER: usize = 64;

pub(crate) fn tool(definition: &Definition, changes: &mut Changes<'_>) -> Converted {
    let mut rewrite = Rewrite::new(definition.parameters.as_ref(), "/parameters", changes);
    let object = rewrite.object(&mut Open::new())?;
    let schema = rewrite.plain(object)?;
    let members = schema.get("properties").and_then(Value::as_object);
    if let Some((name, _)) = members.into_iter().flatten().find(|(name, _)| !is_member_name(name)) {
        let problem = "a member's name may have 1 to 64 of the characters A-Z a-z 0-9 _ . -";
        return Err(changes.refusal(&inside("/parameters/properties", name), problem));
    }
    let mut tool = json!({"name": definition.name, "input_schema": schema});
    set(&mut tool, "description", description(definition));
    Ok(tool)
}

fn is_member_name(name: &str) -> bool {
    (1..=MAX_MEMBER).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

pub(crate) fn calls(response: &Place<'_>) -> Converted<Calls> {
    const EXPECTED: &str = "a message with `content`, or the list of its blocks";
    let blocks = if response.value.is_array() {
        response.items(EXPECTED)?
    } else {
        let content = response.need("content", EXPECTED)?;
        if content.value.is_string() { Vec::new() } else { content.items(EXPECTED)? }
    };
    let calls = Place::calls_among(blocks, |block| block.is_word("type", "tool_use"))?;
    let calls = calls
        .iter()
        .map(|call| call.read(call.text("id", "the id of the call"), Ok(call.clone()), "input"));
    Ok(Calls::of(calls).cut(Provider::Anthropic, response.word("stop_reason", &CUTS)))
}

/// Returns one message with every result: all results must be in the message that follows the
/// calls.
pub(crate) fn results(blocks: Vec<Value>) -> Vec<Value> {
    if blocks.is_empty() { Vec::new() } else { vec![json!({"role": "user", "content": blocks})] }
}

pub(crate) fn result(message: &Message, notes: &mut Vec<Note>) -> Value {
    let content = if message.is_error {
        // A failure may contain text only, which must not be empty.
        let said = text(message, |_| false, notes);
        if said.is_empty() { "the tool failed".into() } else { said.into() }
    } else {
        let block = |media: &Media| {
            let source = json!({"type": "base64", "media_type": media.mime_type, "data": base64(&media.data)});
            json!({"type": "image", "source": source})
        };
        text_and_images(message, "text", block, notes)
    };
    let mut block =
        json!({"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content});
    set(&mut block, "is_error", message.is_error.then_some(true));
    block
}
