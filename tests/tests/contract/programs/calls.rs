//! One call of one handler: its answer comes back unchanged, and differs from every failure to
//! answer.

use std::future::pending;
use std::panic::panic_any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::call::Resume;
use toolcell::outcome::{Halt, HandlerError, Output, Reason};
use toolcell::tool::Invocation;
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Event, Executor, Json, Limits, Outcome,
    Question, Sealer, Tool, ToolCall,
};
use toolcell_test_guests::rows;
use toolcell_tests::wait_here;

use super::{example, form, named};

fn call(tool: &Tool, arguments: &Value) -> Completion {
    let call = ToolCall::with_value("call-1", tool.definition().name.as_str(), arguments);
    wait_here(Executor::new().without_sealer().call(tool, call, CallOptions::default()))
}

fn answering(outcome: Outcome) -> Result<Tool, toolcell::Error> {
    Tool::native(named("answers"), async move |_: Value| outcome.clone())
}

fn reason(completion: &Completion) -> Option<Reason> {
    let CallResult::ToolError(error) = &completion.result else { return None };
    Some(error.reason())
}

#[test]
fn handler_answer_is_returned_unchanged() -> anyhow::Result<()> {
    // The last one looks like an error of the executor, and stays the handler's own.
    let forged = json!({"tool_error": {"reason": "timeout"}});
    let answers = [
        Outcome::ok(json!({"city": "Oslo"})),
        Outcome::ok(Value::Null),
        Outcome::error("no such city"),
        Outcome::Error(HandlerError::new("busy").with_data(json!({"queue": 3}))),
        Outcome::AskUser(Question::new("Which Oslo?")),
        Outcome::AskUser(Question::new("Which Oslo?").with_options(json!(["Norway", "Minnesota"]))),
        Outcome::Halt(Halt::new("booked", json!({"seat": "12A"}))),
        Outcome::Error(HandlerError::new("timeout").with_data(forged)),
    ];
    for answer in answers {
        let completion = call(&answering(answer.clone())?, &json!({}));
        assert_eq!(form(&completion)["outcome"], form(&answer));
    }
    Ok(())
}

