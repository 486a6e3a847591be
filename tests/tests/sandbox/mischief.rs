//! Tools of a careless or hostile author, written in Rust with the project's guest crate.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::runtime::Placement;
use toolcell::{
    AbortSignal, CallContext, CallOptions, CallResult, Completion, Component, Event, Executor,
    Limits, ToolCall, ToolError,
};
use toolcell_test_guests::rows;
use toolcell_tests::{PLACEMENTS, call, ending, engine, load, wait};

use crate::any_fuel;

fn mischief(placement: Placement) -> Component {
    load(&engine(placement, env!("CARGO_TARGET_TMPDIR")), toolcell_test_guests::bytes("mischief"))
        .expect("it loads")
}

fn value(completion: &Completion) -> Value {
    completion.result.value().expect("an answer").to_value()
}

/// Makes a call. Returns its completion and all its events.
fn observed(
    component: &Component,
    tool: &str,
    arguments: &Value,
    limits: Limits,
) -> (Completion, Vec<Event>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let executor = Executor::new()
        .with_limits(limits)
        .with_events(move |event| sink.lock().expect("no panic").push(event));
    let mut context = CallContext::default();
    context.tenant = Some("acme".into());
    let (tool, call) = (
        component.tool(tool).expect("the tool").clone(),
        ToolCall::with_value("call-1", tool, arguments),
    );
    let options = CallOptions { context: context.into(), ..CallOptions::default() };
    let completion = wait(async move { executor.call(&tool, call, options).await });
    let events = std::mem::take(&mut *events.lock().expect("no panic"));
    (completion, events)
}

#[test]
fn guest_ends_as_the_contract_says() {
    let quick = any_fuel(Duration::from_millis(200));
    let little = Limits { fuel: 50_000_000, ..Limits::default() };
    for placement in PLACEMENTS {
        let component = mischief(placement);
        for (tool, arguments, limits, expected) in
            rows::<(&str, &str, &str, &str)>("sandbox/mischief", "guest_ends_as_the_contract_says")
        {
            let limits = match limits {
                "little fuel" => little,
                "little time" => quick,
                "usual" => Limits::default(),
                _ => panic!("{limits}"),
            };
            let completion = call(&component, tool, arguments, limits);
            let end = ending(&completion.result);
            assert_eq!(end, expected, "{tool}, {placement:?}: {completion:?}");
        }
    }
}

#[test]
fn panic_message_is_kept_and_escaped() {
    let words = r#"{"words": "ouch \u001b[31m"}"#;
    let completion = call(&mischief(Placement::Cells), "panics", words, Limits::default());
    let CallResult::ToolError(ToolError::HandlerRaised(raised)) = &completion.result else {
        panic!("{completion:?}");
    };
    let words = raised.panic_message.as_deref().expect("the panic's words");
    assert!(words.contains("ouch ?[31m") && !words.contains('\u{1b}'), "{words}");
    assert!(words.starts_with("panicked at ") && !words.contains("RUST_BACKTRACE"), "{words}");
    let told = serde_json::to_value(&completion.result).expect("JSON");
    assert_eq!(told["tool_error"]["message"], format!("the tool aborted: {words}"));
    assert!(!raised.backtrace.is_empty());
}

#[test]
fn guest_sees_nothing_of_the_machine() {
    for placement in PLACEMENTS {
        let completion = call(&mischief(placement), "looks_around", "{}", Limits::default());
        let expected = json!({
            "environment": 0, "arguments": 0, "directory": false, "written": false, "stdin": 0,
        });
        assert_eq!(value(&completion), expected, "{placement:?}");
    }
    assert!(!std::path::Path::new("/tmp/mischief").exists());
}

