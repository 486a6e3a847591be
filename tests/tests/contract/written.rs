//! The results of calls, runs and steps can be read again from their own JSON.

use std::fmt::Debug;
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

fn tool_errors() -> Vec<Value> {
    let raised = json!({"kind": "unreachable", "limit": {"kind": "memory", "limit": 1, "requested": 2},
        "backtrace": ["f"], "frames": [{"function": 1, "offset": 2}], "panic_message": "no", "stdout": "a"});
    let fault = json!({"path": "/a", "code": "rule", "expected": "a number", "actual": "\"b\"", "nearest": "1"});
    let rule = |rule: Value| json!({"reason": "invalid_return", "cause": rule});
    let mut errors = vec![
        json!({"reason": "handler_raised", "cause": raised}),
        json!({"reason": "handler_raised", "cause": {"kind": "native_panic"}}),
        json!({"reason": "handler_exit", "cause": {"status": "exited", "code": 1}}),
        json!({"reason": "handler_exit", "cause": {"status": "process_ended"}}),
        json!({"reason": "timeout", "cause": {"kind": "fuel", "budget": 5, "used": 6, "stdout": "a"}}),
        json!({"reason": "timeout", "cause": {"kind": "deadline", "budget_ms": 5, "used_ms": 6}}),
        json!({"reason": "timeout", "cause": {"kind": "blocked", "budget_ms": 5, "used_ms": 6}}),
        json!({"reason": "timeout", "cause": {"kind": "blocked", "budget_ms": 5, "used_ms": 6, "blocked_on": "http"}}),
        json!({"reason": "not_found"}),
        json!({"reason": "encoding_failed", "cause": "no text"}),
        rule(json!({"rule": "not_json", "field": "value", "detail": "not valid JSON"})),
        rule(json!({"rule": "too_large", "limit": 1, "actual": 2})),
        rule(json!({"rule": "too_many_parts", "limit": 1, "actual": 2})),
        rule(json!({"rule": "state_too_large", "limit": 1, "actual": 2})),
        rule(json!({"rule": "schema", "faults": [fault]})),
        rule(json!({"rule": "policy", "detail": "panicked"})),
        rule(json!({"rule": "unreadable", "detail": "far over"})),
        json!({"reason": "invalid_return", "cause": {"rule": "reserved_halt", "reason": "cancelled"},
            "metadata": {"reserved_halt_atom": "cancelled"}}),
    ];
    for error in &mut errors {
        let read: ToolError =
            serde_json::from_value(error.clone()).unwrap_or_else(|told| panic!("{error}: {told}"));
        error["message"] = read.to_string().into();
    }
    errors
}

fn refusals() -> Vec<Value> {
    let mut refusals: Vec<_> = [
        "not_visible",
        "not_allowed",
        "quarantined",
        "unknown_tenant",
        "no_tenant",
        "resume_missing",
        "resume_tampered",
        "resume_expired",
        "resume_foreign",
        "resume_other_tool",
        "resume_upgraded",
        "resume_other_arguments",
    ]
    .map(|kind| json!({"kind": kind}))
    .into();
    refusals.extend(
        ["circuit_open", "overloaded", "restarting"]
            .map(|kind| json!({"kind": kind, "retry_after_ms": 250})),
    );
    refusals.push(json!({"kind": "unset_secret", "secrets": ["key", "token"]}));
    let faults = json!([
        {"path": "", "code": "type", "types": ["object"], "expected": "expected an object", "actual": "an array"},
        {"path": "", "code": "syntax", "message": "EOF", "line": 1, "column": 2, "expected": "not valid JSON: EOF"},
        {"path": "", "code": "more", "count": 2, "expected": "2 more"},
    ]);
    refusals.extend(
        ["invalid_arguments", "invalid_answer"].map(|kind| json!({"kind": kind, "faults": faults})),
    );
    for refusal in &mut refusals {
        let read: Refusal = serde_json::from_value(refusal.clone())
            .unwrap_or_else(|told| panic!("{refusal}: {told}"));
        refusal["message"] = read.to_string().into();
    }
    refusals
}

fn outcomes() -> Vec<Value> {
    vec![
        json!({"ok": {"value": null}}),
        json!({"ok": {"value": {"a": [1, 2.5, "é", 18_446_744_073_709_551_615_u64]}, "message": "done",
            "parts": [{"type": "image", "mime_type": "image/png", "data": "AAAA"}], "end_turn": true,
            "extensions": {"cost": null}}}),
        json!({"error": {"message": "no", "data": null, "retryable": true, "retry_after_ms": 5}}),
        json!({"ask_user": {"question": "which?", "options": ["a"], "answer_schema": {}, "state": null}}),
        json!({"halt": {"reason": "done", "result": null}}),
    ]
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
    refused::<ToolError>(&[
        json!({"reason": "late", "message": ""}),
        json!({"reason": "timeout", "message": ""}),
        json!({"reason": "timeout", "cause": {"kind": "fuel"}, "message": ""}),
        json!({"reason": "timeout", "cause": {"kind": "deadline", "budget": 1, "used": 1}, "message": ""}),
        json!({"reason": "handler_exit", "cause": "process_ended", "message": ""}),
        json!("timeout"),
    ]);
    refused::<Refusal>(&[
        json!({"kind": "sorry", "message": ""}),
        json!({"kind": "overloaded", "message": ""}),
        json!({"kind": "invalid_arguments", "message": ""}),
    ]);
    refused::<CallResult>(&[
        json!({}),
        json!({"ok": {}}),
        json!({"ok": {"value": 1}, "error": {"message": ""}}),
    ]);
    refused::<Event>(&[
        json!({"type": "tool_execution_started", "id": "c"}),
        json!({"type": "tool_ended", "id": "c"}),
    ]);
    refused::<SettledCall>(&[
        json!({"type": "tool_halt", "id": "c"}),
        json!({"type": "tool_result_encoded", "id": "c"}),
    ]);
    refused::<RunHalt>(&[
        json!({"halted_reason": "ask_user"}),
        json!({"halted_reason": "done", "halt_tool_call_id": "c"}),
    ]);
    refused::<Step>(&[
        json!({"kind": "abort"}),
        json!({"kind": "history", "name": "t"}),
        json!({"kind": "stay"}),
    ]);
    let half = json!({"id": "c", "name": "t"});
    refused::<HistoryEntry>(&[
        json!({"functionCall": half}),
        json!({"functionCall": {"name": "t", "args": {}}, "functionResponse": {"name": "t", "response": {"error": "x"}}}),
        json!({"functionCall": {"name": "t", "args": {}}, "functionResponse": {"name": "t", "response": {"result": 1}},
            "is_error": true}),
    ]);
}

#[test]
fn events_round_trip_through_json() {
    let denial =
        json!({"layer": "component", "request": "read /data", "grant": "paths = [\"/data\"]"});
    all_same::<Event>(&[
        json!({"type": "tool_execution_started", "id": "c", "name": "t", "arguments": "{\"a\": 1}"}),
        json!({"type": "tool_progress", "id": "c", "done": 1, "total": null, "message": null}),
        json!({"type": "tool_progress", "id": "c", "done": 1, "total": 2, "message": "half"}),
        json!({"type": "tool_log", "id": "c", "source": "stdout", "level": "info", "message": "hi"}),
        json!({"type": "tool_denied", "id": "c", "denial": denial}),
    ]);
    all_same::<SettledCall>(&[
        json!({"type": "tool_result_encoded", "id": "c", "content": "ok"}),
        json!({"type": "tool_halt", "tool_call_id": "c", "reason": "done", "result": null, "content": "null"}),
    ]);
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
