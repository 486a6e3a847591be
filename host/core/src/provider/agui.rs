//! AG-UI: between an agent and the surface that a person sees.
//!
//! Source: the protocol's reference of events, messages and tools.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::note::Changes;
use super::openai::chat_list;
use super::part::text;
use super::place::Place;
use super::schema::Rewrite;
use super::{Note, ProviderError};
use crate::call::ToolCall;
use crate::definition::Definition;
use crate::event::Event;
use crate::message::{Message, RunEvent, Settled};

pub(super) fn tool(definition: &Definition, changes: &mut Changes<'_>) -> Result<Value, ProviderError> {
    let parameters = Rewrite::new(definition.parameters.as_ref(), "/parameters", changes).object_of_any_form()?;
    Ok(json!({"name": definition.name, "description": definition.description, "parameters": parameters}))
}

pub(super) fn calls(input: &Place<'_>) -> Result<Vec<ToolCall>, ProviderError> {
    const EXPECTED: &str = "an assistant message, or a list of events";
    if input.value.is_array() {
        return assemble(&input.items(EXPECTED)?);
    }
    match input.get("toolCalls") {
        Some(calls) => chat_list(&calls),
        None if input.says("role", "assistant") => Ok(Vec::new()),
        None => Err(input.malformed(EXPECTED)),
    }
}

/// The calls of a whole list of events. One that was not ended is refused: half of its arguments may be missing.
fn assemble(events: &[Place<'_>]) -> Result<Vec<ToolCall>, ProviderError> {
    let mut calls: Vec<(ToolCall, &Place<'_>, bool)> = Vec::new();
    for event in events {
        let id = || event.text("toolCallId", "the id of the call");
        if event.says("type", "TOOL_CALL_START") {
            let (id, name) = (id()?, event.text("toolCallName", "the name of the tool")?);
            if calls.iter().any(|(call, ..)| call.id == id) {
                return Err(event.malformed("a call that was not started before"));
            }
            calls.push((ToolCall::new(id, name, ""), event, true));
        } else if event.says("type", "TOOL_CALL_ARGS") {
            let delta = event.need("delta", "a piece of the arguments")?;
            let delta = delta.value.as_str().ok_or_else(|| delta.malformed("a piece of the arguments"))?;
            opened(&mut calls, id()?, event)?.0.arguments.push_str(delta);
        } else if event.says("type", "TOOL_CALL_END") {
            opened(&mut calls, id()?, event)?.2 = false;
        } else if event.says("type", "TOOL_CALL_CHUNK") {
            return Err(event.malformed("chunks expanded to `TOOL_CALL_START`, `TOOL_CALL_ARGS` and `TOOL_CALL_END`"));
        } else {
            event.text("type", "an event")?;
        }
    }
    let ended = |(mut call, start, open): (ToolCall, &Place<'_>, bool)| {
        if open {
            return Err(start.malformed("a call that is ended by `TOOL_CALL_END`"));
        }
        if call.arguments.is_empty() {
            call.arguments.push_str("{}");
        }
        Ok(call)
    };
    calls.into_iter().map(ended).collect()
}

fn opened<'c, 'p>(
    calls: &'c mut [(ToolCall, &'p Place<'p>, bool)],
    id: &str,
    event: &Place<'_>,
) -> Result<&'c mut (ToolCall, &'p Place<'p>, bool), ProviderError> {
    let found = calls.iter_mut().find(|(call, _, open)| call.id == id && *open);
    found.ok_or_else(|| event.malformed("a call that was started and not ended"))
}

pub(super) fn result(message: &Message, notes: &mut Vec<Note>) -> Value {
    let mut result = json!({
        "id": message_id(&message.tool_call_id),
        "role": "tool",
        "toolCallId": message.tool_call_id,
        "content": content(message, notes),
    });
    if message.is_error {
        result["error"] = message.content.as_str().into();
    }
    result
}

/// The content of the message that answers a call, the same in the event and in the history: AG-UI takes text alone.
fn content(message: &Message, notes: &mut Vec<Note>) -> String {
    text(message, |_| false, notes)
}

/// The id of the message that answers a call: the same in the event and in the history.
fn message_id(call: &str) -> String {
    format!("{call}-result")
}

/// A run's event as AG-UI's events, in their order. A call is shown as it starts; what AG-UI has no event for is
/// `CUSTOM` under its own name, with its own JSON as the value. Every call ends with one `TOOL_CALL_RESULT`: the message of
/// that id which [`Provider::results`](super::Provider::results) makes, parts included.
///
/// # Shape
/// A list of events, ready to be sent.
#[must_use]
pub fn agui_events(event: &RunEvent) -> Vec<Value> {
    match event {
        RunEvent::Call(Event::Started { id, name, arguments }) => vec![
            json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name}),
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments}),
            json!({"type": "TOOL_CALL_END", "toolCallId": id}),
        ],
        RunEvent::Call(
            event @ (Event::Progress { .. } | Event::Log { .. } | Event::Denied { .. } | Event::Completed { .. }),
        ) => {
            vec![custom(event)]
        }
        RunEvent::Settled { settled, message } => {
            let result = json!({
                "type": "TOOL_CALL_RESULT",
                "messageId": message_id(&message.tool_call_id),
                "toolCallId": message.tool_call_id,
                "role": "tool",
                "content": content(message, &mut Vec::new()),
            });
            match settled {
                Settled::Encoded { .. } => vec![result],
                Settled::AskUser { .. } | Settled::Halt { .. } => vec![custom(settled), result],
            }
        }
        RunEvent::Error(failure) => {
            vec![json!({"type": "RUN_ERROR", "message": failure.0.to_string(), "code": failure.0.reason()})]
        }
    }
}

