//! Results of a call and of a run for their callers: the last event, messages, views, and one text
//! for each failure.

use std::panic::panic_any;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcell::message::{EncodeError, EncodeInput, ResultView};
use toolcell::outcome::{Halt, HandlerError, Media, Output, Part};
use toolcell::provider::agui_events;
use toolcell::run::{RunEvent, RunOutcome};
use toolcell::step::Step;
use toolcell::tool::Invocation;
use toolcell::{
    CallOptions, CallResult, Completion, Definition, Executor, Json, OnToolError, Outcome,
    Provider, Question, Registry, RunOptions, Runner, Stepper, Tool, ToolCall, Turn,
};
use toolcell_test_guests::rows;
use toolcell_tests::{ending, wait};

/// Returns a tool that ends as its arguments say.
fn scripted() -> Tool {
    let definition =
        Definition::new("t", "").expect("a name").with_attribute("team", json!("north"));
    let definition = definition.with_parameters(json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "m": {"type": "boolean"}},
    }));
    let handler = async |arguments: Value| match arguments["end"].as_str().unwrap_or_default() {
        "error" => {
            Outcome::Error(HandlerError::new("no such city").with_data(json!({"near": "Oslo"})))
        }
        "bare" => Outcome::error("closed today"),
        "panic" => panic!("ouch"),
        "panic 42" => panic_any(42_u8),
        "panic error" => panic_any(Box::<dyn std::error::Error + Send + Sync>::from("disk full")),
        "panic type" => panic_any(Arc::new(())),
        "ask" => Outcome::AskUser(
            Question::new("Which?")
                .with_options(json!(["a", "b"]))
                .with_answer_schema(json!({"type": "string"})),
        ),
        "ask freely" => Outcome::AskUser(Question::new("Why?")),
        "halt" => Outcome::Halt(Halt::new("done", json!({"total": 3}))),
        "halt as nothing" => Outcome::Halt(Halt::new(" ", json!(null))),
        "message" => Outcome::Ok(Output::new(Json::null()).with_message("booked")),
        "message too" => Outcome::Ok(Output::new(json!(1)).with_message("booked")),
        "no message" => Outcome::Ok(Output::new(Json::null()).with_message("")),
        "picture" => Outcome::Ok(
            Output::new(Json::null())
                .with_part(Part::Image(Media { mime_type: "image/png".into(), data: vec![0; 3] })),
        ),
        "slow" => {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            Outcome::ok(json!("late"))
        }
        _ => Outcome::ok(json!("fine")),
    };
    let tool = Tool::native(definition, handler).expect("a tool");
    tool.with_validator(|arguments| match arguments["end"].as_str() {
        Some("invalid") => vec!["too late".into(), "too many".into()],
        _ => Vec::new(),
    })
}

fn registry() -> Registry {
    let registry = Registry::new();
    let manual = Tool::manual(Definition::new("manual", "").expect("a name")).expect("a tool");
    let hidden = Definition::new("hidden", "").expect("a name");
    let hidden = Tool::native(hidden, async |_: Value| json!(1))
        .expect("a tool")
        .with_visibility(|_, _| false);
    registry.register_all([scripted(), manual, hidden]).expect("names of their own");
    registry
}

/// Returns calls `c0`, `c1`, … that end in these ways.
fn calls(ends: &[&str]) -> Vec<ToolCall> {
    let call = |(index, end): (usize, &&str)| {
        ToolCall::with_value(format!("c{index}"), "t", &json!({"end": end}))
    };
    ends.iter().enumerate().map(call).collect()
}

/// Returns an executor that does not seal questions.
fn executor() -> Executor {
    Executor::new().without_sealer()
}

fn run(calls: Vec<ToolCall>, options: RunOptions) -> RunOutcome {
    wait(async move { Runner::new(registry()).with_executor(executor()).run(calls, options).await })
        .expect("it starts")
}

fn events(calls: Vec<ToolCall>, options: RunOptions) -> Vec<RunEvent> {
    wait(async move {
        let (mut stream, mut events) =
            (Runner::new(registry()).with_executor(executor()).stream(calls, options), Vec::new());
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        assert!(stream.next().await.is_none(), "it ends once");
        events
    })
}

fn completed(call: ToolCall) -> Completion {
    let tool = registry().get(&call.name).expect("the tool");
    wait(async move { executor().call(&tool, call, CallOptions::default()).await })
}

fn step(call: &ToolCall) -> Value {
    let (stepper, call) = (Stepper::new(registry()).with_executor(executor()), call.clone());
    let step = wait(async move { stepper.step(call, &mut Turn::default()).await });
    assert!(matches!(step, Step::History { .. }), "{step:?}");
    json!(step)["entry"].take()
}

fn view(call: &ToolCall) -> ResultView {
    let tool = registry().get(&call.name).expect("the tool");
    ResultView::of(&completed(call.clone()), tool.definition())
}

