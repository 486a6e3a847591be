//! The results of calls, runs and steps can be read again from their own JSON.

use std::fmt::{Debug, Display};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcell::message::{Message, ResultView};
use toolcell::outcome::{Halt, HandlerError, Media, Output, Part};
use toolcell::run::{RunEvent, RunHalt, RunOutcome, SettledCall};
use toolcell::step::{HistoryEntry, Step, StepEvent};
use toolcell::{
    CallOptions, CallResult, Completion, Definition, Event, Executor, Limits, Outcome, Question,
    Refusal, Registry, RunOptions, Runner, Stepper, Tool, ToolCall, ToolError, Turn, Usage,
};
use toolcell_test_guests::rows;
use toolcell_tests::wait;

/// Reads a value from its text, and from its members in another order; both are equal and print the
/// same.
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(written: &Value) {
    let read: T = serde_json::from_str(&written.to_string())
        .unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(serde_json::to_value(&read).expect("JSON"), *written);
    let again: T = serde_json::from_value(written.clone())
        .unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(again, read);
}

fn all_same<T: Serialize + DeserializeOwned + PartialEq + Debug>(table: &[Value]) {
    table.iter().for_each(same::<T>);
}

fn refused<T: DeserializeOwned + Debug>(table: &[Value]) {
    for written in table {
        let read = serde_json::from_str::<T>(&written.to_string());
        assert!(read.is_err(), "{written} became {read:?}");
    }
}

/// Returns the failures of a table, each with the message that it prints.
fn failures<T: DeserializeOwned + Display>(table: &str) -> Vec<Value> {
    let mut failures = rows::<Value>("contract/written", table);
    for failure in &mut failures {
        let read: T = serde_json::from_value(failure.clone())
            .unwrap_or_else(|told| panic!("{failure}: {told}"));
        failure["message"] = read.to_string().into();
    }
    failures
}

fn tool_errors() -> Vec<Value> {
    failures::<ToolError>("tool_errors")
}

fn refusals() -> Vec<Value> {
    failures::<Refusal>("refusals")
}

fn outcomes() -> Vec<Value> {
    rows("contract/written", "outcomes")
}

fn usage() -> Value {
    json!({"fuel": 7, "wall_us": 1500, "peak_memory": 1, "bytes_in": 2, "bytes_out": 3, "host_calls": 4, "log_bytes": 5,
        "log_bytes_dropped": 6})
}

fn results() -> Vec<Value> {
    let mut results = outcomes();
    results.extend(tool_errors().into_iter().map(|error| json!({ "tool_error": error })));
    results.extend(refusals().into_iter().map(|refusal| json!({ "refusal": refusal })));
    results
}

#[test]
fn call_results_round_trip_through_json() {
    all_same::<ToolError>(&tool_errors());
    all_same::<Refusal>(&refusals());
    all_same::<Outcome>(&outcomes());
    all_same::<CallResult>(&results());
    let mut unmetered = usage();
    unmetered["fuel"] = Value::Null;
    all_same::<Usage>(&[usage(), unmetered]);
    for result in results() {
        same::<Completion>(&json!({"id": "c1", "tool": "t", "outcome": result, "usage": usage()}));
        same::<Event>(
            &json!({"type": "tool_execution_completed", "id": "c1", "name": "t", "result": result, "usage": usage()}),
        );
        same::<Event>(
            &json!({"type": "tool_execution_completed", "id": "c1/1", "name": "t", "result": result, "usage": usage(), "parent": "c1"}),
        );
    }
}

#[test]
fn invalid_result_json_is_refused() {
    refused::<ToolError>(&rows("contract/written", "not_tool_errors"));
    refused::<Refusal>(&rows("contract/written", "not_refusals"));
    refused::<CallResult>(&rows("contract/written", "not_call_results"));
    refused::<Event>(&rows("contract/written", "not_events"));
    refused::<SettledCall>(&rows("contract/written", "not_settled_calls"));
    refused::<RunHalt>(&rows("contract/written", "not_run_halts"));
    refused::<Step>(&rows("contract/written", "not_steps"));
    refused::<HistoryEntry>(&rows("contract/written", "not_history_entries"));
}

#[test]
fn events_round_trip_through_json() {
    all_same::<Event>(&rows("contract/written", "events"));
    all_same::<SettledCall>(&rows("contract/written", "settled_calls"));
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
    let definition =
        Definition::new("t", "").expect("a name").with_attribute("team", json!({"name": "north"}));
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
    same::<T>(&serde_json::to_value(value).expect("JSON"));
}

#[test]
fn real_call_results_round_trip_through_json() {
    let registry = Registry::new();
    registry
        .register_all([
            tool(),
            Tool::manual(Definition::new("manual", "").expect("a name")).expect("a tool"),
        ])
        .expect("new");
    let ends = ["ok", "error", "ask", "halt", "panic", "never", "refused"];
    let calls: Vec<_> = ends
        .iter()
        .map(|end| match *end {
            "refused" => ToolCall::new(*end, "t", "[]"),
            end => ToolCall::with_value(end, "t", &json!({ "end": end })),
        })
        .chain([ToolCall::new("manual", "manual", "")])
        .collect();
    let (heard, sink) = (Arc::new(Mutex::new(Vec::new())), Arc::default());
    let kept: Arc<Mutex<Vec<SettledCall>>> = Arc::clone(&sink);
    let events = Arc::clone(&heard);
    let limits = Limits { timeout: Duration::from_millis(20), ..Limits::unlimited() };
    let call = CallOptions { limits, ..CallOptions::default() };
    let options = RunOptions { call: call.clone(), ..RunOptions::default() };
    let (outcome, completions, steps): (RunOutcome, Vec<Completion>, Vec<Step>) =
        wait(async move {
            let executor = Executor::new()
                .without_sealer()
                .with_events(move |event: Event| events.lock().expect("no panic").push(event));
            let runner = Runner::new(registry.clone()).with_executor(executor.clone());
            let mut stream = runner.stream(calls.clone(), options.clone());
            while let Some(event) = stream.next().await {
                if let RunEvent::Settled { settled, .. } = event {
                    kept.lock().expect("no panic").push(settled);
                }
            }
            let outcome = runner.run(calls.clone(), options).await.expect("it starts");
            let mut completions = Vec::new();
            for asked in calls.clone() {
                let completion = registry.call(&executor, asked, call.clone()).await;
                completions.push(completion.expect("it is registered"));
            }
            let mut turn = Turn::default();
            turn.call.limits = limits;
            turn.deliberate = Some(toolcell::step::Deliberate::new(["t", "manual"]));
            let mut steps = Stepper::new(registry)
                .with_executor(Executor::new().without_sealer())
                .step_all(calls, &mut turn)
                .await;
            steps.push(
                Stepper::new(Registry::new()).step(json!({"name": "closed"}), &mut turn).await,
            );
            steps.push(Step::Restart);
            turn.stop();
            steps.push(Stepper::new(Registry::new()).step(json!({"name": "t"}), &mut turn).await);
            (outcome, completions, steps)
        });
    assert_eq!((outcome.messages.len(), completions.len(), steps.len()), (8, 8, 11));
    round_trips(&outcome);
    outcome.messages.iter().for_each(round_trips::<Message>);
    round_trips(outcome.halted.as_ref().expect("it halts"));
    completions.iter().for_each(round_trips);
    for completion in &completions {
        round_trips(&ResultView::of(completion, tool().definition()));
    }
    steps.iter().for_each(round_trips);
    sink.lock().expect("no panic").iter().for_each(round_trips::<SettledCall>);
    heard.lock().expect("no panic").iter().for_each(round_trips::<Event>);
}
