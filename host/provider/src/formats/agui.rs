//! The format of AG-UI, a protocol between an agent and its user interface.
//!
//! `Provider` calls these functions: `tool` writes a definition, `calls` reads the calls of an
//! assistant message or of a list of events, `result` writes a tool's message. An embedder (the
//! program that uses this library) that serves an AG-UI front end also passes each event of a run
//! to [`agui_events`], which returns the events to send, and ends the agent's run with
//! [`agui_run_end`]. An event without a counterpart becomes `CUSTOM`. AG-UI accepts text only, so
//! images are described.
//!
//! Source: the protocol's reference of events, messages and tools.

mod events;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolcell_contract::call::CallResult;
use toolcell_contract::definition::Definition;
use toolcell_contract::event::Event;
use toolcell_contract::json::{Json, parse_strict};
use toolcell_contract::message::encode::{EncodeInput, Encoder as _, JsonEncoder};
use toolcell_contract::message::failure::Failure;
use toolcell_contract::message::{Message, RunEvent, RunHalt, SettledCall};
use toolcell_contract::outcome::Outcome;

use super::openai::chat_list;
use super::set;
use crate::calls::Calls;
use crate::note::Changes;
use crate::part::text;
use crate::place::Place;
use crate::schema::Rewrite;
use crate::{Converted, Note};

pub(crate) fn tool(definition: &Definition, changes: &mut Changes<'_>) -> Converted {
    let parameters = Rewrite::new(definition.parameters.as_ref(), "/parameters", changes)
        .object_of_any_form()?;
    Ok(
        json!({"name": definition.name, "description": definition.description, "parameters": parameters}),
    )
}

pub(crate) fn calls(input: &Place<'_>) -> Converted<Calls> {
    const EXPECTED: &str = "an assistant message, or a list of events";
    if input.value.is_array() {
        return events::calls(&input.items(EXPECTED)?);
    }
    match input.get("toolCalls") {
        Some(calls) => chat_list(&calls, false),
        None if input.is_word("role", "assistant") => Ok(Calls::default()),
        None => Err(input.malformed(EXPECTED)),
    }
}

pub(crate) fn result(message: &Message, notes: &mut Vec<Note>) -> Value {
    let mut result = json!({
        "id": message_id(&message.tool_call_id),
        "role": "tool",
        "toolCallId": message.tool_call_id,
        "content": content(message, notes),
    });
    set(&mut result, "error", message.is_error.then(|| error_text(&message.content)));
    result
}

/// Returns a failure's text for a user interface, without the JSON for the model around it.
fn error_text(content: &str) -> String {
    let failure = parse_strict(content).unwrap_or_default();
    failure["error"].as_str().unwrap_or(content).to_owned()
}

/// Returns the content of the message that answers a call: the same in the event and in the
/// history. AG-UI accepts text only.
fn content(message: &Message, notes: &mut Vec<Note>) -> String {
    text(message, |_| false, notes)
}

/// Returns the id of the message that answers a call: the same in the event and in the history.
fn message_id(call: &str) -> String {
    format!("{call}-result")
}

/// Converts an event of a run to AG-UI events, in order. A call is shown when it starts. An event
/// without an AG-UI counterpart, such as a halt, becomes `CUSTOM` with its own name, and its own
/// JSON as the value. Every call, also one that a tool made, ends with one `TOOL_CALL_RESULT`: the
/// message with the id that [`Provider::results`](crate::Provider::results) produces, parts
/// included.
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
        RunEvent::Call(Event::Completed { id, name, result, parent: Some(_), .. }) => {
            let mut message = Message::new(id, name, sub_call_text(result));
            message.parts = result.output().map_or_else(Vec::new, |output| output.parts.clone());
            vec![custom(event), result_event(&message)]
        }
        RunEvent::Settled { settled, message } => {
            let result = result_event(message);
            match settled {
                SettledCall::Encoded { .. } => vec![result],
                SettledCall::AskUser { .. } | SettledCall::Halt { .. } => {
                    vec![custom(settled), result]
                }
            }
        }
        RunEvent::Error(failure) => {
            vec![
                json!({"type": "RUN_ERROR", "message": failure.0.to_string(), "code": failure.0.reason()}),
            ]
        }
        // `RUN_FINISHED` and `RUN_ERROR` would end the agent's run, of which this run is a part;
        // see `agui_run_end`.
        RunEvent::Call(_) | RunEvent::Halted(_) | _ => vec![custom(event)],
    }
}

fn result_event(message: &Message) -> Value {
    json!({
        "type": "TOOL_CALL_RESULT",
        "messageId": message_id(&message.tool_call_id),
        "toolCallId": message.tool_call_id,
        "role": "tool",
        "content": content(message, &mut Vec::new()),
    })
}

/// Returns the text of a call that a tool made. The run has no message for it.
fn sub_call_text(result: &CallResult) -> String {
    let failure = Failure::of(result);
    let said = match (&failure, result) {
        (Some(failure), _) => EncodeInput::Failure(failure),
        (None, CallResult::Outcome(Outcome::Ok(output))) => EncodeInput::Ok(output),
        (None, CallResult::Outcome(Outcome::Halt(halt))) => EncodeInput::Value(&halt.result),
        (None, _) => return Message::AWAITING_USER.to_owned(),
    };
    JsonEncoder.encode(said).unwrap_or_default()
}

