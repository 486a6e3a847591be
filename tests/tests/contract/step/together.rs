//! Several calls of one answer: gates in order, tools concurrently, the rest in order.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolcell::message::{EncodeError, EncodeInput};
use toolcell::run::Verdict;
use toolcell::step::{Deliberate, Step, StepConfig, StepEvent};
use toolcell::{OnToolError, Turn};
use toolcell_test_guests::rows;

use super::{Loop, allowing, calling, response, say, word};
use crate::{Log, native, poll};

fn words(steps: &[Step]) -> Vec<String> {
    steps.iter().map(word).collect()
}

/// Returns a configuration with this bound on calls at the same time.
fn at_most(calls: usize) -> StepConfig {
    StepConfig { max_concurrency: Some(calls), ..StepConfig::default() }
}

/// The first call waits for the second and ends last: run one after the other, they would never
/// end.
#[test]
fn step_all_runs_concurrently_and_records_in_order() {
    let (told, sink) = Log::shared();
    let agent = Loop::configured(at_most(2)).with(|stepper| {
        stepper.with_observer(move |event| {
            if let StepEvent::TriggerNotice { tool, .. } = event {
                sink.push(tool);
            }
        })
    });
    let gate = Arc::new(Semaphore::new(0));
    let (waits, opens) = (Arc::clone(&gate), gate);
    let waits = native("waits", async move |_: Value| json!(waits.acquire().await.is_ok()));
    let opens = native("opens", move |_: Value| {
        opens.add_permits(1);
        std::future::ready(json!("opened"))
    });
    agent.register(waits);
    agent.register(opens);
    let mut turn = Turn::default();
    turn.deliberate =
        Some(Deliberate::new([""; 0]).with_trigger("waits", "w").with_trigger("opens", "o"));
    let steps = agent.step_all(["waits", "opens"].map(calling), &mut turn);
    let entries: Vec<_> = steps
        .iter()
        .map(|step| (json!(step)["name"].clone(), response(step)["result"].clone()))
        .collect();
    assert_eq!(entries, [(json!("waits"), json!(true)), (json!("opens"), json!("opened"))]);
    assert_eq!(told.taken(), ["waits", "opens"], "in the calls' order");
    assert!(agent.step_all([json!(null); 0], &mut turn).is_empty());
}

#[test]
fn step_all_respects_max_concurrency() {
    for most in [1, 3] {
        let agent = Loop::configured(at_most(most));
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let counter = Arc::clone(&counts);
        agent.register(native("counted", async move |_: Value| {
            counter.1.fetch_max(counter.0.fetch_add(1, SeqCst) + 1, SeqCst);
            tokio::task::yield_now().await;
            counter.0.fetch_sub(1, SeqCst);
            json!(null)
        }));
        let steps = agent.step_all(vec![calling("counted"); 20], &mut Turn::default());
        assert_eq!(words(&steps), ["history/ok"; 20]);
        assert_eq!(counts.1.load(SeqCst), most);
    }
}

/// All gates come first: no tool has run when one of them ends the turn.
#[test]
fn malformed_call_or_stop_prevents_all_calls() {
    let agent = Loop::new();
    let mut turn = Turn::default();
    let steps = agent.step_all([say(""), json!({"name": ""}), say("")], &mut turn);
    assert_eq!(words(&steps), ["abort/error"; 3]);
    turn.stop();
    let steps = agent.step_all([say(""), say("")], &mut turn);
    assert_eq!(words(&steps), ["abort/stopped_by_user"; 2]);
    assert_eq!(agent.dispatched(), 0);
}

/// If the call has an id, it can be answered: the model can repair arguments that are no object.
#[test]
fn malformed_arguments_are_reported_to_the_model() {
    let agent = Loop::new();
    let mut turn = Turn::default();
    for (arguments, said) in rows::<(Value, &str)>(
        "contract/step/together",
        "malformed_arguments_are_reported_to_the_model",
    ) {
        let call = json!({"id": "c1", "name": "say", "args": arguments});
        let steps = agent.step_all([call.clone(), say("")], &mut turn);
        assert_eq!(words(&steps), ["history/failed", "history/ok"], "{call}");
        let error = response(&steps[0])["result"]["error"].to_string();
        assert!(error.contains(said), "{error}");
    }
    let failed = json!({"id": "c1", "name": "say", "args": "{"});
    assert_eq!(agent.dispatched(), 3, "the calls beside it ran");
    assert_eq!(words(&agent.step_all([failed], &mut turn)), ["history/failed"]);
    let counts = (agent.dispatched(), turn.consecutive_errors());
    assert_eq!(counts, (0, 1), "it is counted, and nothing ran");
}

