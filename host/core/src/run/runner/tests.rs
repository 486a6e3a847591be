//! Tests of runs with native tools: every rule of a batch. Components run through the same path in
//! the end-to-end tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Builder;
use toolcell_contract::call::{AbortSignal, CallContext, Resume};
use toolcell_contract::definition::Definition;
use toolcell_contract::limits::Limits;
use toolcell_contract::message::encode::{EncodeError, EncodeInput};
use toolcell_contract::message::{RunEvent, SettledCall};
use toolcell_contract::outcome::{Halt, HandlerError, Outcome, Question};
use toolcell_test_guests::rows;

use super::*;
use crate::run::policy::{OnToolError, Verdict};
use crate::tool::Tool;
use crate::tool::handler::options::CallOptions;

pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A tool that ends as its arguments say, and counts its executions.
fn scripted(ran: &Arc<AtomicUsize>) -> Tool {
    let ran = Arc::clone(ran);
    let definition = Definition::new("t", "").unwrap().with_attribute("team", "a".into());
    let handler = move |arguments: Value| {
        ran.fetch_add(1, Ordering::Relaxed);
        async move {
            let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
            match text("end").as_str() {
                "error" => Outcome::Error(HandlerError::new(text("say"))),
                "ask" => {
                    Outcome::AskUser(Question::new(text("say")).with_options(json!(["a", "b"])))
                }
                "halt" => Outcome::Halt(Halt::new(text("say"), json!({"final": true}))),
                "panic" => panic!("{}", text("say")),
                "never" => std::future::pending().await,
                _ => Outcome::ok(json!(text("say"))),
            }
        }
    };
    Tool::native(definition, handler).unwrap()
}

fn runner() -> (Runner, Arc<AtomicUsize>) {
    let (registry, ran) = (Registry::new(), Arc::default());
    registry.register(scripted(&ran)).unwrap();
    registry.register(Tool::manual(Definition::new("manual", "").unwrap()).unwrap()).unwrap();
    (Runner::new(registry).with_executor(Executor::new().without_sealer()), ran)
}

pub(super) fn runner_of(tool: Result<Tool, Error>) -> Runner {
    let registry = Registry::new();
    registry.register(tool.unwrap()).unwrap();
    Runner::new(registry)
}

/// Calls `c0`, `c1`, … with these ends.
fn calls(ends: &[(&str, &str)]) -> Vec<ToolCall> {
    let call = |(index, (end, say)): (usize, &(&str, &str))| {
        ToolCall::with_value(format!("c{index}"), "t", &json!({"end": end, "say": say}))
    };
    ends.iter().enumerate().map(call).collect()
}

fn short_timeout() -> RunOptions {
    RunOptions { tool_timeout: Some(Duration::from_millis(20)), ..RunOptions::default() }
}

fn on_error(policy: OnToolError) -> RunOptions {
    RunOptions { on_tool_error: policy, ..RunOptions::default() }
}

fn at_most(calls: usize) -> RunOptions {
    RunOptions { max_concurrency: Some(calls), ..RunOptions::default() }
}

fn run(runner: &Runner, calls: Vec<ToolCall>, options: RunOptions) -> RunOutcome {
    wait(runner.run(calls, options)).unwrap()
}

fn contents(outcome: &RunOutcome) -> Vec<&str> {
    outcome.messages.iter().map(|message| message.content.as_str()).collect()
}

/// The halt of a run because of this failed call.
fn tool_error(id: &str, exception: Option<&str>) -> Option<RunHalt> {
    let exception = exception.map(str::to_owned);
    Some(RunHalt::ToolError { tool_call_id: id.into(), exception })
}

fn settled_calls(events: &[RunEvent]) -> impl Iterator<Item = &SettledCall> {
    events.iter().filter_map(|event| {
        if let RunEvent::Settled { settled, .. } = event { Some(settled) } else { None }
    })
}

fn all_events(
    runner: &Runner,
    calls: Vec<ToolCall>,
    options: RunOptions,
) -> (Vec<RunEvent>, Option<RunHalt>) {
    wait(async {
        let (mut stream, mut events) = (runner.stream(calls, options), Vec::new());
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        assert!(stream.next().await.is_none(), "it ends once");
        (events, stream.halted().cloned())
    })
}

