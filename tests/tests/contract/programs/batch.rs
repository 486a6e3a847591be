//! A batch of calls under one policy: order, events, halts, failures, time and concurrency.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use toolcell::message::{EncodeError, EncodeInput, Encoder, Failure, JsonEncoder, Message};
use toolcell::outcome::{Halt, HandlerError, Reason};
use toolcell::run::{RunEvent, RunHalt, RunOutcome, SettledCall, Verdict};
use toolcell::tool::Invocation;
use toolcell::{
    Executor, OnToolError, Outcome, Question, Registry, RunOptions, Runner, Tool, ToolCall,
    ToolError,
};
use toolcell_test_guests::rows;
use toolcell_tests::{context, wait_here};

use super::{blocking, example};
use crate::{at_most, drained, form, inside, named, native, with_policy};

/// Returns a registry whose tools answer as the call says, and the number of handlers that ran.
fn registry() -> (Registry, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let (counts, blocks) = (Arc::clone(&ran), Arc::clone(&ran));
    let answers = native("answers", async move |arguments: Value| {
        counts.fetch_add(1, SeqCst);
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        match text("how").as_str() {
            "error" => Outcome::Error(HandlerError::new(text("why")).with_data(json!({"code": 7}))),
            "ask" => {
                Outcome::AskUser(Question::new(text("why")).with_options(json!(["yes", "no"])))
            }
            "halt" => Outcome::Halt(Halt::new(text("why"), json!({"final": true}))),
            "panic" => panic!("{}", text("why")),
            _ => Outcome::ok(arguments.clone()),
        }
    });
    let echo = blocking("echo", move |arguments: Value| {
        blocks.fetch_add(1, SeqCst);
        arguments
    });
    let brief = named("forever").with_max_execution(Duration::from_millis(20));
    let forever = Tool::native(brief, async |_: Value| pending::<Value>().await);
    let tools = [answers, echo, forever.expect("a tool"), example("calculator", "calculator")];
    (crate::registry(tools), ran)
}

fn answers(id: &str, how: &str, why: &str) -> ToolCall {
    ToolCall::with_value(id, "answers", &json!({"how": how, "why": why}))
}