#[test]
fn handler_takes_arguments_and_optional_context() -> anyhow::Result<()> {
    let prefix = String::from("hello ");
    let greeting =
        move |arguments: &Value| format!("{prefix}{}", arguments["name"].as_str().unwrap_or("you"));
    let (one, two, three) = (greeting.clone(), greeting.clone(), greeting);
    let told = |invocation: &Invocation, greeting: String| {
        json!([greeting, invocation.context.session_id, invocation.context.request_id])
    };
    let tools = [
        (
            Tool::native(named("a"), async move |arguments: Value| json!(one(&arguments)))?,
            json!("hello Ada"),
        ),
        (
            Tool::native_blocking(named("b"), move |arguments: Value| json!(two(&arguments)))?,
            json!("hello Ada"),
        ),
        (
            Tool::native_blocking(
                named("c"),
                move |arguments: Value, invocation: Arc<Invocation>| {
                    told(&invocation, three(&arguments))
                },
            )?,
            // Values that the caller did not give stay absent.
            json!(["hello Ada", "session", null]),
        ),
    ];
    for (tool, expected) in tools {
        let mut context = CallContext::default();
        context.session_id = Some("session".into());
        let call = ToolCall::new("call-1", tool.definition().name.as_str(), r#"{"name": "Ada"}"#);
        let options = CallOptions { context: context.into(), ..CallOptions::default() };
        let completion = wait_here(Executor::new().call(&tool, call, options));
        assert_eq!(completion.result.value().map(|value| value.to_value()), Some(expected));
    }
    Ok(())
}

/// `?` in a handler returns any error that implements `Display`, or a `HandlerError` with all its
/// fields.
#[test]
fn handler_can_return_early_with_an_error() -> anyhow::Result<()> {
    let full = || HandlerError::new("the store is full").with_data(json!({"free": 0}));
    let tool = Tool::native(named("order"), async move |arguments: Value| {
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
    })?;
    let cases =
        rows::<(Value, Value)>("contract/programs/calls", "handler_can_return_early_with_an_error");
    for (arguments, expected) in cases {
        assert_eq!(form(&call(&tool, &arguments))["outcome"], expected);
    }
    let output = Tool::native_blocking(named("size"), |arguments: Value| {
        let text = arguments["text"].as_str().ok_or("Missing text")?;
        Ok::<_, &str>(Output::new(json!(text.len())).with_message("bytes"))
    })?;
    assert_eq!(form(&call(&output, &json!({"text": "four"})))["outcome"]["ok"]["message"], "bytes");
    assert_eq!(
        form(&call(&output, &json!({})))["outcome"],
        json!({"error": {"message": "Missing text"}})
    );
    Ok(())
}

#[test]
fn panicking_handler_ends_only_its_call() -> anyhow::Result<()> {
    let panics = Tool::native(named("panics"), async |_: Value| -> Value { panic!("boom") })?;
    let blocking = Tool::native_blocking(named("panics"), |_: Value| -> Value { panic!("boom") })?;
    let other = Tool::native(named("panics"), async |_: Value| -> Value { panic_any(7_u64) })?;
    for (tool, message) in [(panics, "boom"), (blocking, "boom"), (other, "7")] {
        let completion = call(&tool, &json!({}));
        assert_eq!(reason(&completion), Some(Reason::HandlerRaised));
        let cause = &form(&completion)["outcome"]["tool_error"]["cause"];
        assert_eq!(cause["kind"], "native_panic");
        assert!(
            cause["panic_message"].as_str().is_some_and(|text| text.contains(message)),
            "{cause}"
        );
    }
    Ok(())
}

#[test]
fn malformed_answer_is_an_invalid_return() -> anyhow::Result<()> {
    for word in Halt::RESERVED_REASONS {
        let completion = call(&answering(Outcome::Halt(Halt::new(word, Value::Null)))?, &json!({}));
        assert_eq!(reason(&completion), Some(Reason::InvalidReturn), "{word}");
        assert_eq!(
            form(&completion)["outcome"]["tool_error"]["metadata"]["reserved_halt_atom"],
            word
        );
    }
    let empty = call(&answering(Outcome::Halt(Halt::new(" ", Value::Null)))?, &json!({}));
    assert_eq!(reason(&empty), Some(Reason::InvalidReturn));

    let whole = named("counts").with_output(json!({"type": "integer"}));
    let tool = Tool::native(whole, async |arguments: Value| arguments["answer"].clone())?;
    assert_eq!(reason(&call(&tool, &json!({"answer": 7}))), None);
    let completion = call(&tool, &json!({"answer": "seven"}));
    assert_eq!(reason(&completion), Some(Reason::InvalidReturn));
    assert_eq!(form(&completion)["outcome"]["tool_error"]["cause"]["rule"], "schema");
    Ok(())
}

#[test]
fn tool_without_a_handler_is_not_found() -> anyhow::Result<()> {
    let completion = call(&Tool::manual(named("by_hand"))?, &json!({}));
    assert_eq!(reason(&completion), Some(Reason::NotFound));
    Ok(())
}

#[test]
fn dropped_call_ends_as_a_cancelled_exit() -> anyhow::Result<()> {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&ends);
    let executor = Executor::new().with_events(move |event: Event| {
        if let (Event::Completed { result, .. }, Ok(mut ends)) = (event, sink.lock()) {
            ends.push(form(&result));
        }
    });
    let tool = Tool::native(named("waits"), async |_: Value| pending::<Value>().await)?;
    wait_here(async {
        let call =
            executor.call(&tool, ToolCall::new("call-1", "waits", "{}"), CallOptions::default());
        // Polled once, then dropped.
        tokio::select! { biased; _ = call => unreachable!("it waits for ever"), () = async {} => {} }
    });
    let ends = ends.lock().map(|ends| ends.clone()).unwrap_or_default();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0]["tool_error"]["reason"], "handler_exit");
    assert_eq!(ends[0]["tool_error"]["cause"]["status"], "cancelled");
    Ok(())
}