#[test]
fn each_outcome_is_a_message_and_matching_events() {
    let (runner, ran) = runner();
    let table = rows::<(&str, &str, &str, bool, &str)>("run/runner", "outcomes");
    let ends: Vec<_> = table.iter().map(|(end, say, ..)| (*end, *say)).collect();
    let outcome = run(&runner, calls(&ends), short_timeout());
    let found = outcome.messages.iter().map(|found| (found.content.as_str(), found.is_error));
    let expected = table.iter().map(|(_, _, content, is_error, _)| (*content, *is_error));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert!(outcome.messages.iter().all(|message| message.attributes["team"] == "a"));
    // The earliest call in the input wins, whichever ended first.
    let halt =
        json!({"halted_reason": "done", "halt_tool_call_id": "c4", "halt_result": {"final": true}});
    assert_eq!(serde_json::to_value(&outcome.halted).unwrap(), halt);
    assert_eq!(ran.load(Ordering::Relaxed), ends.len());

    let (events, halted) = all_events(&runner, calls(&ends), short_timeout());
    assert_eq!(halted, outcome.halted);
    let mut settled: Vec<_> = settled_calls(&events).map(|end| (end.id(), end.content())).collect();
    settled.sort_unstable();
    let ids = outcome.messages.iter().map(|message| message.tool_call_id.as_str());
    let messages: Vec<_> = ids.zip(contents(&outcome)).collect();
    assert_eq!(settled, messages, "but for the order they are equal");
    let events: Vec<_> = events.iter().map(|event| json!(event)).collect();
    for (index, (.., last)) in table.into_iter().enumerate() {
        let id = format!("c{index}");
        let own = events.iter().filter(|event| event["id"] == *id || event["tool_call_id"] == *id);
        let own: Vec<_> = own.map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(own, ["tool_execution_started", "tool_execution_completed", last], "{id}");
    }
}

