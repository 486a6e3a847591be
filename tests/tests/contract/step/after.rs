//! Stages 6 to 9 of a step: the processing of a result.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcell::message::{EncodeError, EncodeInput};
use toolcell::step::{Deliberate, RawCall, Step, StepConfig, StepEvent};
use toolcell::{Completion, RunOptions, Runner, Tool, ToolCall, Turn};
use toolcell_test_guests::rows;
use toolcell_tests::{ending, wait_here};

use super::{Loop, allowing, calling, response, say, word};
use crate::{Log, named, native, poll};

const CASES: &str = "contract/step/after";

/// Stage 6.
#[test]
fn success_keeps_its_tool_open() {
    let agent = Loop::new();
    let table = rows::<(&str, _, [bool; 3])>(CASES, "success_keeps_its_tool_open");
    for (outcome, turns, expected) in table {
        let mut turn = Turn::default();
        turn.deliberate = Some(Deliberate::new(["say"]).with_context_turns(turns));
        agent.step(say(outcome), &mut turn);
        turn.deliberate = Some(Deliberate::new(["context"]));
        let open = [(); 3].map(|()| {
            turn.next_turn();
            turn.allows("say")
        });
        assert_eq!(open, expected, "{outcome}, {turns}");
    }
    // Another success opens the window again; without deliberate mode there is no window.
    let mut turn = Turn::default();
    agent.step(say(""), &mut turn);
    turn.deliberate = Some(Deliberate::new(["context"]));
    assert!(!turn.allows("say"));
    turn.deliberate = Some(Deliberate::new(["say"]).with_context_turns(1));
    for _ in 0..5 {
        assert_eq!(word(&agent.step(say(""), &mut turn)), "history/ok");
        turn.next_turn();
        turn.deliberate = Some(Deliberate::new([""; 0]).with_context_turns(1));
    }
}

/// Stage 7.
#[test]
fn trigger_notifies_observers_not_the_model() {
    let (seen, sink) = Log::shared();
    let agent = Loop::new().with(|stepper| {
        stepper.with_observer(move |event| {
            sink.push(event);
            panic!("observer");
        })
    });
    let deliberate = || Some(Deliberate::new(["context"]).with_trigger("say", "tell me"));
    let notice = |id: Option<&str>| StepEvent::TriggerNotice {
        id: id.map(str::to_owned),
        tool: "say".into(),
        trigger: "tell me".into(),
    };
    let fails = json!({"outcome": "error"});
    for (deliberate, call, expected) in [
        (deliberate(), RawCall::from(say("")), vec![notice(None)]),
        (deliberate(), ToolCall::with_value("c1", "say", &fails).into(), vec![notice(Some("c1"))]),
        (deliberate(), calling("context").into(), vec![]),
        (deliberate(), calling("stuck").into(), vec![]),
        (None, say("").into(), vec![]),
    ] {
        let mut turn = Turn::default();
        turn.deliberate = deliberate;
        let step = agent.step(call, &mut turn);
        assert!(matches!(step, Step::History { .. }), "{step:?}");
        assert!(!json!(step).to_string().contains("tell me"));
        assert_eq!(seen.taken(), expected);
    }
    let json = json!({"type": "trigger_notice", "id": null, "tool": "say", "trigger": "tell me"});
    assert_eq!(json!(notice(None)), json);
}

/// Stage 8.
#[test]
fn restart_hook_may_consume_the_result() {
    let consumes = |completion: Arc<Completion>| async move {
        match ending(&completion.result).as_str() {
            "ok" => {
                completion.result.value().is_some_and(|value| value.as_str().contains("restart"))
            }
            "error" => true,
            "ask_user" => panic!("hook"),
            _ => false,
        }
    };
    let agent = Loop::new().with(|stepper| stepper.with_restart_hook(consumes));
    let mut turn = allowing(["say"]);
    let table = rows::<(&str, &str, _)>(CASES, "restart_hook_may_consume_the_result");
    for (outcome, expected, errors) in table {
        let word = word(&agent.step(say(outcome), &mut turn));
        assert_eq!((word.as_str(), turn.consecutive_errors()), (expected, errors), "{outcome}");
    }
    assert_eq!(agent.dispatched(), 8);
    // A blocked or unknown tool has no result to consume.
    let agent = Loop::new().with(|stepper| stepper.with_restart_hook(|_| async { true }));
    for name in ["context", "there_is_none"] {
        assert_eq!(word(&agent.step(calling(name), &mut turn)), "history/failed");
        turn.deliberate = None;
    }
    assert_eq!(json!(agent.step(say(""), &mut turn)), json!({"kind": "restart"}));
}