fn echo(id: &str) -> ToolCall {
    ToolCall::new(id, "echo", r#"{"x": 1}"#)
}

/// Returns a runner that does not seal questions.
fn unsealed(registry: Registry) -> Runner {
    Runner::new(registry).with_executor(Executor::new().without_sealer())
}

fn run(calls: Vec<ToolCall>, options: RunOptions) -> RunOutcome {
    wait_here(unsealed(registry().0).run(calls, options)).expect("it starts")
}

fn halted(outcome: &RunOutcome) -> Option<Value> {
    outcome.halted.as_ref().map(form)
}

fn contents(outcome: &RunOutcome) -> Vec<(&str, &str)> {
    let messages = outcome.messages.iter();
    messages.map(|message| (message.tool_call_id.as_str(), message.content.as_str())).collect()
}

#[test]
fn messages_are_in_call_order_events_as_calls_end() {
    let gate = Arc::new(Notify::new());
    let opens = Arc::clone(&gate);
    let late = native("late", async move |arguments: Value| {
        gate.notified().await;
        arguments
    });
    let early = native("early", async move |arguments: Value| {
        opens.notify_one();
        arguments
    });
    let runner = Runner::new(crate::registry([late, early]));
    let calls = || vec![ToolCall::new("1", "late", "{}"), ToolCall::new("2", "early", "{}")];
    let outcome = wait_here(runner.run(calls(), at_most(2))).expect("it starts");
    assert_eq!(contents(&outcome), [("1", "{}"), ("2", "{}")]);

    let events = drained(&runner, calls(), at_most(2));
    let mut by_id: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut settled = Vec::new();
    for event in &events {
        let event = form(event);
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        by_id.entry(text("id")).or_default().push(text("type"));
        if event["type"] == "tool_result_encoded" {
            settled.push((text("id"), text("content")));
        }
    }
    let order = ["tool_execution_started", "tool_execution_completed", "tool_result_encoded"];
    assert!(by_id.len() == 2 && by_id.values().all(|types| *types == order), "{by_id:?}");
    assert_eq!(settled, [("2".to_owned(), "{}".to_owned()), ("1".to_owned(), "{}".to_owned())]);
}

#[test]
fn unknown_tool_fails_the_run_before_any_start() {
    let (registry, ran) = registry();
    let runner = Runner::new(registry);
    let calls = || vec![echo("1"), ToolCall::new("2", "ehco", "{}")];
    let error = wait_here(runner.run(calls(), RunOptions::default())).expect_err("no such tool");
    assert!(error.is_unknown_tool() && error.unknown_tool() == Some("ehco"), "{error}");
    let events = drained(&runner, calls(), RunOptions::default());
    assert!(
        matches!(&events[..], [RunEvent::Error(failure)] if failure.0.unknown_tool() == Some("ehco")),
        "{events:?}"
    );
    assert_eq!(ran.load(SeqCst), 0);
}

#[test]
fn unread_stream_starts_no_tool() {
    let (registry, ran) = registry();
    let runner = Runner::new(registry);
    wait_here(async {
        let unread = runner.stream([echo("1"), echo("2")], RunOptions::default());
        tokio::task::yield_now().await;
        drop(unread);
    });
    assert_eq!(ran.load(SeqCst), 0);
}

#[test]
fn empty_run_has_no_messages_or_events() {
    let outcome = run(Vec::new(), RunOptions::default());
    assert!(outcome.messages.is_empty() && outcome.halted.is_none());
    let runner = Runner::new(registry().0);
    assert!(drained(&runner, Vec::new(), RunOptions::default()).is_empty());
}

#[test]
fn calls_beside_a_halt_still_complete() {
    let (asks, halts) = (answers("2", "ask", "Really?"), answers("3", "halt", "booked"));
    let calls = || vec![echo("1"), asks.clone(), halts.clone(), answers("4", "error", "no")];
    let outcome = run(calls(), RunOptions::default());
    let expected = [
        ("1", r#"{"x":1}"#),
        ("2", Message::AWAITING_USER),
        ("3", r#"{"final":true}"#),
        ("4", r#"{"error":"no","data":{"code":7}}"#),
    ];
    assert_eq!(contents(&outcome), expected);
    let expected = json!({
        "halted_reason": "ask_user", "pending_question": "Really?", "pending_tool_call_id": "2",
        "ask_user_opts": ["yes", "no"],
    });
    assert_eq!(halted(&outcome), Some(expected));
    let events = drained(&unsealed(registry().0), calls(), RunOptions::default());
    let messages = events.iter().filter_map(|event| {
        if let RunEvent::Settled { message, .. } = event { Some(message.clone()) } else { None }
    });
    let mut messages: Vec<_> = messages.collect();
    messages.sort_by(|one, other| one.tool_call_id.cmp(&other.tool_call_id));
    assert_eq!(messages, outcome.messages);
    assert!(events.iter().any(|event| {
        matches!(event, RunEvent::Settled { settled: SettledCall::AskUser { tool_call_id, .. }, .. } if tool_call_id == "2")
    }));
    assert!(matches!(events.last(), Some(RunEvent::Halted(RunHalt::AskUser { .. }))), "{events:?}");

    let halting = vec![halts.clone(), asks.clone()];
    let expected = json!({
        "halted_reason": "booked", "halt_tool_call_id": "3", "halt_result": {"final": true},
    });
    assert_eq!(halted(&run(halting, RunOptions::default())), Some(expected));
}

#[test]
fn policy_continues_or_halts_on_any_failure() {
    let table = rows::<(&str, &str, &str, Value)>(
        "contract/programs/batch",
        "policy_continues_or_halts_on_any_failure",
    );
    let failing = || -> Vec<_> {
        let calls = table.iter();
        calls.map(|(id, tool, _, arguments)| ToolCall::with_value(*id, *tool, arguments)).collect()
    };
    let outcome = run(failing(), RunOptions::default());
    assert!(outcome.halted.is_none());
    for message in &outcome.messages {
        let failed = message.tool_call_id != "fine";
        assert_eq!(message.is_error, failed, "{message:?}");
        let content: Value = serde_json::from_str(&message.content).expect("JSON");
        assert_eq!(content["error"].is_string(), failed, "{message:?}");
    }
    let outcome = run(failing(), with_policy(OnToolError::Halt));
    assert_eq!(outcome.messages.len(), 6);
    let expected = json!({"halted_reason": "tool_error", "halt_tool_call_id": "error"});
    assert_eq!(halted(&outcome), Some(expected));

    let policy = OnToolError::decide(|call, failure| {
        let reason = match failure {
            Failure::ToolError(error) => error.reason().name(),
            Failure::Refusal(refusal) => refusal.kind(),
            Failure::Error(_) => "error",
        };
        Verdict::Continue(json!({"id": call.id, "why": reason}).into())
    });
    let outcome = run(failing(), with_policy(policy));
    let failed = table[..5].iter();
    let replacements: Vec<_> =
        failed.map(|(id, _, why, _)| json!({"id": id, "why": why}).to_string()).collect();
    let told: Vec<_> = contents(&outcome)[..5].iter().map(|(_, content)| *content).collect();
    assert_eq!(told, replacements);
}

#[test]
fn panicking_policy_halts_and_is_asked_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let (counts, counted) = (Arc::clone(&asked), Arc::clone(&asked));
    let broken = OnToolError::decide_async(move |_, _| {
        counts.fetch_add(1, SeqCst);
        async { panic!("the policy is broken") }
    });
    let outcome = run(vec![answers("1", "error", "no"), echo("2")], with_policy(broken));
    assert_eq!(asked.load(SeqCst), 1);
    let Some(RunHalt::ToolError { tool_call_id, exception }) = &outcome.halted else {
        panic!("{outcome:?}")
    };
    assert_eq!(tool_call_id, "1");
    let names = |text: &String| text.contains("the policy is broken");
    assert!(exception.as_ref().is_some_and(names), "{exception:?}");
    assert_eq!(outcome.messages[1].content, r#"{"x":1}"#);

    let halts = OnToolError::decide(move |_, _| {
        counted.fetch_add(1, SeqCst);
        Verdict::Halt
    });
    let outcome = run(vec![answers("1", "panic", "boom")], with_policy(halts));
    assert_eq!(asked.load(SeqCst), 2);
    let expected = json!({"halted_reason": "tool_error", "halt_tool_call_id": "1"});
    assert_eq!(halted(&outcome), Some(expected));
}

#[test]
fn reserved_halt_reason_is_an_invalid_return() {
    for word in Halt::RESERVED_REASONS {
        let policy = OnToolError::decide(|_, failure| {
            let Failure::ToolError(error @ ToolError::InvalidReturn(_)) = failure else {
                return Verdict::Halt;
            };
            Verdict::Continue(form(error)["metadata"].clone().into())
        });
        let outcome = run(vec![answers("1", "halt", word)], with_policy(policy));
        assert!(outcome.halted.is_none());
        assert_eq!(outcome.messages[0].content, json!({"reserved_halt_atom": word}).to_string());
    }
}

/// An encoder that fails for numbers.
struct Wordy;

impl Encoder for Wordy {
    fn encode(&self, said: EncodeInput<'_>) -> Result<String, EncodeError> {
        if let EncodeInput::Ok(output) = &said
            && output.value.to_value()["how"] == "number"
        {
            return Err(EncodeError("no text for it".into()));
        }
        JsonEncoder.encode(said)
    }
}

#[test]
fn unencodable_result_goes_through_the_policy() {
    let (registry, _) = registry();
    let runner = Runner::new(registry.clone()).with_encoder(Wordy);
    let calls = || vec![answers("1", "number", ""), answers("2", "word", "")];
    let run = |options| wait_here(runner.run(calls(), options)).expect("it starts");
    let outcome = run(RunOptions::default());
    assert!(outcome.messages[0].is_error && outcome.messages[0].content.contains("no text for it"));
    assert!(!outcome.messages[1].is_error);
    let last = registry.last_error("answers").and_then(|error| error.reason);
    assert_eq!(last, Some(Reason::EncodingFailed));
    let expected = json!({"halted_reason": "tool_error", "halt_tool_call_id": "1"});
    assert_eq!(halted(&run(with_policy(OnToolError::Halt))), Some(expected));
}

#[test]
fn run_respects_max_concurrency() {
    let (free, most) = (Arc::new(Semaphore::new(3)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let tool = native("runs", async move |_: Value| {
        let place = free.try_acquire().map_err(|_| "too many at once")?;
        seen.fetch_max(3 - free.available_permits(), SeqCst);
        tokio::task::yield_now().await;
        drop(place);
        Ok::<_, &str>(json!("ran"))
    });
    let runner = Runner::new(crate::registry([tool]));
    let calls: Vec<_> = (0..50).map(|id| ToolCall::new(id.to_string(), "runs", "")).collect();
    let outcome = wait_here(runner.run(calls, at_most(3))).expect("it starts");
    assert!(outcome.messages.iter().all(|message| message.content == "ran"));
    assert_eq!(most.load(SeqCst), 3);
    let refused = wait_here(runner.run([ToolCall::new("1", "runs", "")], at_most(0)));
    assert!(refused.is_err_and(|error| error.is_options()));
}

#[test]
fn run_context_reaches_each_handler() {
    let tool = native("where", async |_: Value, invocation: Arc<Invocation>| {
        let context = &invocation.context;
        json!([invocation.call.id, context.request_id, context.session_id])
    });
    let runner = Runner::new(crate::registry([tool]));
    let call = inside(context(&json!({"request_id": "request"})));
    let options = RunOptions { call, ..RunOptions::default() };
    let calls = ["1", "2"].map(|id| ToolCall::new(id, "where", "{}"));
    let outcome = wait_here(runner.run(calls, options)).expect("it starts");
    assert_eq!(
        contents(&outcome),
        [("1", r#"["1","request",null]"#), ("2", r#"["2","request",null]"#)]
    );
}
