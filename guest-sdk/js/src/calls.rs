//! Exports of the component: `describe`, `validate`, `visible` and `execute` of the toolcell world.

use std::collections::BTreeMap;

use rquickjs::Object;
use serde::Serialize;
use serde_json::value::RawValue;
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
            None => raise(
                "this is the JavaScript runtime without a tool: build a tool with `toolcell build`",
            ),
        }
    }

    fn validate(call: abi::ToolCall) -> Vec<String> {
        asked("validate", (&call.name, &call.arguments, "{}"), |answer| answer.get("faults"))
    }

    fn visible(name: String, context: abi::Context) -> bool {
        asked("visible", (&name, "{}", &context_json("", context)), |answer| answer.get("visible"))
    }

    fn execute(call: abi::ToolCall, context: abi::Context) -> abi::Outcome {
        asked(
            "execute",
            (&call.name, &call.arguments, &context_json(&call.id, context)),
            outcome::read,
        )
    }
}

/// Calls a function of the prelude and reads its answer. An exception ends the call.
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
        None => raise(
            "this is the JavaScript runtime without a tool: build a tool with `toolcell build`",
        ),
    }
}

/// Returns the context as JSON. Absent fields are left out. JSON values of the host keep their
/// text, with all digits.
fn context_json(call_id: &str, from: abi::Context) -> String {
    let read = |text: String| RawValue::from_string(text).unwrap_or_default();
    let texts = [
        ("callId", Some(call_id.to_owned())),
        ("sessionId", from.session_id),
        ("requestId", from.request_id),
        ("threadId", from.thread_id),
        ("runId", from.run_id),
        ("tenant", from.tenant),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, raw(&text?))));
    let numbers = [("remainingMs", raw(&from.remaining_ms)), ("attempt", raw(&from.attempt))];
    let mut context: BTreeMap<&str, Box<RawValue>> = texts.chain(numbers).collect();
    context.extend(from.metadata.map(|metadata| ("metadata", read(metadata))));
    if let Some(resume) = from.resume {
        context.insert("answer", read(resume.answer));
        context.extend(resume.state.map(|state| ("state", read(state))));
    }
    if !from.extensions.is_empty() {
        let extensions: BTreeMap<_, _> =
            from.extensions.into_iter().map(|(name, value)| (name, read(value))).collect();
        context.insert("extensions", raw(&extensions));
    }
    serde_json::to_string(&context).unwrap_or_default()
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_default()
}

bindings::export!(Component with_types_in bindings);