/// A closed or unknown tool is answered in its place; a window that a call opens does not hold for
/// the calls beside it.
#[test]
fn closed_tools_are_answered_beside_running_ones() {
    let agent = Loop::new();
    let mut turn = allowing(["say", "unknown"]);
    let steps =
        agent.step_all([calling("context"), say(""), calling("unknown"), say("error")], &mut turn);
    assert_eq!(words(&steps), ["history/failed", "history/ok", "history/failed", "history/failed"]);
    assert_eq!(response(&steps[0])["result"]["status"], "blocked_by_deliberate_tool_mode");
    assert_eq!(response(&steps[2])["result"]["error"], "there is no tool `unknown`");
    let counts = (agent.dispatched(), turn.consecutive_errors());
    assert_eq!(counts, (2, 2), "counted in the calls' order");
    turn.deliberate = Some(Deliberate::new([""; 0]));
    assert!(turn.allows("say"), "its window is open now");
}

/// Calls that have run are recorded, in spite of the endings of the calls before them.
#[test]
fn restart_or_error_limit_affects_only_its_call() {
    let config = StepConfig { max_errors: 1, ..StepConfig::default() };
    let agent = Loop::configured(config).with(|stepper| {
        stepper.with_restart_hook(async |completion| {
            completion.result.value().is_some_and(|value| value.as_str().contains("restart"))
        })
    });
    let mut turn = Turn::default();
    let calls = [say("error"), say("error"), say("restart"), say("error"), say(""), say("halt")];
    let steps = agent.step_all(calls, &mut turn);
    assert_eq!(
        words(&steps),
        ["history/failed", "abort/error", "restart", "history/failed", "history/ok", "history/ok"]
    );
    assert_eq!((agent.dispatched(), turn.consecutive_errors()), (6, 0));
}

/// A call that has ended is not recorded if the stop comes while another runs.
#[test]
fn stop_applies_to_all_unrecorded_calls() {
    let agent = Loop::configured(at_most(2));
    let mut turn = Turn::default();
    turn.call.stop_grace = std::time::Duration::ZERO;
    let steps =
        agent.step_all([say(""), calling("stops_and_hangs"), calling("stuck"), say("")], &mut turn);
    assert_eq!(words(&steps), ["abort/stopped_by_user"; 4]);
    assert_eq!(agent.dispatched(), 2, "nothing starts after the stop");
}

#[test]
fn policy_decides_the_response_to_the_model() {
    let policy = OnToolError::decide(|call, failure| match call.id.as_str() {
        "instead" => Verdict::Continue(json!({"instead of": failure.to_string()}).into()),
        "bad" => Verdict::Continue(json!("bad").into()),
        "panic" => panic!("policy bug"),
        _ => Verdict::Halt,
    });
    let encoder = |said: EncodeInput<'_>| match said {
        EncodeInput::Value(value) if value.as_str() == "\"bad\"" => {
            Err(EncodeError("no text".into()))
        }
        EncodeInput::Value(value) => Ok(value.to_string()),
        EncodeInput::Failure(failure) => Ok(failure.to_string()),
        EncodeInput::Ok(_) | _ => Ok("ok".into()),
    };
    let call =
        |id: &str, outcome: &str| json!({"id": id, "name": "say", "args": {"outcome": outcome}});
    let agent =
        Loop::new().with(|stepper| stepper.with_on_tool_error(policy).with_encoder(encoder));
    let table = rows::<(&str, &str, Value, bool, Option<Value>)>(
        "contract/step/together",
        "policy_decides_the_response_to_the_model",
    );
    let calls = table.iter().map(|(id, outcome, ..)| call(id, outcome));
    let mut turn = allowing(["say"]);
    let steps = agent.step_all(calls, &mut turn);
    assert_eq!(steps.len(), table.len());
    for (step, (id, _, expected, is_error, halted)) in steps.iter().zip(table) {
        let Step::History { end_turn, entry, .. } = step else { panic!("{step:?}") };
        let told = response(step)["result"].take();
        assert_eq!((told, entry.message().is_error), (expected, is_error), "{id}");
        let expected = (json!(halted), halted.is_some());
        assert_eq!((json!(entry.halted), *end_turn), expected, "{id}");
    }
    assert_eq!(words(&steps[..1]), ["history/ok"]);
    assert_eq!(words(&steps[1..]), ["history/failed"; 4]);
    // What a policy put in its place has failed all the same.
    assert_eq!(turn.consecutive_errors(), 4);
    let statistics = agent.registry.statistics("say").expect("it is there");
    assert_eq!((statistics.success, statistics.failure), (1, 4));
    // A single step behaves alike; the policy is not called for a call that named no tool.
    let halts = Loop::new().with(|stepper| stepper.with_on_tool_error(OnToolError::Halt));
    let halted = json!({"halted_reason": "tool_error", "halt_tool_call_id": "c"});
    assert_eq!(json!(halts.first(call("c", "error")))["entry"]["halted"], halted);
    assert_eq!(json!(halts.first(calling("unknown")))["entry"]["halted"], Value::Null);
}

#[test]
fn dropped_step_all_leaves_the_turn_unchanged() {
    let agent = Loop::new();
    let mut turn = allowing(["say", "stuck"]);
    let before = format!("{turn:?}");
    {
        let mut running = pin!(agent.stepper.step_all([say(""), calling("stuck")], &mut turn));
        assert!(poll(running.as_mut()).is_pending());
    }
    assert_eq!((format!("{turn:?}"), agent.dispatched()), (before, 2));
}
