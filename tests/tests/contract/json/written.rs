//! The results of calls, runs and steps can be read again from their own JSON.

use std::fmt::{Debug, Display};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcell::message::{Message, ResultView};
use toolcell::outcome::{Halt, HandlerError, Media, Output, Part};
use toolcell::run::{RunEvent, RunHalt, SettledCall};
use toolcell::step::{Deliberate, HistoryEntry, Step, StepEvent};
use toolcell::{
    CallResult, Completion, Event, Executor, Limits, Outcome, Question, Refusal, Registry,
    RunOptions, Runner, Stepper, Tool, ToolCall, ToolError, Turn, Usage,
};
use toolcell_test_guests::rows;
use toolcell_tests::wait_here;

use crate::{Log, drained, form, limited, named, registry};

/// Reads a value from its text, and from its members in another order; both are equal and print the
/// same.
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(written: &Value) {
    let read: T = serde_json::from_str(&written.to_string())
        .unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(form(&read), *written);
    let again: T = serde_json::from_value(written.clone())
        .unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(again, read);
}

fn all_same<T: Serialize + DeserializeOwned + PartialEq + Debug>(rows: &[Value]) {
    rows.iter().for_each(same::<T>);
}

fn refused<T: DeserializeOwned + Debug>(rows: &[Value]) {
    for written in rows {
        let read = serde_json::from_str::<T>(&written.to_string());
        assert!(read.is_err(), "{written} became {read:?}");
    }
}

/// Returns the rows of a table.
fn table(name: &str) -> Vec<Value> {
    rows("contract/json/written", name)
}

/// Returns the failures of a table, each with the message that it prints.
fn failures<T: DeserializeOwned + Display>(name: &str) -> Vec<Value> {
    let mut failures = table(name);
    for failure in &mut failures {
        let read: T = serde_json::from_value(failure.clone())
            .unwrap_or_else(|told| panic!("{failure}: {told}"));
        failure["message"] = read.to_string().into();
    }
    failures
}

fn usage() -> Value {
    json!({"fuel": 7, "wall_us": 1500, "peak_memory": 1, "bytes_in": 2, "bytes_out": 3, "host_calls": 4, "log_bytes": 5,
        "log_bytes_dropped": 6})
}

#[test]
fn call_results_round_trip_through_json() {
    let errors = failures::<ToolError>("tool_errors");
    all_same::<ToolError>(&errors);
    let refusals = failures::<Refusal>("refusals");
    all_same::<Refusal>(&refusals);
    let mut results = table("outcomes");
    all_same::<Outcome>(&results);
    results.extend(errors.into_iter().map(|error| json!({ "tool_error": error })));
    results.extend(refusals.into_iter().map(|refusal| json!({ "refusal": refusal })));
    all_same::<CallResult>(&results);
    let mut unmetered = usage();
    unmetered["fuel"] = Value::Null;
    all_same::<Usage>(&[usage(), unmetered]);
    for result in results {
        same::<Completion>(&json!({"id": "c1", "tool": "t", "outcome": result, "usage": usage()}));
        let mut event = json!({
            "type": "tool_execution_completed", "id": "c1", "name": "t", "result": result,
            "usage": usage(),
        });
        same::<Event>(&event);
        event["id"] = "c1/1".into();
        event["parent"] = "c1".into();
        same::<Event>(&event);
    }
}

#[test]
fn invalid_result_json_is_refused() {
    refused::<ToolError>(&table("not_tool_errors"));
    refused::<Refusal>(&table("not_refusals"));
    refused::<CallResult>(&table("not_call_results"));
    refused::<Event>(&table("not_events"));
    refused::<SettledCall>(&table("not_settled_calls"));
    refused::<RunHalt>(&table("not_run_halts"));
    refused::<Step>(&table("not_steps"));
    refused::<HistoryEntry>(&table("not_history_entries"));
}

/// The error of a kind that does not exist lists those that do.
#[test]
fn unknown_kind_is_refused_with_the_known_ones() {
    let written = json!({"type": "of_tomorrow", "kind": "of_tomorrow", "id": "c"}).to_string();
    let event = serde_json::from_str::<Event>(&written).map(drop);
    let settled = serde_json::from_str::<SettledCall>(&written).map(drop);
    let refusal = serde_json::from_str::<Refusal>(&written).map(drop);
    for (read, known) in [
        (event, "`tool_execution_started`, `tool_progress`"),
        (settled, "`tool_result_encoded`, `ask_user_requested`, `tool_halt`"),
        (refusal, "`invalid_arguments`, `not_visible`"),
    ] {
        let problem = read.expect_err(known).to_string();
        let expected = format!("unknown variant `of_tomorrow`, expected one of {known}");
        assert!(problem.contains(&expected), "{problem}");
    }
}