#[test]
fn executor_enforces_the_timeout() -> anyhow::Result<()> {
    let tool = Tool::native(named("waits"), async |_: Value| pending::<Value>().await)?;
    let executor = Executor::new()
        .with_limits(Limits { timeout: Duration::from_millis(20), ..Limits::default() });
    let completion = wait_here(executor.call(
        &tool,
        ToolCall::new("call-1", "waits", "{}"),
        CallOptions::default(),
    ));
    assert_eq!(reason(&completion), Some(Reason::Timeout));
    let Some(failure) = completion.failure() else { panic!("{completion:?}") };
    assert!(failure.is_retryable());
    Ok(())
}

/// The executor gets the tool itself and does not look up the name in the call.
#[test]
fn executor_calls_the_given_tool() -> anyhow::Result<()> {
    let tool = answering(Outcome::ok(json!(1)))?;
    let call = ToolCall::new("call-1", "other", "{}");
    assert!(!tool.can_execute(&call));
    let completion = wait_here(Executor::new().call(&tool, call, CallOptions::default()));
    assert_eq!(completion.tool, "answers");
    assert_eq!(form(&completion)["outcome"], json!({"ok": {"value": 1}}));
    Ok(())
}

/// The component asks a question, and its cell is gone. The call and the question's state are kept
/// as text, and come back with the answer.
#[test]
fn component_question_is_answered_in_a_new_call() -> anyhow::Result<()> {
    let tool = example("desk", "book_table")?;
    let executor = Executor::new().with_sealer(Sealer::generate()?);
    let arguments = json!({"name": "Ada", "party_size": 2, "date": "2026-03-03", "time": "23:00"});
    let call = ToolCall::with_value("call-1", "book_table", &arguments);
    let asked = wait_here(executor.call(&tool, call.clone(), CallOptions::default()));
    let CallResult::Outcome(Outcome::AskUser(question)) = asked.result else { panic!("{asked:?}") };
    assert!(question.question.contains("23:00"), "{}", question.question);
    let kept = serde_json::to_string(&(call, question.state))?;

    let (mut call, state): (ToolCall, Option<Json>) = serde_json::from_str(&kept)?;
    call.id = "call-2".into();
    let mut context = CallContext::default();
    context.resume = Some(Resume { answer: json!({"time": "21:00"}).into(), state });
    let booked = wait_here(executor.call(
        &tool,
        call,
        CallOptions { context: context.into(), ..CallOptions::default() },
    ));
    assert!(booked.result.value().is_some(), "{booked:?}");
    Ok(())
}

/// A provider sends arguments as text or as an object; both stay as they were written.
#[test]
fn call_is_read_from_its_json() -> anyhow::Result<()> {
    let (object, twice) = (r#"{"a": 1.50, "b": [2]}"#, r#"{"a": 1, "a": 2}"#);
    let cases = [
        (json!(object).to_string(), object),
        (object.to_owned(), object),
        (json!(twice).to_string(), twice),
        (r#""""#.to_owned(), ""),
        (r#""not json""#.to_owned(), "not json"),
    ];
    let read = |arguments: &str| {
        serde_json::from_str::<ToolCall>(&format!(
            r#"{{"id":"1","name":"echo","arguments":{arguments}}}"#
        ))
    };
    for (written, arguments) in cases {
        let call = read(&written)?;
        assert_eq!(call, ToolCall::new("1", "echo", arguments));
        assert_eq!(serde_json::from_value::<ToolCall>(form(&call))?, call);
    }
    assert!(read(twice).is_err_and(|error| error.to_string().contains("`a`")));
    Ok(())
}
