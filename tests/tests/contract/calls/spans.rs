//! Tests the spans that calls leave in an operator's traces.

use std::fs;
use std::future::pending;
use std::time::Duration;

use futures_executor::block_on;
use serde_json::{Value, json};
use toolcell::{CallOptions, Executor, RunOptions, Runner, ToolCall};
use toolcell_test_guests::rows;
use toolcell_tests::context;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::{inside, native, poll, registry};

/// Returns the lines of the spans and events of this work.
fn traced(work: impl FnOnce()) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let sink = file.reopen().expect("a file");
    let lines = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || sink.try_clone().expect("a file"));
    tracing::subscriber::with_default(lines.finish(), work);
    fs::read_to_string(file.path()).expect("text")
}

/// Returns the only line about the end of this call's span.
fn closed<'a>(text: &'a str, id: &str) -> &'a str {
    let is_end = |line: &&str| line.contains(&format!("id=\"{id}\" ")) && line.contains("close");
    let lines: Vec<_> = text.lines().filter(is_end).collect();
    let [line] = lines[..] else { panic!("{} spans of `{id}`:\n{text}", lines.len()) };
    line
}

#[test]
fn each_calls_span_records_its_ending() {
    let tool = native("t", async |arguments: Value| match arguments["end"].as_str() {
        Some("panic") => panic!("ouch \u{1b}[31m"),
        Some("never") => pending().await,
        _ => {
            tracing::info!("at work");
            Ok::<_, String>(Value::Null)
        }
    });
    let executor = Executor::new();
    let call = |id: &str, end: &str| {
        let call = ToolCall::new(id, "t", format!(r#"{{"end": "{end}"}}"#));
        executor.call(&tool, call, CallOptions::default())
    };
    let text = traced(|| {
        block_on(call("good", "ok"));
        block_on(call("bad", "panic"));
        // Cancelled: its future is dropped after it has started.
        let mut killed = Box::pin(call("killed", "never"));
        assert!(poll(killed.as_mut()).is_pending());
    });
    let has = |id: &str, words: &str| closed(&text, id).contains(words);
    assert!(has("good", r#"outcome="ok""#) && has("good", "duration_us="), "{text}");
    assert!(!has("good", "exception"), "{text}");
    assert!(has("bad", r#"outcome="tool_error""#) && has("bad", "ouch"), "{text}");
    assert!(has("killed", "the call was cancelled"), "{text}");
    let at_work = "tool_call{id=\"good\" tool=t}: contract::calls::spans: at work";
    assert!(text.contains(at_work), "what runs for a call runs in its span:\n{text}");
    assert!(!text.contains('\u{1b}'), "no escape of a stranger's:\n{text}");
}

/// For every ending of a call of a run, also for calls that did not run.
#[test]
fn each_call_of_a_run_has_a_span() {
    let tool = native("t", async |arguments: Value| match arguments["end"].as_str() {
        Some("never") => pending().await,
        Some("error") => Err("no such city"),
        _ => Ok(Value::Null),
    });
    let runner = Runner::new(registry([tool]));
    let table =
        rows::<(&str, &str, [&str; 2])>("contract/calls/spans", "each_call_of_a_run_has_a_span");
    let calls: Vec<_> =
        table.iter().map(|(id, arguments, _)| ToolCall::new(*id, "t", *arguments)).collect();
    let text = traced(|| {
        let options = RunOptions {
            call: inside(context(&json!({"request_id": "r-1"}))),
            tool_timeout: Some(Duration::from_millis(20)),
            ..RunOptions::default()
        };
        block_on(runner.run(calls, options)).expect("it starts");
    });
    for (id, _, said) in table {
        let line = closed(&text, id);
        assert!(said.iter().all(|said| line.contains(said)), "{line}");
        assert!(line.contains(r#"request_id="r-1""#), "{line}");
    }
}
