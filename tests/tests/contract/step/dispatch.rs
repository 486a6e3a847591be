//! Stage 5 of a step: a tool is dispatched once, and its timeout or the user's stop may end it.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use serde_json::Value;
use toolcell::step::{Deliberate, Step};
use toolcell::{AbortSignal, Event, Executor, Limits, Stepper, Turn};
use toolcell_test_guests::{Hostile, Misdeed, Place};
use toolcell_tests::{PLACEMENTS, ending};

use super::{Loop, PATIENCE, allowing, calling, response, word};
use crate::{Log, component, engine, guest, poll, registry};

/// The model gets the timeout as a failure, and goes on.
#[test]
fn timeout_is_a_failure_in_the_history() {
    let agent = Loop::new();
    let mut turn = Turn::default();
    turn.call.limits = Limits { timeout: Duration::from_millis(20), ..Limits::unlimited() };
    let step = agent.step(calling("stuck"), &mut turn);
    assert_eq!(word(&step), "history/failed");
    let error = response(&step)["result"]["error"].take();
    assert!(error.as_str().expect("words").contains("after 20ms"));
    assert_eq!((agent.dispatched(), turn.consecutive_errors()), (1, 1));
    let statistics = agent.registry.statistics("stuck").expect("it is there");
    assert_eq!((statistics.count, statistics.failure), (1, 1));
}

/// Returns an executor, and its events as words. The first event raises `at_start`.
fn recorder(at_start: AbortSignal) -> (Executor, Log<String>) {
    let (seen, sink) = Log::shared();
    let executor = Executor::new()
        .with_limits(Limits { fuel: u64::MAX, ..Limits::default() })
        .with_events(move |event: Event| {
            at_start.raise();
            sink.push(match event {
                Event::Started { .. } => "started".into(),
                Event::Progress { message, .. } => message.unwrap_or_else(|| "waiting".into()),
                Event::Completed { result, .. } => ending(&result),
                Event::Log { .. } | _ => "log".into(),
            });
        });
    (executor, seen)
}

/// Starts a step, raises the stop if it does not end at once, and waits for its end.
fn stopped(stepper: &Stepper, tool: &str, turn: &mut Turn) -> Step {
    let abort = turn.call.abort.clone();
    let mut running = pin!(stepper.step(calling(tool), turn));
    match poll(running.as_mut()) {
        Poll::Ready(step) => step,
        Poll::Pending => {
            abort.raise();
            futures_executor::block_on(running)
        }
    }
}

/// The turn is over and the model gets nothing, if the tool answers, cleans up or hangs.
#[test]
fn stop_overrides_the_result() {
    for (tool, grace, expected) in [
        ("stops_the_turn", Duration::ZERO, &["started", "ok"][..]),
        ("stops_and_hangs", Duration::ZERO, &["started", "handler_exit/cancelled"]),
        ("stuck", Duration::ZERO, &["started", "handler_exit/cancelled"]),
        ("cleans_up", PATIENCE, &["started", "waiting", "closed", "ok"]),
    ] {
        let (executor, events) = recorder(AbortSignal::default());
        let agent = Loop::new().with(|stepper| {
            let hook = async |_| panic!("the hook is not asked about a call that was stopped");
            stepper.with_executor(executor).with_restart_hook(hook)
        });
        let mut turn = allowing([tool]);
        turn.call.stop_grace = grace;
        let step = stopped(&agent.stepper, tool, &mut turn);
        assert_eq!(word(&step), "abort/stopped_by_user", "{tool}");
        assert_eq!(events.taken(), expected, "{tool}");
        assert_eq!((agent.dispatched(), turn.consecutive_errors()), (1, 0), "{tool}");
        turn.deliberate = Some(Deliberate::new([""; 0]));
        assert!(!turn.allows(tool), "a stopped call opens no window");
        let statistics = agent.registry.statistics(tool).expect("it is there");
        assert_eq!(statistics.count, 0, "a stop says nothing about a tool");
    }
}

/// Without a grace, the step is over when it is next polled.
#[test]
fn stop_is_immediate_by_default() {
    let agent = Loop::new();
    let mut turn = Turn::default();
    let abort = turn.call.abort.clone();
    let mut running = pin!(agent.stepper.step(calling("stuck"), &mut turn));
    assert!(poll(running.as_mut()).is_pending());
    abort.raise();
    let Poll::Ready(step) = poll(running.as_mut()) else { panic!("it goes on") };
    assert_eq!(word(&step), "abort/stopped_by_user");
}

/// A guest that waits for the signal ends by itself; one that does not is ended.
#[test]
fn stop_reaches_the_guest() {
    for placement in PLACEMENTS {
        let engine = engine(placement);
        for (misdeed, grace, expected) in [
            (Misdeed::AwaitAbort, PATIENCE, "ok"),
            (Misdeed::Sleep, Duration::ZERO, "handler_exit/cancelled"),
            (Misdeed::Spin, Duration::ZERO, "handler_exit/cancelled"),
        ] {
            let registry = registry([guest(&engine, Hostile::new(Place::Execute, misdeed))]);
            let (executor, events) = recorder(AbortSignal::default());
            let stepper = Stepper::new(registry).with_executor(executor);
            let mut turn = Turn::default();
            turn.call.stop_grace = grace;
            let step = stopped(&stepper, "hostile", &mut turn);
            assert_eq!(word(&step), "abort/stopped_by_user", "{misdeed:?}, {placement:?}");
            assert_eq!(events.taken(), ["started", expected], "{misdeed:?}, {placement:?}");
        }
    }
}

/// A guest that polls sees the signal.
#[test]
fn guest_can_poll_for_a_stop() {
    for placement in PLACEMENTS {
        let registry = registry(component(placement, "mischief").tools().to_vec());
        let (mut turn, aborted) = (Turn::default(), Arc::new(Mutex::new(Value::Null)));
        let (abort, sink) = (turn.call.abort.clone(), Arc::clone(&aborted));
        let executor = Executor::new().with_events(move |event: Event| {
            abort.raise();
            if let Event::Completed { result, .. } = event {
                let value = result.value().expect("the guest ends by itself").to_value();
                *sink.lock().expect("no panic") = value["aborted"].clone();
            }
        });
        let stepper = Stepper::new(registry).with_executor(executor);
        turn.call.stop_grace = PATIENCE;
        let step = futures_executor::block_on(stepper.step(calling("services"), &mut turn));
        assert_eq!(word(&step), "abort/stopped_by_user", "{placement:?}");
        assert_eq!(*aborted.lock().expect("no panic"), true, "{placement:?}");
    }
}

/// A dropped step does not count, and its tool is stopped.
#[test]
fn dropped_step_leaves_the_turn_unchanged() {
    let (executor, events) = recorder(AbortSignal::default());
    let agent = Loop::new().with(|stepper| stepper.with_executor(executor));
    let mut turn = allowing(["stuck"]);
    let before = format!("{turn:?}");
    {
        let mut running = pin!(agent.stepper.step(calling("stuck"), &mut turn));
        assert!(poll(running.as_mut()).is_pending());
    }
    assert_eq!(format!("{turn:?}"), before);
    assert_eq!(events.taken(), ["started", "handler_exit/cancelled"]);
}