/// Returns the last event of an agent's run, for a front end that does not know toolcell. No event
/// may follow it, so the agent sends it after its loop, with the ids of its own `RUN_STARTED`.
///
/// # Shape
/// `RUN_FINISHED` with the outcome `interrupt` for a question, which a front end shows and answers
/// with the next run's `resume`: the interrupt's id is the call's, `responseSchema` the answer's
/// schema, `metadata` has `options` and `state`. `RUN_ERROR` with the code `tool_error` for a
/// failure under a policy that halts. Otherwise `RUN_FINISHED` with the outcome `success`, and the
/// `result` of the handler that halted.
#[must_use]
pub fn agui_run_end(thread_id: &str, run_id: &str, halted: Option<&RunHalt>) -> Value {
    let mut finished = json!({"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id});
    finished["outcome"] = json!({"type": "success"});
    match halted {
        Some(RunHalt::Handler { result, .. }) => finished["result"] = result.to_value(),
        Some(RunHalt::AskUser { question, tool_call_id: id, options, answer_schema, state }) => {
            let mut interrupt = json!({"id": id, "reason": "input_required", "message": question, "toolCallId": id});
            set(&mut interrupt, "responseSchema", answer_schema.as_ref().map(Json::to_value));
            for (name, value) in [("options", options), ("state", state)] {
                if let Some(value) = value {
                    interrupt["metadata"][name] = value.to_value();
                }
            }
            finished["outcome"] = json!({"type": "interrupt", "interrupts": [interrupt]});
        }
        Some(RunHalt::ToolError { tool_call_id, exception }) => {
            let why = exception
                .as_ref()
                .map(|exception| format!("; the policy for failures {exception}"));
            let message = format!("the call `{tool_call_id}` failed{}", why.unwrap_or_default());
            return json!({"type": "RUN_ERROR", "message": message, "code": "tool_error"});
        }
        Some(_) | None => {}
    }
    finished
}

/// Wraps one of this crate's events as a custom event: its type becomes the name, the rest the
/// value.
fn custom(event: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(event).unwrap_or_default();
    let name =
        value.as_object_mut().and_then(|members: &mut Map<String, Value>| members.remove("type"));
    json!({"type": "CUSTOM", "name": name, "value": value})
}

#[cfg(test)]
mod tests {
    use toolcell_contract::call::ToolCall;
    use toolcell_contract::error::Error;
    use toolcell_contract::message::RunFailure;
    use toolcell_contract::outcome::{Media, Part};

    use super::*;
    use crate::Provider;
    use crate::cases::rows;

    #[test]
    fn run_end_is_interrupt_error_or_success() {
        for (halted, expected) in rows::<(Option<RunHalt>, Value)>(
            "formats/agui",
            "run_end_is_interrupt_error_or_success",
        ) {
            assert_eq!(agui_run_end("t1", "r1", halted.as_ref()), expected);
        }
    }

    #[test]
    fn run_events_convert_to_agui_events() {
        let events = rows::<(Event, Value)>("formats/agui", "call_events").into_iter();
        let events = events.map(|(event, expected)| (RunEvent::Call(event), expected));
        let settled = rows::<(SettledCall, Value)>("formats/agui", "settled_calls").into_iter();
        let settled = settled.map(|(settled, expected)| {
            let message = Message::new(settled.id(), "book", settled.content());
            (RunEvent::Settled { settled, message }, expected)
        });
        let unknown = || Error::no_such_tool("x", Vec::new());
        let error = json!([{"type": "RUN_ERROR", "code": "unknown_tool", "message": unknown().to_string()}]);
        let error = (RunEvent::Error(RunFailure(unknown())), error);
        for (event, expected) in events.chain(settled).chain([error]) {
            assert_eq!(json!(agui_events(&event)), expected);
        }
        // The event includes the content beside the result, like the history's message of that id.
        let image = Part::Image(Media { mime_type: "image/png".into(), data: vec![0; 3] });
        let message = Message::new("c", "book", "ok")
            .with_part(Part::Text { text: "beside".into() })
            .with_part(image);
        let history = Provider::AgUi.results(std::slice::from_ref(&message)).value;
        let event = RunEvent::Settled {
            settled: SettledCall::Encoded { id: "c".into(), content: "ok".into() },
            message,
        };
        let told = &agui_events(&event)[0];
        assert_eq!(told["messageId"], history[0]["id"]);
        assert_eq!(told["content"], history[0]["content"]);
        let content = "ok\n\nbeside\n\n[image of 3 bytes (image/png) that cannot be shown here]";
        assert_eq!(told["content"], content);
        // The events can be read back as the call that they show.
        let started = RunEvent::Call(Event::Started {
            id: "c".into(),
            name: "book".into(),
            arguments: "{\"a\":1}".into(),
        });
        let events = agui_events(&started).into();
        let read = Provider::AgUi.calls(&events).unwrap();
        assert_eq!(read.calls, [ToolCall::new("c", "book", "{\"a\":1}")]);
        assert_eq!(read.unreadable, []);
    }
}
