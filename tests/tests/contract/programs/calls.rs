//! One call of one handler: its answer comes back unchanged, and differs from every failure to
//! answer.

use std::future::pending;
use std::panic::panic_any;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcell::call::Resume;
use toolcell::outcome::{Halt, HandlerError, Output, Reason};
use toolcell::tool::Invocation;
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Event, Executor, Json, Outcome, Question,
    Sealer, Tool, ToolCall,
};
use toolcell_test_guests::rows;
use toolcell_tests::{context, wait_here};

use super::{blocking, call, example};
use crate::{Log, form, inside, named, native, poll, within};

fn answering(outcome: Outcome) -> Tool {
    native("answers", async move |_: Value| outcome.clone())
}

/// Returns the JSON form of the outcome of a call.
fn outcome(tool: &Tool, arguments: &str) -> Value {
    form(&call(tool, arguments))["outcome"].take()
}

fn reason(completion: &Completion) -> Option<Reason> {
    let CallResult::ToolError(error) = &completion.result else { return None };
    Some(error.reason())
}

#[test]
fn handler_answer_is_returned_unchanged() {
    let table = "handler_answer_is_returned_unchanged";
    for expected in rows::<Value>("contract/programs/calls", table) {
        let answer = serde_json::from_value(expected.clone()).expect("an outcome");
        assert_eq!(outcome(&answering(answer), "{}"), expected);
    }
}