/// Our own event as a custom one: its type is the name, the rest is the value.
fn custom(event: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(event).unwrap_or_default();
    let name = value.as_object_mut().and_then(|members: &mut Map<String, Value>| members.remove("type"));
    json!({"type": "CUSTOM", "name": name, "value": value})
}

#[cfg(test)]
mod tests {
    use super::super::Provider;
    use super::*;
    use crate::error::Error;
    use crate::event::{LogLevel, LogSource};
    use crate::json::Json;
    use crate::message::{AskOptions, RunFailure};
    use crate::outcome::{Media, Part};

    #[test]
    fn a_run_as_events_of_agui() {
        let id = || "c".to_owned();
        let settled = |settled: Settled| {
            let message = Message::new(settled.id(), "book", settled.content());
            RunEvent::Settled { settled, message }
        };
        let ask = Settled::AskUser {
            tool_call_id: id(),
            tool_name: "book".into(),
            question: "When?".into(),
            options: AskOptions::default(),
        };
        let halt = Settled::Halt {
            tool_call_id: id(),
            reason: "done".into(),
            result: Json::from(json!(1)),
            content: "1".into(),
        };
        let result = |content: &str| json!({"type": "TOOL_CALL_RESULT", "messageId": "c-result", "toolCallId": "c", "role": "tool", "content": content});
        for (event, expected) in [
            (
                RunEvent::Call(Event::Started { id: id(), name: "book".into(), arguments: "{}".into() }),
                vec![
                    json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "book"}),
                    json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"}),
                    json!({"type": "TOOL_CALL_END", "toolCallId": "c"}),
                ],
            ),
            (
                RunEvent::Call(Event::Progress { id: id(), done: 1, total: Some(2), message: None }),
                vec![json!({"type": "CUSTOM", "name": "tool_progress",
                    "value": {"id": "c", "done": 1, "total": 2, "message": null}})],
            ),
            (
                RunEvent::Call(Event::Log {
                    id: id(),
                    source: LogSource::Stdout,
                    level: LogLevel::Info,
                    message: "hi".into(),
                }),
                vec![json!({"type": "CUSTOM", "name": "tool_log",
                    "value": {"id": "c", "source": "stdout", "level": "info", "message": "hi"}})],
            ),
            (settled(Settled::Encoded { id: id(), content: "ok".into() }), vec![result("ok")]),
            (
                settled(ask),
                vec![
                    json!({"type": "CUSTOM", "name": "ask_user_requested",
                        "value": {"tool_call_id": "c", "tool_name": "book", "question": "When?", "options": {}}}),
                    result("<awaiting user response>"),
                ],
            ),
            (
                settled(halt),
                vec![
                    json!({"type": "CUSTOM", "name": "tool_halt",
                        "value": {"tool_call_id": "c", "reason": "done", "result": 1, "content": "1"}}),
                    result("1"),
                ],
            ),
            (
                RunEvent::Error(RunFailure(Error::unknown_tool("x", Vec::new()))),
                vec![json!({"type": "RUN_ERROR", "code": "unknown_tool",
                    "message": Error::unknown_tool("x", Vec::new()).to_string()})],
            ),
        ] {
            assert_eq!(agui_events(&event), expected);
        }
        // Content beside the result is in it, as in the message of the same id that goes into the history.
        let image = Part::Image(Media { mime_type: "image/png".into(), data: vec![0; 3] });
        let message = Message::new("c", "book", "ok").with_part(Part::Text { text: "beside".into() }).with_part(image);
        let history = Provider::AgUi.results(std::slice::from_ref(&message)).value;
        let event = RunEvent::Settled { settled: Settled::Encoded { id: id(), content: "ok".into() }, message };
        let told = &agui_events(&event)[0];
        assert_eq!((&told["messageId"], &told["content"]), (&history[0]["id"], &history[0]["content"]));
        assert_eq!(told["content"], "ok\n\nbeside\n\n[image of 3 bytes (image/png) that cannot be shown here]");
        // The same events are read back as the call they show.
        let started = RunEvent::Call(Event::Started { id: id(), name: "book".into(), arguments: "{\"a\":1}".into() });
        let events = agui_events(&started).into();
        assert_eq!(Provider::AgUi.calls(&events), Ok(vec![ToolCall::new("c", "book", "{\"a\":1}")]));
    }
}