/// The first call of the input that halts counts, in any order of endings, and the other calls end
/// first.
#[test]
fn halted_run_reports_it_in_the_last_event() {
    let failed = |id: &str| json!({"halted_reason": "tool_error", "halt_tool_call_id": id});
    let asked = json!({
        "halted_reason": "ask_user", "pending_question": "Which?", "pending_tool_call_id": "c1",
        "ask_user_opts": ["a", "b"], "answer_schema": {"type": "string"},
    });
    let halted =
        json!({"halted_reason": "done", "halt_tool_call_id": "c0", "halt_result": {"total": 3}});
    let (go_on, halt) = (OnToolError::Continue, OnToolError::Halt);
    let panics = OnToolError::decide(|_, _| panic!("policy bug"));
    let mut exception = failed("c0");
    exception["on_tool_error_exception"] = json!("panicked: policy bug");
    for (ends, policy, expected) in [
        (&["", "error"][..], &go_on, None),
        (&[], &halt, None),
        (&["", "slow"], &halt, None),
        (&["error", "slow"], &halt, Some(failed("c0"))),
        (&["slow", "error", "bare"], &halt, Some(failed("c1"))),
        (&["slow", "ask", "halt"], &go_on, Some(asked)),
        (&["halt", "ask", "slow"], &go_on, Some(halted)),
        (&["bare", "slow"], &panics, Some(exception)),
    ] {
        let options = RunOptions {
            max_concurrency: Some(8),
            on_tool_error: policy.clone(),
            ..RunOptions::default()
        };
        let mut told = events(calls(ends), options.clone());
        let outcome = run(calls(ends), options);
        assert_eq!(json!(outcome.halted), json!(expected), "{ends:?}");
        if let Some(halt) = expected {
            let last = told.pop().expect("a last event");
            assert_eq!(json!(last), json!({"type": "run_halted", "halt": halt}), "{ends:?}");
            let custom = json!({"type": "CUSTOM", "name": "run_halted", "value": {"halt": halt}});
            assert_eq!(agui_events(&last), [custom], "{ends:?}");
        }
        assert_eq!(told.len(), 3 * ends.len(), "{ends:?}");
        assert!(told.iter().all(|event| json!(event)["type"] != "run_halted"), "{ends:?}");
    }
}

#[test]
fn question_options_and_schema_are_unchanged() {
    for (end, options, schema) in [
        ("ask", json!(["a", "b"]), json!({"type": "string"})),
        ("ask freely", json!(null), json!(null)),
    ] {
        let told = events(calls(&[end]), RunOptions::default());
        let told: Vec<_> = told.iter().map(|event| json!(event)).collect();
        let asked =
            told.iter().find(|event| event["type"] == "ask_user_requested").expect("a question");
        assert_eq!((&asked["options"], &asked["answer_schema"]), (&options, &schema), "{asked}");
        let outcome = json!(run(calls(&[end]), RunOptions::default()));
        let entry = step(&calls(&[end])[0]);
        for halt in [&outcome["halt"], &entry["halted"]] {
            assert!(halt.get("ask_user_opts").is_some(), "the member is always there: {halt}");
            assert_eq!(
                (&halt["ask_user_opts"], &halt["answer_schema"]),
                (&options, &schema),
                "{halt}"
            );
        }
    }
}

/// The content of a success that goes to every provider.
#[test]
fn message_without_a_value_is_the_content() {
    for (end, content) in [
        ("message", "booked"),
        ("message too", "1"),
        ("no message", "null"),
        ("picture", ""),
        ("", "fine"),
    ] {
        let outcome = run(calls(&[end]), RunOptions::default());
        let message = &outcome.messages[0];
        assert_eq!((message.content.as_str(), message.is_error), (content, false), "{end}");
        let call = &calls(&[end])[0];
        let entry = step(call);
        let result = &entry["functionResponse"]["response"]["result"];
        assert_eq!(
            result.as_str().map_or_else(|| result.to_string(), str::to_owned),
            content,
            "{end}: {entry}"
        );
        if end != "picture" {
            assert_eq!(view(call).to_text(), content, "{end}: a view has no parts");
        }
        for provider in Provider::ALL {
            let sent = provider.results(&outcome.messages).value.to_string();
            assert!(sent.contains(content), "{end} for {provider}: {sent}");
            assert!(!sent.contains("null") || content == "null", "{end} for {provider}: {sent}");
        }
    }
}

#[test]
fn failure_text_is_the_same_everywhere() {
    for (tool, arguments, expected) in
        rows::<(&str, &str, &str)>("contract/results", "failure_text_is_the_same_everywhere")
    {
        let call = ToolCall::new("c", tool, arguments);
        let view = view(&call);
        assert_eq!(view.message.as_deref(), Some(expected));
        assert_eq!(view.errors.join("; "), expected);
        let outcome = run(vec![call.clone()], RunOptions::default());
        let content: Value = serde_json::from_str(&outcome.messages[0].content).expect("JSON");
        assert_eq!(content["error"], expected);
        assert_eq!(serde_json::from_str::<Value>(&view.to_text()).expect("JSON"), content);
        assert_eq!(step(&call)["functionResponse"]["response"]["result"]["error"], expected);
        let result = json!(completed(call));
        let told = [
            &result["outcome"]["refusal"],
            &result["outcome"]["error"],
            &result["outcome"]["tool_error"],
        ];
        assert!(told.iter().any(|failure| failure["message"] == expected), "{result}");
    }
}