#[test]
fn run_starts_all_calls_or_none() {
    let (runner, ran) = runner();
    let good = || calls(&[("ok", "")]);
    let unknown = good().into_iter().chain([ToolCall::new("c9", "tt", "{}")]).collect::<Vec<_>>();
    let twice = good().into_iter().chain(good()).collect::<Vec<_>>();
    let (all, mut answers) = (Limits::unlimited(), CallContext::default());
    answers.resume = Some(Resume { answer: json!("yes").into(), state: None });
    let two = calls(&[("ok", ""), ("ok", "")]);
    let zero = Duration::ZERO;
    let with = |call| RunOptions { call, ..short_timeout() };
    let limited = |limits| with(CallOptions { limits, ..CallOptions::default() });
    let invalid = [
        (limited(Limits { timeout: zero, ..all }), "`call.limits.timeout`"),
        (limited(Limits { fuel: 0, ..all }), "`call.limits.fuel`"),
        (limited(Limits { memory: 0, ..all }), "`call.limits.memory`"),
        (limited(Limits { arguments: 0, ..all }), "`call.limits.arguments`"),
        (limited(Limits { result: 0, ..all }), "`call.limits.result`"),
        (RunOptions { max_concurrency: Some(0), ..short_timeout() }, "`max_concurrency`"),
        (RunOptions { tool_timeout: Some(zero), ..short_timeout() }, "`tool_timeout`"),
    ];
    let invalid = invalid.map(|(options, hint)| (good(), options, "invalid_option", hint));
    let answering =
        || with(CallOptions { context: answers.clone().into(), ..CallOptions::default() });
    let cases = [
        (unknown, short_timeout(), "unknown_tool", "did you mean `t`?"),
        (twice, short_timeout(), "duplicate_call_id", "give each call"),
        (two, answering(), "invalid_option", "`call.context.resume`"),
    ];
    for (calls, options, reason, hint) in cases.into_iter().chain(invalid) {
        let error = wait(runner.run(calls.clone(), options.clone())).unwrap_err();
        assert_eq!(error.reason(), reason);
        assert!(error.hint().contains(hint), "{}", error.hint());
        let (events, _) = all_events(&runner, calls, options);
        let [RunEvent::Error(failure)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(serde_json::to_value(failure).unwrap()["reason"], reason);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    let empty = wait(runner.run([], short_timeout())).unwrap();
    assert!(empty.messages.is_empty() && empty.halted.is_none());
    assert!(all_events(&runner, Vec::new(), short_timeout()).0.is_empty());
    let answered = wait(runner.run(good(), answering())).unwrap();
    assert!(!answered.messages[0].is_error, "an answer goes with one call");
}

#[test]
fn policy_decides_once_for_each_failure() {
    let (runner, _) = runner();
    let ends = [("error", "late"), ("ok", "fine"), ("panic", "ouch")];
    let mut with_manual = calls(&ends);
    with_manual.push(ToolCall::new("m", "manual", "{}"));
    with_manual.push(ToolCall::new("r", "t", "[]"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let policy = OnToolError::decide(move |call, failure| {
        count.fetch_add(1, Ordering::Relaxed);
        match call.id.as_str() {
            "c0" => Verdict::Continue(json!({"instead": failure.to_string()}).into()),
            "m" => Verdict::Halt,
            _ => Verdict::Continue(json!("skipped").into()),
        }
    });
    let outcome = run(&runner, with_manual, on_error(policy));
    let refused = r#"{"error":"the host has no handler for a tool of this name"}"#;
    let expected = [r#"{"instead":"late"}"#, "fine", "skipped", refused, "skipped"];
    assert_eq!(contents(&outcome), expected);
    assert_eq!(outcome.halted, tool_error("m", None));
    let asked = asked.load(Ordering::Relaxed);
    assert_eq!(asked, 4, "once per failure: error, tool error and refusal alike");

    let outcome = run(&runner, calls(&ends), on_error(OnToolError::Halt));
    assert_eq!(outcome.messages[1].content, "fine", "siblings end as they would");
    assert_eq!(outcome.halted, tool_error("c0", None));
}

#[test]
fn failing_policy_halts_and_is_not_asked_again() {
    let (runner, _) = runner();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let panics = OnToolError::decide(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        panic!("policy bug")
    });
    let outcome = run(&runner, calls(&[("error", "x")]), on_error(panics));
    let text = r#"{"error":"the policy function of the run panicked: policy bug"}"#;
    assert_eq!(outcome.messages[0].content, text);
    assert_eq!(outcome.halted, tool_error("c0", Some("panicked: policy bug")));
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    // A function that never answers stays on its thread, which ends with the test.
    let (gate, end) = std::sync::mpsc::channel::<()>();
    let end = parking_lot::Mutex::new(end);
    let never = OnToolError::decide(move |_, _| {
        let _ = end.lock().recv();
        Verdict::Halt
    });
    let options = RunOptions { on_tool_error: never, ..short_timeout() };
    let outcome = run(&runner, calls(&[("error", "x"), ("ok", "fine")]), options);
    drop(gate);
    let [first, second] = contents(&outcome)[..] else { panic!("{outcome:?}") };
    assert!(first.contains("gave no answer within 20ms"), "{first}");
    assert_eq!(second, "fine");
    assert_eq!(outcome.halted, tool_error("c0", Some("gave no answer within 20ms")));
}

#[test]
fn failing_encoder_loses_no_message() {
    let (base, _) = runner();
    let nothing =
        |_: EncodeInput<'_>| -> Result<String, EncodeError> { Err(EncodeError("no text".into())) };
    let panics = |_: EncodeInput<'_>| -> Result<String, EncodeError> { panic!("encoder bug") };
    let ends = calls(&[("ok", "fine"), ("error", "x"), ("halt", "done"), ("ask", "?")]);
    for (runner, words) in [
        (base.clone().with_encoder(nothing), "no text"),
        (base.clone().with_encoder(panics), "the encoder panicked: encoder bug"),
    ] {
        runner.registry().clear_statistics();
        let outcome = run(&runner, ends.clone(), RunOptions::default());
        let failed = format!(r#"{{"error":"the result could not be encoded: {words}"}}"#);
        let expected = [failed.as_str(), r#"{"error":"x"}"#, &failed, "<awaiting user response>"];
        assert_eq!(contents(&outcome), expected);
        let statistics = runner.registry().statistics("t").unwrap();
        let counts = (statistics.success, statistics.failure);
        assert_eq!(counts, (1, 3), "what cannot be encoded is a failure");
        // A replacement that cannot be encoded halts the run; the policy is not asked again.
        let policy = OnToolError::decide(|_, _| Verdict::Continue(json!(1).into()));
        let outcome = run(&runner, calls(&[("error", "x")]), on_error(policy));
        assert_eq!(outcome.messages[0].content, failed);
        assert!(matches!(outcome.halted, Some(RunHalt::ToolError { .. })));
    }
}

/// Each call waits until the maximum number of calls run. A larger number fails the test, and a
/// smaller one would hang it.
#[test]
fn concurrency_is_reached_and_never_exceeded() {
    for most in [1, 3, 8] {
        let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let counter = Arc::clone(&running);
        let handler = move |_: Value| {
            let counter = Arc::clone(&counter);
            async move {
                let now = counter.0.fetch_add(1, Ordering::SeqCst) + 1;
                counter.1.fetch_max(now, Ordering::SeqCst);
                tokio::task::yield_now().await;
                counter.0.fetch_sub(1, Ordering::SeqCst);
                json!(null)
            }
        };
        let runner = runner_of(Tool::native(Definition::new("t", "").unwrap(), handler));
        let outcome = run(&runner, calls(&[("", ""); 50]), at_most(most));
        assert_eq!(outcome.messages.len(), 50);
        assert_eq!(running.1.load(Ordering::SeqCst), most);
        let statistics = runner.registry().statistics("t").unwrap();
        let counts = (statistics.count, statistics.success, statistics.success_rate());
        assert_eq!(counts, (50, 50, Some(1.0)));
    }
}

#[test]
fn stream_does_not_run_ahead_of_its_reader() {
    let (runner, ran) = runner();
    let many: Vec<_> = (0..100_000).map(|n| ToolCall::new(format!("c{n}"), "t", "{}")).collect();
    let (events, most_ahead) = wait(async {
        let mut stream = runner.stream(many, at_most(4));
        let (mut settled, mut events, mut ahead) = (0, 0, 0);
        while let Some(event) = stream.next().await {
            events += 1;
            let is_end =
                matches!(event, RunEvent::Settled { settled: SettledCall::Encoded { .. }, .. });
            settled += usize::from(is_end);
            ahead = ahead.max(ran.load(Ordering::Relaxed) - settled);
        }
        (events, ahead)
    });
    assert_eq!((events, ran.load(Ordering::Relaxed)), (300_000, 100_000));
    assert!(most_ahead <= 8, "{most_ahead} calls ran ahead of the reader");
}

/// Registrations during a run do not change that run.
#[test]
fn run_keeps_its_initial_registry() {
    let (runner, _) = runner();
    let registry = runner.registry().clone();
    let stream = runner.stream(calls(&[("ok", "1"), ("ok", "2")]), RunOptions::default());
    registry.clear();
    let events = wait(stream.collect::<Vec<_>>());
    let contents: Vec<_> = settled_calls(&events).map(SettledCall::content).collect();
    assert_eq!(contents, ["1", "2"]);
    let next = wait(runner.run(calls(&[("ok", "")]), RunOptions::default()));
    assert!(next.unwrap_err().is_unknown_tool());
}

/// Another thread replaces the running tool: calls that have not started yet use the old one too.
#[test]
fn registry_change_applies_to_the_next_run() {
    let (registry, definition) = (Registry::new(), Definition::new("t", "").unwrap());
    let (shared, renewed) = (registry.clone(), definition.clone());
    let old = move |_: Value| {
        let (registry, definition) = (shared.clone(), renewed.clone());
        let change = move || {
            let new = Tool::native(definition, async |_: Value| json!("new")).unwrap();
            registry.unregister("t").map(|_| registry.register(new))
        };
        let changed = std::thread::spawn(change).join().unwrap();
        async move { json!(if changed.is_some() { "old" } else { "gone" }) }
    };
    registry.register(Tool::native(definition, old).unwrap()).unwrap();
    let runner = Runner::new(registry);
    for expected in ["old", "new"] {
        let outcome = run(&runner, calls(&[("", ""); 3]), at_most(1));
        assert_eq!(contents(&outcome), [expected; 3]);
    }
}

/// Calls that have not started are cancelled, each with its events and its message.
#[test]
fn abort_cancels_calls_that_have_not_started() {
    for (raised_before, expected_ran) in [(true, 0), (false, 1)] {
        let (abort, ran) = (AbortSignal::new(), Arc::new(AtomicUsize::new(0)));
        if raised_before {
            abort.raise();
        }
        let (signal, count) = (abort.clone(), Arc::clone(&ran));
        let tool = Tool::native(Definition::new("t", "").unwrap(), move |_: Value| {
            count.fetch_add(1, Ordering::Relaxed);
            signal.raise();
            std::future::ready(json!("ran"))
        });
        let runner = runner_of(tool);
        let call = CallOptions { abort, ..CallOptions::default() };
        let options = RunOptions { call, ..at_most(1) };
        let (events, _) = all_events(&runner, calls(&[("ok", ""); 4]), options);
        assert_eq!((events.len(), ran.load(Ordering::Relaxed)), (4 * 3, expected_ran));
        let statistics = runner.registry().statistics("t").unwrap();
        let counts = (statistics.count, statistics.cancelled);
        assert_eq!(counts, (expected_ran as u64, 4 - expected_ran as u64));
    }
}

/// A refused or cancelled call does not count.
#[test]
fn call_count_excludes_refused_and_cancelled() {
    let (runner, _) = runner();
    let mut made = calls(&[("ok", ""), ("error", "x")]);
    made.push(ToolCall::new("refused", "t", "[]"));
    run(&runner, made, RunOptions::default());
    let mut dropped = Box::pin(runner.run(calls(&[("never", "")]), RunOptions::default()));
    assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(dropped);
    let read = || {
        let read = runner.registry().statistics("t").unwrap();
        let counts = [read.count, read.success, read.failure, read.refused, read.cancelled];
        (counts, read.success_rate())
    };
    assert_eq!(read(), ([2, 1, 1, 1, 1], Some(0.5)));
    runner.registry().clear_statistics();
    let none = crate::tool::statistics::Statistics::default();
    assert_eq!(runner.registry().statistics("t"), Some(none));
    run(&runner, calls(&[("ok", "")]), RunOptions::default());
    assert_eq!(read().0, [1, 1, 0, 0, 0], "it begins anew");
}
