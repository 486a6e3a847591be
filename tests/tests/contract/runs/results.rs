//! Results of a call and of a run for their callers: the last event, messages, views, and one text
//! for each failure.

use std::panic::panic_any;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcell::message::{EncodeError, EncodeInput, ResultView};
use toolcell::provider::agui_events;
use toolcell::run::{RunEvent, RunOutcome};
use toolcell::step::Step;
use toolcell::tool::Invocation;
use toolcell::{
    CallOptions, CallResult, Completion, Executor, OnToolError, Outcome, Provider, Registry,
    RunOptions, Runner, Stepper, Tool, ToolCall, Turn,
};
use toolcell_test_guests::rows;
use toolcell_tests::{ending, wait_here};

use crate::{at_most, drained, named, native};

const CASES: &str = "contract/runs/results";

/// Returns a tool that ends as its arguments say.
fn scripted() -> Tool {
    let definition = named("t").with_attribute("team", json!("north"));
    let definition = definition.with_parameters(json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "m": {"type": "boolean"}},
    }));
    let outcomes = Arc::new(rows::<(&str, Outcome)>(CASES, "outcomes"));
    let tool = Tool::native(definition, async move |arguments: Value| {
        let end = arguments["end"].as_str().unwrap_or_default();
        match end {
            "panic" => panic!("ouch"),
            "panic 42" => panic_any(42_u8),
            "panic error" => {
                panic_any(Box::<dyn std::error::Error + Send + Sync>::from("disk full"))
            }
            "panic type" => panic_any(Arc::new(())),
            "slow" => {
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
            }
            _ => {}
        }
        let known = outcomes.iter().find(|(word, _)| *word == end);
        known.map_or_else(|| Outcome::ok(json!("fine")), |(_, outcome)| outcome.clone())
    });
    tool.expect("a tool").with_validator(|arguments| match arguments["end"].as_str() {
        Some("invalid") => vec!["too late".into(), "too many".into()],
        _ => Vec::new(),
    })
}

fn registry() -> Registry {
    let manual = Tool::manual(named("manual")).expect("a tool");
    let hidden = native("hidden", async |_: Value| json!(1)).with_visibility(|_, _| false);
    crate::registry([scripted(), manual, hidden])
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

fn runner() -> Runner {
    Runner::new(registry()).with_executor(executor())
}

fn run(calls: Vec<ToolCall>, options: RunOptions) -> RunOutcome {
    wait_here(runner().run(calls, options)).expect("it starts")
}

fn events(calls: Vec<ToolCall>, options: RunOptions) -> Vec<RunEvent> {
    drained(&runner(), calls, options)
}

fn completed(call: ToolCall) -> Completion {
    let tool = registry().get(&call.name).expect("the tool");
    wait_here(executor().call(&tool, call, CallOptions::default()))
}

fn step(call: &ToolCall) -> Value {
    let stepper = Stepper::new(registry()).with_executor(executor());
    let step = wait_here(stepper.step(call.clone(), &mut Turn::default()));
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
    let table = "halted_run_reports_it_in_the_last_event";
    for (ends, policy, expected) in rows::<(Vec<&str>, &str, Option<Value>)>(CASES, table) {
        let ends = &*ends;
        let on_tool_error = match policy {
            "continue" => OnToolError::Continue,
            "halt" => OnToolError::Halt,
            "panics" => OnToolError::decide(|_, _| panic!("policy bug")),
            other => panic!("there is no policy `{other}`"),
        };
        let options = RunOptions { on_tool_error, ..at_most(8) };
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
        let mut told = told.iter().map(|event| json!(event));
        let asked = told.find(|event| event["type"] == "ask_user_requested").expect("a question");
        assert_eq!((&asked["options"], &asked["answer_schema"]), (&options, &schema), "{asked}");
        let outcome = json!(run(calls(&[end]), RunOptions::default()));
        let entry = step(&calls(&[end])[0]);
        for halt in [&outcome["halt"], &entry["halted"]] {
            assert!(halt.get("ask_user_opts").is_some(), "the member is always there: {halt}");
            let told = (&halt["ask_user_opts"], &halt["answer_schema"]);
            assert_eq!(told, (&options, &schema), "{halt}");
        }
    }
}

/// The content of a success that goes to every provider.
#[test]
fn message_without_a_value_is_the_content() {
    for (end, content) in rows::<(&str, &str)>(CASES, "message_without_a_value_is_the_content") {
        let outcome = run(calls(&[end]), RunOptions::default());
        let message = &outcome.messages[0];
        assert_eq!((message.content.as_str(), message.is_error), (content, false), "{end}");
        let call = &calls(&[end])[0];
        let entry = step(call);
        let result = &entry["functionResponse"]["response"]["result"];
        let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
        assert_eq!(text, content, "{end}: {entry}");
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
    let table = "failure_text_is_the_same_everywhere";
    for (tool, arguments, expected) in rows::<(&str, &str, &str)>(CASES, table) {
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
        let mut kinds = ["refusal", "error", "tool_error"].iter();
        assert!(kinds.any(|kind| result["outcome"][kind]["message"] == expected), "{result}");
    }
}

#[test]
fn result_view_of_a_failure_is_complete() {
    let table = "result_view_of_a_failure_is_complete";
    for (end, rest) in rows::<(&str, Map<String, Value>)>(CASES, table) {
        let mut expected =
            json!({"tool_call_id": "c0", "tool": "t", "attributes": {"team": "north"}});
        expected.as_object_mut().expect("an object").extend(rest);
        assert_eq!(json!(view(&calls(&[end])[0])), expected, "{end}");
    }
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
    let ends = ["slow", "", "error", "halt"];
    let outcome = json!(run(calls(&ends), RunOptions::default()));
    let usage = outcome["usage"].as_array().expect("a list");
    let sizes: Vec<_> = usage.iter().filter_map(|usage| usage["bytes_in"].as_u64()).collect();
    let expected: Vec<_> = calls(&ends).iter().map(|call| call.arguments.len() as u64).collect();
    assert_eq!(sizes, expected, "in the order of the input");
    assert!(usage.iter().all(|usage| usage["wall_us"].is_u64()), "{outcome}");
}

/// The payload of a panic is shown if it has a common type. Of any other type, only the panic is
/// shown.
#[test]
fn panic_payload_is_reported() {
    for (end, expected) in rows::<(&str, &str)>(CASES, "panic_payload_is_reported") {
        let outcome = run(calls(&[end]), RunOptions::default());
        let expected = json!({"error": expected}).to_string();
        assert_eq!(outcome.messages[0].content, expected, "{end}");
    }
}

#[test]
fn panicking_encoders_message_is_kept() {
    let encoder = |_: EncodeInput<'_>| -> Result<String, EncodeError> { panic!("no form for it") };
    let runner = Runner::new(registry()).with_encoder(encoder);
    let outcome = wait_here(runner.run(calls(&[""]), RunOptions::default())).expect("it starts");
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
    let tool = native("t", async |arguments: Value, invocation: Arc<Invocation>| {
        json!([arguments, invocation.arguments()])
    });
    let long = "123456789012345678901234567890";
    for (given, expected) in [
        (&*format!(r#"{{"n": {long}}}"#), json!({"n": long})),
        (r#"{"n": 18446744073709551615, "m": 0.5}"#, json!({"n": u64::MAX, "m": 0.5})),
    ] {
        let called = crate::call(&Executor::new(), &tool, given);
        let value = called.result.value().expect("a value").to_value();
        assert_eq!(value, json!([expected, expected]), "{given}");
    }
}
