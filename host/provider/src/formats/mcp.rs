//! The format of the Model Context Protocol, revision 2025-06-18, from the server's side.
//!
//! `Provider` calls these functions: `tool` writes a definition for `tools/list`, `call` reads a
//! `tools/call` request, `result` writes its `CallToolResult`. The envelope of JSON-RPC belongs to
//! the transport: a call's id is the request's id as text, and a result is the value of `result`.
//! Every kind of content part has a form here. A question (`ask_user`) has none except its text: a
//! server that can ask the client's user (elicit) does so before it answers.
//!
//! Source: the specification's schema, `Tool`, `CallToolRequest`, `CallToolResult`.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolcell_contract::call::ToolCall;
use toolcell_contract::definition::{Definition, Hints};
use toolcell_contract::json::{exact, fits, parse_strict};
use toolcell_contract::message::Message;
use toolcell_contract::outcome::{Media, Part, Resource, ResourceContent};

use super::{description, set};
use crate::note::Changes;
use crate::part::{base64, described, is_empty, media_type};
use crate::place::{Place, is_placed, placed_id};
use crate::schema::Rewrite;
use crate::{Converted, Note};

const EXPECTED: &str = "a `tools/call` request (`id`, `method`, `params`), or its `params` alone (`name`, `arguments`, `_meta`, `task`)";
/// The members of a request's `params`.
const PARAMS: [&str; 4] = ["name", "arguments", "_meta", "task"];
/// Method of the request that calls a tool.
const METHOD: &str = "tools/call";
/// The attribute of a definition that holds the tool's display name.
const TITLE: &str = "title";

pub(crate) fn tool(definition: &Definition, changes: &mut Changes<'_>) -> Converted {
    let mut rewrite = Rewrite::new(definition.parameters.as_ref(), "/parameters", changes);
    let input = rewrite.object_of_any_form()?;
    let mut tool = json!({"name": definition.name, "inputSchema": rewrite.plain(input)?});
    set(&mut tool, "description", description(definition));
    set(&mut tool, "title", definition.attributes.get(TITLE).and_then(Value::as_str));
    if let Some(output) = &definition.output {
        let mut rewrite = Rewrite::new(Some(output), "/output", changes);
        if rewrite.promises_an_object() {
            let output = rewrite.object_of_any_form()?;
            tool["outputSchema"] = rewrite.plain(output)?;
        } else {
            changes.note(
                "/output",
                "left out; such results are sent as text",
                "MCP allows only objects as structured results",
            );
        }
    }
    // Without hints from the author, the protocol's own defaults apply.
    if definition.hints != Hints::default() {
        let Hints { read_only, idempotent, destructive, open_world, .. } = definition.hints;
        tool["annotations"] = json!({
            "readOnlyHint": read_only,
            "idempotentHint": idempotent,
            "destructiveHint": destructive,
            "openWorldHint": open_world,
        });
    }
    Ok(tool)
}

pub(crate) fn call(request: &Place<'_>) -> Converted<ToolCall> {
    if request.get("method").is_none() && request.get("params").is_none() {
        request.need("name", EXPECTED)?;
        let is_other = |name: &String| !PARAMS.contains(&name.as_str());
        if request.value.as_object().is_some_and(|members| members.keys().any(is_other)) {
            return Err(request.malformed(EXPECTED));
        }
        return request.call(&placed_id(0), "arguments");
    }
    if !request.is_word("method", METHOD) {
        return Err(request.need("method", EXPECTED)?.malformed(EXPECTED));
    }
    let id = request.need("id", "the id of the request: a notification cannot be answered")?;
    request.need("params", EXPECTED)?.call(&id_text(&id)?, "arguments")
}

fn id_text(id: &Place<'_>) -> Converted<String> {
    match id.value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(id.malformed("a string or a number"))
        }
    }
}

pub(crate) fn result(message: &Message, notes: &mut Vec<Note>) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let said =
        (!message.content.is_empty() || message.parts.is_empty()).then(|| text(&message.content));
    let parts = message.parts.iter().enumerate().map(|(index, part)| {
        if is_empty(part) { text(&described(message, index, part, notes)) } else { block(part) }
    });
    let content: Value = said.into_iter().chain(parts).collect();
    let mut result = json!({"content": content, "isError": message.is_error});
    if !message.is_error
        && let Ok(structured @ Value::Object(_)) = parse_strict(&message.content)
    {
        if let Cow::Owned(_) = exact(&message.content, fits) {
            let change =
                "a large number loses digits in `structuredContent`; the text has all of them";
            let reason = "JSON values hold 64-bit integers and doubles";
            notes.push(Note::new(&message.name, "/content", change, reason));
        }
        result["structuredContent"] = structured;
    }
    if !is_placed(&message.tool_call_id) {
        result["_meta"]["toolcell/tool_call_id"] = message.tool_call_id.as_str().into();
    }
    if !message.attributes.is_empty() {
        result["_meta"]["toolcell/attributes"] = json!(message.attributes);
    }
    if message.end_turn {
        result["_meta"]["toolcell/end_turn"] = true.into();
    }
    result
}

fn block(part: &Part) -> Value {
    let media = |kind: &str, media: &Media| json!({"type": kind, "data": base64(&media.data), "mimeType": media_type(&media.mime_type)});
    match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image(image) => media("image", image),
        Part::Audio(audio) => media("audio", audio),
        Part::Resource(Resource { uri, mime_type, content }) => {
            let mut resource = json!({"uri": uri});
            set(&mut resource, "mimeType", mime_type.as_deref().map(media_type));
            match content {
                ResourceContent::Text { text } => resource["text"] = text.as_str().into(),
                ResourceContent::Bytes { data } => resource["blob"] = base64(data).into(),
            }
            json!({"type": "resource", "resource": resource})
        }
        Part::ResourceLink { uri, name, description, mime_type, size } => {
            let mut link =
                json!({"type": "resource_link", "uri": uri, "name": name.as_ref().unwrap_or(uri)});
            set(&mut link, "description", description.as_deref());
            set(&mut link, "mimeType", mime_type.as_deref().map(media_type));
            set(&mut link, "size", *size);
            link
        }
    }
}