#[test]
fn stop_overrides_the_restart_hook() {
    let agent = Loop::new().with(|stepper| stepper.with_restart_hook(|_| pending::<bool>()));
    let mut turn = Turn::default();
    let abort = turn.call.abort.clone();
    let step = {
        let mut running = pin!(agent.stepper.step(say(""), &mut turn));
        assert!(poll(running.as_mut()).is_pending());
        abort.raise();
        futures_executor::block_on(running)
    };
    assert_eq!(word(&step), "abort/stopped_by_user");
    assert_eq!(turn.consecutive_errors(), 0);

    let mut turn = Turn::default();
    let abort = turn.call.abort.clone();
    let agent = Loop::new().with(|stepper| {
        stepper.with_restart_hook(move |_| {
            abort.raise();
            async { true }
        })
    });
    assert_eq!(word(&agent.step(say(""), &mut turn)), "abort/stopped_by_user");
}

/// Stage 9.
#[test]
fn call_and_response_are_one_entry() {
    type Row = (&'static str, bool, Value, Map<String, Value>);
    let agent = Loop::new();
    agent.register(Tool::manual(named("manual")).expect("a tool"));
    for (outcome, ends, response, beside) in rows::<Row>(CASES, "call_and_response_are_one_entry") {
        let mut call = say(outcome);
        call["id"] = "c1".into();
        let step = agent.first(&call);
        let mut entry = json!({
            "functionCall": {"id": "c1", "name": "say", "args": {"outcome": outcome}},
            "functionResponse": {"id": "c1", "name": "say", "response": response},
            "attributes": {"team": "north"},
        });
        let success = beside.get("is_error").is_none();
        entry.as_object_mut().expect("an object").extend(beside);
        let expected = json!({
            "kind": "history", "name": "say", "success": success, "end_turn": ends, "entry": entry,
        });
        assert_eq!(json!(step), expected, "{outcome}");
    }
    let expected = json!({
        "functionCall": {"name": "manual", "args": {}},
        "functionResponse": {
            "name": "manual",
            "response": {"result": {"error": "the host has no handler for a tool of this name"}},
        },
        "is_error": true,
    });
    assert_eq!(json!(agent.first(calling("manual")))["entry"], expected);
}

#[test]
fn entry_message_equals_the_runs_message() {
    let agent = Loop::new();
    for outcome in ["", "error", "panic", "ask", "halt", "media"] {
        let call = ToolCall::with_value("c1", "say", &json!({"outcome": outcome}));
        let Step::History { entry, .. } = agent.first(call.clone()) else { panic!("{outcome}") };
        let runner = Runner::new(agent.registry.clone());
        let run = wait_here(runner.run([call], RunOptions::default())).expect("it starts");
        let mut expected = run.messages.into_iter().next().expect("a message");
        // The step decides if the turn ends.
        expected.end_turn = false;
        assert_eq!(entry.message(), expected, "{outcome}");
    }
}

#[test]
fn encoder_renders_results_as_text() {
    let encoder = |said: EncodeInput<'_>| match said {
        EncodeInput::Ok(output) if output.value.as_str().contains("bad") => {
            Err(EncodeError("no".into()))
        }
        EncodeInput::Ok(output) if output.value.as_str().contains("worse") => panic!("encoder"),
        EncodeInput::Ok(output) => Ok(format!("ok: {}", output.value)),
        EncodeInput::Value(value) => Ok(format!("value: {value}")),
        EncodeInput::Failure(failure) if failure.to_string().contains("ouch") => {
            Err(EncodeError("never".into()))
        }
        EncodeInput::Failure(failure) => Ok(format!("failed: {failure}")),
        _ => Err(EncodeError("unknown".into())),
    };
    let agent = Loop::new().with(|stepper| stepper.with_encoder(encoder));
    for (outcome, expected) in rows::<(&str, Value)>(CASES, "encoder_renders_results_as_text") {
        assert_eq!(response(&agent.first(say(outcome))), expected, "{outcome}");
    }
}