#[test]
fn handler_takes_arguments_and_optional_context() {
    let prefix = String::from("hello ");
    let greeting =
        move |arguments: &Value| format!("{prefix}{}", arguments["name"].as_str().unwrap_or("you"));
    let (one, two, three) = (greeting.clone(), greeting.clone(), greeting);
    let told = |invocation: &Invocation, greeting: String| {
        json!([greeting, invocation.context.session_id, invocation.context.request_id])
    };
    let a = native("a", async move |arguments: Value| json!(one(&arguments)));
    let b = blocking("b", move |arguments: Value| json!(two(&arguments)));
    let c = blocking("c", move |arguments: Value, call: Arc<Invocation>| {
        told(&call, three(&arguments))
    });
    // Values that the caller did not give stay absent.
    let whole = json!(["hello Ada", "session", null]);
    let tools = [(a, json!("hello Ada")), (b, json!("hello Ada")), (c, whole)];
    for (tool, expected) in tools {
        let options = inside(context(&json!({"session_id": "session"})));
        let completion = crate::call_with(&Executor::new(), &tool, r#"{"name": "Ada"}"#, options);
        assert_eq!(completion.result.value().map(|value| value.to_value()), Some(expected));
    }
}

/// `?` in a handler returns any error that implements `Display`, or a `HandlerError` with all its
/// fields.
#[test]
fn handler_can_return_early_with_an_error() {
    let full = || HandlerError::new("the store is full").with_data(json!({"free": 0}));
    let tool = native("order", async move |arguments: Value| {
        let pieces: u32 = match arguments["pieces"].as_str() {
            Some(text) => {
                text.parse().map_err(|error| HandlerError::new(format!("pieces: {error}")))?
            }
            None => return Ok(Outcome::AskUser(Question::new("How many?"))),
        };
        if pieces > 9 {
            return Err(full());
        }
        Ok(Output::new(json!(pieces)).with_message("ordered").into())
    });
    let cases =
        rows::<(Value, Value)>("contract/programs/calls", "handler_can_return_early_with_an_error");
    for (arguments, expected) in cases {
        assert_eq!(outcome(&tool, &arguments.to_string()), expected);
    }
    let output = blocking("size", |arguments: Value| {
        let text = arguments["text"].as_str().ok_or("Missing text")?;
        Ok::<_, &str>(Output::new(json!(text.len())).with_message("bytes"))
    });
    assert_eq!(outcome(&output, r#"{"text": "four"}"#)["ok"]["message"], "bytes");
    assert_eq!(outcome(&output, "{}"), json!({"error": {"message": "Missing text"}}));
}

#[test]
fn panicking_handler_ends_only_its_call() {
    let panics = native("panics", async |_: Value| -> Value { panic!("boom") });
    let blocks = blocking("panics", |_: Value| -> Value { panic!("boom") });
    let other = native("panics", async |_: Value| -> Value { panic_any(7_u64) });
    for (tool, message) in [(panics, "boom"), (blocks, "boom"), (other, "a payload without text")] {
        let error = outcome(&tool, "{}")["tool_error"].take();
        let cause = &error["cause"];
        assert_eq!(error["reason"], "handler_raised", "{error}");
        assert_eq!(cause["kind"], "native_panic", "{error}");
        let told = cause["panic_message"].as_str();
        assert!(told.is_some_and(|text| text.contains(message)), "{cause}");
    }
}

#[test]
fn malformed_answer_is_an_invalid_return() {
    for word in Halt::RESERVED_REASONS {
        let error =
            &outcome(&answering(Outcome::Halt(Halt::new(word, Value::Null))), "{}")["tool_error"];
        assert_eq!(error["reason"], "invalid_return", "{word}");
        assert_eq!(error["metadata"]["reserved_halt_atom"], word);
    }
    let whole = named("counts").with_output(json!({"type": "integer"}));
    let tool = Tool::native(whole, async |arguments: Value| arguments["answer"].clone());
    let tool = tool.expect("a tool");
    assert_eq!(reason(&call(&tool, r#"{"answer": 7}"#)), None);
    let error = &outcome(&tool, r#"{"answer": "seven"}"#)["tool_error"];
    assert_eq!(error["reason"], "invalid_return");
    assert_eq!(error["cause"]["rule"], "schema");
}

#[test]
fn tool_without_a_handler_is_not_found() {
    let tool = Tool::manual(named("by_hand")).expect("a tool");
    assert_eq!(reason(&call(&tool, "{}")), Some(Reason::NotFound));
}

#[test]
fn dropped_call_ends_as_a_cancelled_exit() {
    let (ends, sink) = Log::shared();
    let executor = Executor::new().with_events(move |event: Event| {
        if let Event::Completed { result, .. } = event {
            sink.push(form(&result));
        }
    });
    let tool = native("waits", async |_: Value| pending::<Value>().await);
    let call = ToolCall::new("call-1", "waits", "{}");
    let mut running = Box::pin(executor.call(&tool, call, CallOptions::default()));
    assert!(poll(running.as_mut()).is_pending(), "it waits for ever");
    drop(running);
    let ends = ends.taken();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0]["tool_error"]["reason"], "handler_exit");
    assert_eq!(ends[0]["tool_error"]["cause"]["status"], "cancelled");
}

#[test]
fn executor_enforces_the_timeout() {
    let tool = native("waits", async |_: Value| pending::<Value>().await);
    let executor = Executor::new().with_limits(within(20));
    let completion = crate::call(&executor, &tool, "{}");
    assert_eq!(reason(&completion), Some(Reason::Timeout));
    let Some(failure) = completion.failure() else { panic!("{completion:?}") };
    assert!(failure.is_retryable());
}

/// The executor gets the tool itself and does not look up the name in the call.
#[test]
fn executor_calls_the_given_tool() {
    let tool = answering(Outcome::ok(json!(1)));
    let call = ToolCall::new("call-1", "other", "{}");
    assert!(!tool.can_execute(&call));
    let completion = wait_here(Executor::new().call(&tool, call, CallOptions::default()));
    assert_eq!(completion.tool, "answers");
    assert_eq!(form(&completion)["outcome"], json!({"ok": {"value": 1}}));
}

/// The component asks a question, and its cell is gone. The call and the question's state are kept
/// as text, and come back with the answer.
#[test]
fn component_question_is_answered_in_a_new_call() {
    let tool = example("desk", "book_table");
    let executor = Executor::new().with_sealer(Sealer::generate().expect("a key"));
    let arguments = json!({"name": "Ada", "party_size": 2, "date": "2026-03-03", "time": "23:00"});
    let call = ToolCall::with_value("call-1", "book_table", &arguments);
    let asked = wait_here(executor.call(&tool, call.clone(), CallOptions::default()));
    let CallResult::Outcome(Outcome::AskUser(question)) = asked.result else { panic!("{asked:?}") };
    assert!(question.question.contains("23:00"), "{}", question.question);
    let kept = serde_json::to_string(&(call, question.state)).expect("JSON");

    let (mut call, state): (ToolCall, Option<Json>) = serde_json::from_str(&kept).expect("both");
    call.id = "call-2".into();
    let mut context = CallContext::default();
    context.resume = Some(Resume { answer: json!({"time": "21:00"}).into(), state });
    let booked = wait_here(executor.call(&tool, call, inside(context)));
    assert!(booked.result.value().is_some(), "{booked:?}");
}

/// A provider sends arguments as text or as an object; both stay as they were written.
#[test]
fn call_is_read_from_its_json() {
    let twice = r#"{"a": 1, "a": 2}"#;
    let read = |arguments: &str| {
        serde_json::from_str::<ToolCall>(&format!(
            r#"{{"id":"1","name":"echo","arguments":{arguments}}}"#
        ))
    };
    for (written, arguments) in
        rows::<(&str, &str)>("contract/programs/calls", "call_is_read_from_its_json")
    {
        let call = read(written).expect("a call");
        assert_eq!(call, ToolCall::new("1", "echo", arguments));
        assert_eq!(serde_json::from_value::<ToolCall>(form(&call)).expect("a call"), call);
    }
    assert!(read(twice).is_err_and(|error| error.to_string().contains("`a`")));
}