#[test]
fn nothing_survives_a_call() {
    for placement in PLACEMENTS {
        let component = mischief(placement);
        for round in 0..50 {
            let secret = format!(r#"{{"secret": "s{round}"}}"#);
            let completion = call(&component, "remembers", &secret, Limits::default());
            assert_eq!(value(&completion), Value::Null, "{placement:?}");
        }
    }
}

#[test]
fn output_becomes_log_events_within_bounds() {
    let component = mischief(Placement::Cells);
    let (completion, events) =
        observed(&component, "chatters", &json!({"lines": 2}), Limits::default());
    let line = |event: &Event| {
        let Event::Log { source, message, .. } = event else { return None };
        Some(format!("{source:?}: {message}"))
    };
    let lines: Vec<_> = events.iter().filter_map(line).collect();
    assert_eq!(lines, rows::<&str>("sandbox/mischief", "output_becomes_log_events_within_bounds"));
    let usage = completion.usage;
    assert_eq!((usage.log_bytes, usage.log_bytes_dropped), (7 + 10 + 7 + 10 + 6, 0));

    let limits = Limits { log: 1000, ..Limits::default() };
    let (completion, events) = observed(&component, "chatters", &json!({"lines": 5000}), limits);
    assert_eq!(ending(&completion.result), "ok");
    let said = (0..5000).map(|n| format!("line {n}\nwarning {n}\n").len() as u64).sum::<u64>() + 6;
    let kept: u64 = events.iter().map(heard).sum();
    let usage = completion.usage;
    assert_eq!((usage.log_bytes, usage.log_bytes + usage.log_bytes_dropped), (kept, said));
    assert!(kept <= 1000, "{usage:?}");
}

/// Returns the number of bytes that a tool wrote for a log line, its line break included.
fn heard(event: &Event) -> u64 {
    let Event::Log { message, .. } = event else { return 0 };
    message.len() as u64 + u64::from(message != "no end")
}

/// About as many bytes as a second allows, also bytes that are not UTF-8.
#[test]
fn flooded_output_is_kept_or_counted_exactly() {
    let free = Limits { fuel: u64::MAX, host_calls: u64::MAX, log: 10_000, ..Limits::default() };
    for placement in PLACEMENTS {
        let component = mischief(placement);
        for byte in [b'x', 0xff, 0] {
            let (completion, events) =
                observed(&component, "pours", &json!({"byte": byte, "millions": 20}), free);
            assert_eq!(ending(&completion.result), "ok", "{completion:?}");
            // A line that does not end is cut at every 4096 bytes, and two of those fit.
            let usage = completion.usage;
            assert_eq!((usage.log_bytes, usage.log_bytes_dropped), (8192, 20_000_000 - 8192));
            assert_eq!(events.len(), 4, "it starts and ends, and twice it speaks");
        }
    }
}

#[test]
fn host_services_work() {
    for placement in PLACEMENTS {
        let (completion, events) =
            observed(&mischief(placement), "services", &json!({}), Limits::default());
        let expected = json!({
            "aborted": false, "fuel_went_down": true, "time_is_left": true, "memory_is_left": true,
            "work": 49_995_000, "tenant": "acme", "attempt": 1,
        });
        assert_eq!(value(&completion), expected);
        let kind = |event: &Event| json!(event)["type"].clone();
        let kinds: Vec<_> = events.iter().map(kind).collect();
        let expected =
            ["tool_execution_started", "tool_log", "tool_progress", "tool_execution_completed"];
        assert_eq!(kinds, expected, "{placement:?}");
        assert_eq!(completion.usage.host_calls, 5);
    }
}

#[test]
fn guest_sees_an_abort() {
    let component = mischief(Placement::Cells);
    let abort = AbortSignal::new();
    abort.raise();
    let (tool, call) = (
        component.tool("services").expect("the tool").clone(),
        ToolCall::new("1", "services", "{}"),
    );
    let options = CallOptions { abort, stop_grace: Duration::MAX, ..CallOptions::default() };
    let completion = wait(async move { Executor::new().call(&tool, call, options).await });
    assert_eq!(value(&completion)["aborted"], true);
}