/// Fails without: the encoder's failure deciding over statistics and windows.
#[test]
fn unencodable_result_is_a_failure_everywhere() {
    let agent = Loop::new().with(|stepper| {
        stepper.with_encoder(|said: EncodeInput<'_>| match said {
            EncodeInput::Failure(failure) => Ok(failure.to_string()),
            EncodeInput::Ok(_) | EncodeInput::Value(_) | _ => Err(EncodeError("no text".into())),
        })
    });
    for outcome in ["", "media", "halt"] {
        agent.registry.clear_statistics();
        let mut turn = allowing(["say"]);
        let step = agent.step(say(outcome), &mut turn);
        let Step::History { success: false, end_turn: false, entry, .. } = &step else {
            panic!("{step:?}")
        };
        let error = "the result could not be encoded: no text";
        assert_eq!(response(&step), json!({"result": {"error": error}}));
        // A failure neither halts nor shows anything.
        assert!(entry.halted.is_none() && entry.parts.is_empty(), "{outcome}");
        let statistics = agent.registry.statistics("say").expect("it is there");
        let counts = (statistics.success, statistics.failure, turn.consecutive_errors());
        assert_eq!(counts, (0, 1, 1), "{outcome}");
        turn.deliberate = Some(Deliberate::new(["context"]));
        assert!(!turn.allows("say"), "{outcome} opens no window");
    }
}

/// A refusal comes before any handler ran, and a tool in manual mode has none. Fails without:
/// calling the hook only after a dispatch.
#[test]
fn only_dispatched_calls_reach_observer_and_hook() {
    let told = Log::new();
    let (notices, asked) = (told.clone(), told.clone());
    let agent = Loop::new().with(|stepper| {
        let tell = move |event| {
            if let StepEvent::TriggerNotice { tool, .. } = event {
                notices.push(format!("notice {tool}"));
            }
        };
        stepper.with_observer(tell).with_restart_hook(move |completion| {
            asked.push(format!("hook {}", completion.tool));
            async { true }
        })
    });
    let picky = native("picky", async |_: Value| json!(1));
    agent.register(picky.with_validator(|_| vec!["never".into()]));
    agent.register(Tool::manual(named("manual")).expect("a tool"));
    for (name, expected, heard) in [
        ("picky", "history/failed", &[][..]),
        ("secret_plan", "history/failed", &[]),
        ("manual", "history/failed", &[]),
        ("unknown", "history/failed", &[]),
        ("say", "restart", &["notice say", "hook say"]),
    ] {
        let mut turn = Turn::default();
        turn.deliberate = Some(Deliberate::new([""; 0]).with_trigger(name, "do it"));
        assert_eq!(word(&agent.step(calling(name), &mut turn)), expected, "{name}");
        assert_eq!(told.taken(), heard, "{name}");
    }
}

/// Refusals, blocked tools and unknown names count like a tool's own errors.
#[test]
fn errors_in_a_row_end_the_turn() {
    let agent = Loop::configured(StepConfig { max_errors: 3, ..StepConfig::default() });
    let mut turn = allowing(["say", "there_is_none"]);
    let table = rows::<(Value, &str, u32)>(CASES, "errors_in_a_row_end_the_turn");
    for (call, expected, errors) in table {
        let step = agent.step(&call, &mut turn);
        assert_eq!((word(&step).as_str(), turn.consecutive_errors()), (expected, errors), "{call}");
    }
    turn.next_turn();
    assert_eq!(turn.consecutive_errors(), 0);
}