#[test]
fn events_round_trip_through_json() {
    all_same::<Event>(&table("events"));
    all_same::<SettledCall>(&table("settled_calls"));
    same::<StepEvent>(
        &json!({"type": "trigger_notice", "id": null, "tool": "t", "trigger": "do it"}),
    );
}

/// 127 levels is the deepest nesting that can be read, wherever the value stands.
#[test]
fn deepest_value_round_trips_through_json() {
    let deep = format!("{}1{}", "[".repeat(127), "]".repeat(127));
    let completion = format!(
        r#"{{"id":"c","tool":"t","outcome":{{"ok":{{"value":{deep}}}}},"usage":{}}}"#,
        usage()
    );
    let read: Completion = serde_json::from_str(&completion).expect("a completion");
    assert_eq!(read.result.value().expect("ok").as_str(), deep);
    let event = format!(
        r#"{{"type":"tool_execution_completed","id":"c","name":"t","result":{{"ok":{{"value":{deep}}}}},"usage":{}}}"#,
        usage()
    );
    assert!(serde_json::from_str::<Event>(&event).is_ok());
    let twice = completion.replace(&deep, r#"{"a":1,"a":2}"#);
    assert!(serde_json::from_str::<Completion>(&twice).is_err(), "a member that stands twice");
}

fn tool() -> Tool {
    let definition = named("t").with_attribute("team", json!({"name": "north"}));
    let handler = async |arguments: Value| match arguments["end"].as_str() {
        Some("error") => Outcome::Error(HandlerError::new("no").with_data(json!({"near": null}))),
        Some("ask") => Outcome::AskUser(
            Question::new("which?").with_options(json!(["a"])).with_state(json!(null)),
        ),
        Some("halt") => Outcome::Halt(Halt::new("done", json!({"total": 1.5}))),
        Some("panic") => panic!("ouch"),
        Some("never") => std::future::pending().await,
        _ => {
            let image = Part::Image(Media { mime_type: "image/png".into(), data: vec![1, 2, 3] });
            let mut output =
                Output::new(json!({"x": [null]})).with_message("done").with_part(image);
            output.end_turn = true;
            output.extensions.insert("cost".into(), json!(null).into());
            Outcome::Ok(output)
        }
    };
    Tool::native(definition, handler).expect("a tool")
}

/// Like `same`, from the JSON of a value, which cuts its times to the precision of the text.
fn round_trips<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    same::<T>(&form(value));
}

#[test]
fn real_call_results_round_trip_through_json() {
    let registry = registry([tool(), Tool::manual(named("manual")).expect("a tool")]);
    let ends = ["ok", "error", "ask", "halt", "panic", "never"];
    let calls: Vec<_> = ends
        .iter()
        .map(|end| ToolCall::with_value(*end, "t", &json!({ "end": end })))
        .chain([ToolCall::new("refused", "t", "[]"), ToolCall::new("manual", "manual", "")])
        .collect();
    let (heard, events) = Log::shared();
    let limits = Limits { timeout: Duration::from_millis(20), ..Limits::unlimited() };
    let options = RunOptions { call: limited(limits), ..RunOptions::default() };
    let executor =
        Executor::new().without_sealer().with_events(move |event: Event| events.push(event));
    let runner = Runner::new(registry.clone()).with_executor(executor.clone());
    let events = drained(&runner, calls.clone(), options.clone()).into_iter();
    let settled = events.filter_map(|event| {
        if let RunEvent::Settled { settled, .. } = event { Some(settled) } else { None }
    });
    settled.for_each(|settled| round_trips::<SettledCall>(&settled));
    let outcome = wait_here(runner.run(calls.clone(), options)).expect("it starts");
    let completions = calls.iter().map(|asked| {
        let called = registry.call(&executor, asked.clone(), limited(limits));
        wait_here(called).expect("it is registered")
    });
    let completions: Vec<_> = completions.collect();
    let mut turn = Turn::default();
    turn.call.limits = limits;
    turn.deliberate = Some(Deliberate::new(["t", "manual"]));
    let stepper = Stepper::new(registry).with_executor(Executor::new().without_sealer());
    let mut steps = wait_here(stepper.step_all(calls, &mut turn));
    let empty = Stepper::new(Registry::new());
    steps.push(wait_here(empty.step(json!({"name": "closed"}), &mut turn)));
    steps.push(Step::Restart);
    turn.stop();
    steps.push(wait_here(empty.step(json!({"name": "t"}), &mut turn)));
    assert_eq!((outcome.messages.len(), completions.len(), steps.len()), (8, 8, 11));
    round_trips(&outcome);
    outcome.messages.iter().for_each(round_trips::<Message>);
    round_trips(outcome.halted.as_ref().expect("it halts"));
    completions.iter().for_each(round_trips);
    for completion in &completions {
        round_trips(&ResultView::of(completion, tool().definition()));
    }
    steps.iter().for_each(round_trips);
    heard.taken().iter().for_each(round_trips::<Event>);
}
