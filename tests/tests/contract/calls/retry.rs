//! Retries and breakers around real handlers: components and native closures, through the executor.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::clock::ManualClock;
use toolcell::outcome::HandlerError;
use toolcell::runtime::Placement;
use toolcell::tool::{Breaker, BreakerState, Invocation, Retry};
use toolcell::{CallOptions, Completion, Engine, Event, Executor, Limits, Outcome, Tool, ToolCall};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};
use toolcell_tests::{PLACEMENTS, ending};

use crate::{Log, call, component, engine, form, guest, native, poll, within};

/// Makes a call. Returns its completion, and a word for each event: the line of a log, or the kind
/// of any other event.
fn run(tool: &Tool, arguments: &str, limits: Limits) -> (Completion, Vec<String>) {
    let (events, sink) = Log::shared();
    let executor = Executor::new().with_limits(limits).with_events(move |event: Event| {
        sink.push(if let Event::Log { message, .. } = &event {
            message.clone()
        } else {
            form(&event)["type"].as_str().expect("a word").to_owned()
        });
    });
    (call(&executor, tool, arguments), events.taken())
}

#[test]
fn attempts_share_one_budget() {
    for placement in PLACEMENTS {
        let flaky = component(placement, "mischief").tool("flaky").expect("the tool").clone();
        let (failed, _) = run(&flaky, r#"{"answers_at": 3}"#, Limits::default());
        assert_eq!(ending(&failed.result), "error", "nothing is tried twice unasked: {failed:?}");
        let one = failed.usage.fuel.expect("a metered call");

        let retry =
            Retry::fixed(Duration::from_secs(1)).with_clock(Arc::new(ManualClock::automatic()));
        let flaky = flaky.with_retry(retry);
        let (answered, events) = run(&flaky, r#"{"answers_at": 3}"#, Limits::default());
        let answer = answered.result.value().expect("an answer").to_value();
        assert_eq!(answer, json!(3), "{placement:?}");
        let (began, ended) = ("tool_execution_started", "tool_execution_completed");
        assert_eq!(events, [began, "attempt 1", "attempt 2", "attempt 3", ended], "{placement:?}");
        let (usage, single) = (answered.usage, failed.usage);
        assert!(usage.fuel.is_some_and(|fuel| fuel > 2 * one), "{usage:?}, each {one}");
        let thrice = (3 * single.host_calls, 3 * single.log_bytes);
        assert_eq!((usage.host_calls, usage.log_bytes), thrice);
        assert_eq!(usage.peak_memory, single.peak_memory, "one cell at a time");

        let never = r#"{"answers_at": 9}"#;
        let limit = one * 5 / 2;
        let (spent, _) = run(&flaky, never, Limits { fuel: limit, ..Limits::default() });
        assert_eq!(ending(&spent.result), "timeout/fuel", "{placement:?}: {spent:?}");
        assert!(
            spent.usage.fuel.is_some_and(|fuel| (2 * one..=limit).contains(&fuel)),
            "{spent:?}, each {one}"
        );
        let limits = Limits { host_calls: 2 * single.host_calls, ..Limits::default() };
        let (chatty, _) = run(&flaky, never, limits);
        let expected = "handler_raised/host_call+host_calls";
        assert_eq!(ending(&chatty.result), expected, "{placement:?}: {chatty:?}");
        let limits = Limits { log: 2 * single.log_bytes, ..Limits::default() };
        let (_, events) = run(&flaky, never, limits);
        assert_eq!(events, [began, "attempt 1", "attempt 2", ended], "{placement:?}");
    }
}

/// The numbers are 1, 2, 3, as a guest sees them; a call without a retry has no number.
#[test]
fn native_handler_sees_its_attempt_number() {
    let (seen, sink) = Log::shared();
    let fails = native("native", async move |_: Value, invocation: Arc<Invocation>| {
        sink.push(invocation.context.attempt);
        Outcome::Error(HandlerError::new("busy").retryable_after(Duration::from_millis(1)))
    });
    run(&fails, "{}", Limits::default());
    let clock = Arc::new(ManualClock::automatic());
    run(&fails.with_retry(Retry::fixed(Duration::ZERO).with_clock(clock)), "{}", Limits::default());
    assert_eq!(seen.taken(), [None, Some(1), Some(2), Some(3)]);
}

/// Each attempt has a cell and a time of its own; the timeout of the third one is the call's. A
/// handler that is dropped at its attempt's end is tried again as well.
#[test]
fn hanging_guest_is_retried() {
    let retry = || {
        let clock = Arc::new(ManualClock::automatic());
        Retry::fixed(Duration::from_millis(1))
            .with_clock(clock)
            .with_attempt_timeout(Duration::from_millis(20))
    };
    for placement in PLACEMENTS {
        let sleeps = guest(&engine(placement), Hostile::new(Place::Execute, Misdeed::Sleep));
        let (once, _) = run(&sleeps, "{}", within(20));
        let (tried, events) = run(&sleeps.with_retry(retry()), "{}", Limits::default());
        assert_eq!(ending(&tried.result), "timeout/blocked", "{placement:?}");
        assert!(once.usage.host_calls > 0, "{placement:?}");
        assert_eq!(tried.usage.host_calls, 3 * once.usage.host_calls, "{placement:?}");
        assert_eq!(events, ["tool_execution_started", "tool_execution_completed"], "{placement:?}");
    }
    let hangs_once = native("native", async |_: Value, invocation: Arc<Invocation>| -> Value {
        if invocation.context.attempt == Some(1) {
            std::future::pending::<()>().await;
        }
        json!(invocation.context.attempt)
    });
    let (answered, _) = run(&hangs_once.with_retry(retry()), "{}", Limits::default());
    assert_eq!(answered.result.value().map(|value| value.as_str()), Some("2"), "{answered:?}");
}

/// The breaker counts a trap, a panic, and a handler that the executor drops at its deadline.
#[test]
fn breaker_counts_every_kind_of_failure() {
    let panics = native("native", async |_: Value| -> Value { panic!("ouch") });
    let stuck = native("native", async |_: Value| -> Value { std::future::pending().await });
    let works = native("native", async |_: Value| json!(1));
    let dives = component(Placement::Cells, "mischief").tool("dive").expect("the tool").clone();
    for (tool, limits, first, second) in [
        (panics, Limits::default(), "handler_raised/native_panic", "refusal/circuit_open"),
        (stuck, within(20), "timeout/blocked", "refusal/circuit_open"),
        (dives, Limits::default(), "handler_raised/stack_overflow", "refusal/circuit_open"),
        (works, Limits::default(), "ok", "ok"),
    ] {
        let tool = tool.with_breaker(
            Breaker::default().with_failures(1).with_open_time(Duration::from_secs(3600)),
        );
        let endings = [(); 2].map(|()| ending(&run(&tool, "{}", limits).0.result));
        assert_eq!(endings, [first, second]);
        let is_open = tool.breaker_state() == Some(BreakerState::Open);
        assert_eq!(is_open, second != "ok", "{first}");
    }
}

/// A call that gets no free cell does not count as a failure of its tool.
#[test]
fn call_without_a_free_cell_opens_no_breaker() {
    for placement in PLACEMENTS {
        let engine = Engine::builder().placement(placement).cells(1).build().expect("an engine");
        let sleeper = guest(&engine, Hostile::new(Place::Execute, Misdeed::Sleep));
        let good = guest(&engine, Hostile::answering(Answer::Echo))
            .with_breaker(Breaker::default().with_failures(1));
        let executor = Executor::new().with_limits(within(3_600_000));
        let call = ToolCall::new("1", "hostile", "{}");
        let mut sleeps = Box::pin(executor.call(&sleeper, call, CallOptions::default()));
        assert!(poll(sleeps.as_mut()).is_pending());
        let endings = [(); 2].map(|()| ending(&run(&good, "{}", within(20)).0.result));
        assert_eq!(endings, ["refusal/overloaded"; 2], "{placement:?}");
        assert_eq!(good.breaker_state(), Some(BreakerState::Closed), "{placement:?}");
        drop(sleeps);
        assert_eq!(ending(&run(&good, "{}", Limits::default()).0.result), "ok", "{placement:?}");
    }
}
