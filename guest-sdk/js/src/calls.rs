//! Exports of the component: `describe`, `validate`, `visible` and `execute` of the toolcell world.

use std::collections::BTreeMap;

use rquickjs::object::Property;
use rquickjs::promise::MaybePromise;
use rquickjs::{Function, IntoJs, Object, Value};
use serde_json::value::RawValue;
use toolcell_guest::bindings;
use toolcell_guest::bindings::exports::toolcell::tool::tool as abi;

use crate::ending::raise;
use crate::host::bytes::has_long_number;
use crate::{outcome, state};

struct Component;

impl abi::Guest for Component {
    fn describe() -> Vec<abi::Definition> {
        let text = state::with(|ctx| {
            let answers = state::answers(ctx)?;
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
        asked(
            "validate",
            |answers, function| {
                let (arguments, is_text) = arguments(answers, call.arguments)?;
                function.call((call.name, arguments, is_text))
            },
            |answer| Object::from_value(answer)?.get("faults"),
        )
    }

    fn visible(name: String, context: abi::Context) -> bool {
        asked(
            "visible",
            |answers, function| function.call((name, context_object(answers, "", context)?)),
            |answer| Object::from_value(answer)?.get("visible"),
        )
    }

    fn execute(call: abi::ToolCall, context: abi::Context) -> abi::Outcome {
        asked(
            "execute",
            |answers, function| {
                let context = context_object(answers, &call.id, context)?;
                let (arguments, is_text) = arguments(answers, call.arguments)?;
                function.call((call.name, arguments, is_text, context))
            },
            outcome::read,
        )
    }
}

/// Calls a function of the prelude and reads its answer. An exception ends the call.
fn asked<T>(
    function: &str,
    call: impl for<'js> FnOnce(&Object<'js>, Function<'js>) -> rquickjs::Result<MaybePromise<'js>>,
    read: impl for<'js> FnOnce(Value<'js>) -> rquickjs::Result<T>,
) -> T {
    let answered = state::with(|ctx| {
        let answer = state::answer(ctx, function, call)?;
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

/// Returns the value of the arguments and false, or their text and true if a number in it may have
/// more digits than a number of JavaScript.
fn arguments<'js>(answers: &Object<'js>, text: String) -> rquickjs::Result<(Value<'js>, bool)> {
    let is_text = has_long_number(&text);
    let value =
        if is_text { text.into_js(answers.ctx())? } else { answers.ctx().json_parse(text)? };
    Ok((value, is_text))
}

/// Returns the context as an object, without absent fields. Integers of the host's JSON that a
/// number cannot hold become BigInt; `remainingMs` is always a number.
fn context_object<'js>(
    answers: &Object<'js>,
    call_id: &str,
    from: abi::Context,
) -> rquickjs::Result<Object<'js>> {
    let context = Object::new(answers.ctx().clone())?;
    define(&context, "callId", call_id)?;
    define(&context, "attempt", from.attempt)?;
    define(&context, "remainingMs", from.remaining_ms as f64)?;
    let texts = [
        ("sessionId", from.session_id),
        ("requestId", from.request_id),
        ("threadId", from.thread_id),
        ("runId", from.run_id),
        ("tenant", from.tenant),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            define(&context, name, text)?;
        }
    }
    let (answer, state) = from.resume.map(|resume| (resume.answer, resume.state)).unzip();
    let extensions = (!from.extensions.is_empty()).then(|| extensions(from.extensions));
    let documents = [
        ("metadata", from.metadata),
        ("answer", answer),
        ("state", state.flatten()),
        ("extensions", extensions),
    ];
    for (name, json) in documents {
        if let Some(json) = json {
            let value: Value<'js> = answers.get::<_, Function<'js>>("exact")?.call((json,))?;
            define(&context, name, value)?;
        }
    }
    Ok(context)
}

/// Adds a member, whatever the author's code has made of the prototype of objects.
fn define<'js>(object: &Object<'js>, name: &str, value: impl IntoJs<'js>) -> rquickjs::Result<()> {
    object.prop(name, Property::from(value).writable().enumerable().configurable())
}

/// Returns the extensions as one JSON object. Their values keep their text, with all digits.
fn extensions(from: Vec<(String, String)>) -> String {
    let read = |text: String| RawValue::from_string(text).unwrap_or_default();
    let members: BTreeMap<_, _> = from.into_iter().map(|(name, text)| (name, read(text))).collect();
    serde_json::to_string(&members).unwrap_or_default()
}

bindings::export!(Component with_types_in bindings);