#[test]
fn result_view_of_a_failure_is_complete() {
    let base = |end: &str, rest: Value| {
        let mut expected =
            json!({"tool_call_id": "c0", "tool": "t", "attributes": {"team": "north"}});
        expected
            .as_object_mut()
            .expect("an object")
            .extend(rest.as_object().expect("an object").clone());
        assert_eq!(json!(view(&calls(&[end])[0])), expected, "{end}");
    };
    base(
        "error",
        json!({"success": false, "result": null, "message": "no such city", "data": {"near": "Oslo"},
            "errors": ["no such city"]}),
    );
    base(
        "invalid",
        json!({"success": false, "result": null, "message": "too late; too many", "errors": ["too late", "too many"]}),
    );
    base("ask", json!({"success": true, "result": null, "message": "Which?", "errors": []}));
    base("message too", json!({"success": true, "result": 1, "message": "booked", "errors": []}));
}

#[test]
fn completion_has_the_definitions_attributes() {
    for (call, expected) in [
        (calls(&[""]).remove(0), json!({"team": "north"})),
        (calls(&["error"]).remove(0), json!({"team": "north"})),
        (ToolCall::new("c", "t", "[]"), json!({"team": "north"})),
        (ToolCall::new("c", "manual", "{}"), Value::Null),
    ] {
        assert_eq!(json!(completed(call))["attributes"], expected);
    }
}

#[test]
fn run_reports_usage_of_each_call() {
    let outcome = json!(run(calls(&["slow", "", "error", "halt"]), RunOptions::default()));
    let usage = outcome["usage"].as_array().expect("a list");
    let sizes: Vec<_> =
        usage.iter().map(|usage| usage["bytes_in"].as_u64().expect("a size")).collect();
    let expected = calls(&["slow", "", "error", "halt"]);
    let expected: Vec<_> = expected.iter().map(|call| call.arguments.len() as u64).collect();
    assert_eq!(sizes, expected, "in the order of the input");
    assert!(usage.iter().all(|usage| usage["wall_us"].is_u64()), "{outcome}");
}

/// The payload of a panic is shown if it has a common type. Of any other type, only the panic is
/// shown.
#[test]
fn panic_payload_is_reported() {
    for (end, expected) in [
        ("panic", "the handler panicked: ouch"),
        ("panic 42", "the handler panicked: 42"),
        ("panic error", "the handler panicked: disk full"),
        ("panic type", "the handler panicked: a payload without text"),
    ] {
        let outcome = run(calls(&[end]), RunOptions::default());
        assert_eq!(outcome.messages[0].content, json!({"error": expected}).to_string());
    }
}

#[test]
fn panicking_encoders_message_is_kept() {
    let encoder = |_: EncodeInput<'_>| -> Result<String, EncodeError> { panic!("no form for it") };
    let runner = Runner::new(registry()).with_encoder(encoder);
    let outcome = wait(async move { runner.run(calls(&[""]), RunOptions::default()).await })
        .expect("it starts");
    let expected = "the result could not be encoded: the encoder panicked: no form for it";
    assert_eq!(outcome.messages[0].content, json!({"error": expected}).to_string());
}

#[test]
fn halt_without_a_reason_is_invalid() {
    let completion = completed(calls(&["halt as nothing"]).remove(0));
    assert_eq!(ending(&completion.result), "invalid_return/empty_halt");
    let CallResult::ToolError(error) = completion.result else { panic!("{completion:?}") };
    assert_eq!(error.to_string(), "the tool halted without a reason");
}

#[test]
fn handler_gets_every_digit_of_a_number() {
    let read = async |arguments: Value, invocation: Arc<Invocation>| {
        json!([arguments, invocation.arguments()])
    };
    let tool = Tool::native(Definition::new("t", "").expect("a name"), read).expect("a tool");
    for (given, expected) in [
        (
            r#"{"n": 123456789012345678901234567890}"#,
            json!({"n": "123456789012345678901234567890"}),
        ),
        (r#"{"n": 18446744073709551615, "m": 0.5}"#, json!({"n": u64::MAX, "m": 0.5})),
    ] {
        let (tool, call) = (tool.clone(), ToolCall::new("c", "t", given));
        let completion =
            wait(async move { Executor::new().call(&tool, call, CallOptions::default()).await });
        assert_eq!(
            completion.result.value().expect("a value").to_value(),
            json!([expected, expected]),
            "{given}"
        );
    }
}
