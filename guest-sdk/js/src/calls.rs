//! The exports of the toolcell world.

use rquickjs::Object;
use serde_json::json;
use toolcell_guest::bindings;
use toolcell_guest::bindings::exports::toolcell::tool::tool as abi;

use crate::ending::raise;
use crate::{outcome, state};

struct Component;

impl abi::Guest for Component {
    fn describe() -> Vec<abi::Definition> {
        let text = state::with(|ctx| {
            let answers: Object<'_> = state::host(ctx)?.get("answers")?;
            answers.get::<_, rquickjs::Function<'_>>("describe")?.call::<_, String>(())
        });
        match text {
            Some(Ok(text)) => outcome::definitions(&text).unwrap_or_else(|error| raise(&error)),
            Some(Err(error)) => raise(&error.to_string()),
            None => raise("this is the JavaScript runtime without a tool: build a tool with `toolcell build`"),
        }
    }

    fn validate(call: abi::ToolCall) -> Vec<String> {
        asked("validate", (&call.name, &call.arguments, "{}"), |answer| answer.get("faults"))
    }

    fn visible(name: String, context: abi::Context) -> bool {
        asked("visible", (&name, "{}", &context_json("", context)), |answer| answer.get("visible"))
    }

    fn execute(call: abi::ToolCall, context: abi::Context) -> abi::Outcome {
        asked("execute", (&call.name, &call.arguments, &context_json(&call.id, context)), outcome::read)
    }
}

/// Asks the prelude, and reads its answer; what is thrown ends the call.
fn asked<T>(
    function: &str,
    arguments: (&str, &str, &str),
    read: impl for<'js> FnOnce(Object<'js>) -> rquickjs::Result<T>,
) -> T {
    let answered = state::with(|ctx| {
        let answer = state::answer(ctx, function, arguments)?;
        state::settled(ctx, read(answer))
    });
    match answered {
        Some(Ok(answer)) => answer,
        Some(Err(thrown)) => raise(&thrown.text()),
        None => raise("this is the JavaScript runtime without a tool: build a tool with `toolcell build`"),
    }
}

/// The context as JSON: absent fields stay absent.
fn context_json(call_id: &str, from: abi::Context) -> String {
    let read = |text: String| serde_json::from_str(&text).unwrap_or(serde_json::Value::Null);
    let mut context = json!({ "callId": call_id, "remainingMs": from.remaining_ms, "attempt": from.attempt });
    let texts = [
        ("sessionId", from.session_id),
        ("requestId", from.request_id),
        ("threadId", from.thread_id),
        ("runId", from.run_id),
        ("tenant", from.tenant),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            context[name] = value.into();
        }
    }
    if let Some(metadata) = from.metadata {
        context["metadata"] = read(metadata);
    }
    if let Some(resume) = from.resume {
        context["answer"] = read(resume.answer);
        if let Some(state) = resume.state {
            context["state"] = read(state);
        }
    }
    for (name, value) in from.extensions {
        context["extensions"][name] = read(value);
    }
    context.to_string()
}

bindings::export!(Component with_types_in bindings);
