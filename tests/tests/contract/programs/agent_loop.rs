//! An agent loop, call by call: refusals before a tool runs, stops by a person, the responses for
//! the model, and the state of the loop.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolcell::outcome::{Media, Output, Part};
use toolcell::step::{AbortStatus, Deliberate, Step, StepConfig, StepEvent};
use toolcell::tool::Invocation;
use toolcell::{Completion, Limits, Outcome, Registry, Stepper, Turn};
use toolcell_test_guests::rows;
use toolcell_tests::{context, wait_here};

use super::{Recorded, blocking, example};
use crate::{Log, form, native, registry};

/// The tools of a chat, and the number of its own handlers that have run.
#[derive(Clone, Default)]
struct Chat {
    registry: Registry,
    ran: Arc<AtomicUsize>,
    /// Notified when `search` waits.
    started: Arc<Notify>,
    /// True if the request of `search` was cancelled before it ended.
    cancelled: Arc<AtomicBool>,
}

fn chat() -> Chat {
    let chat = Chat::default();
    let state = chat.clone();
    let draw = native("draw", async move |arguments: Value| {
        state.ran.fetch_add(1, SeqCst);
        let subject = arguments["subject"].as_str().ok_or("nothing to draw")?.to_owned();
        let picture = Media { mime_type: "image/png".into(), data: subject.clone().into_bytes() };
        let mut output = Output::new(json!({"drawn": subject})).with_part(Part::Image(picture));
        output.end_turn = true;
        Ok::<_, &str>(output)
    });
    let state = chat.clone();
    let note = blocking("note", move |arguments: Value| {
        state.ran.fetch_add(1, SeqCst);
        if arguments["text"] == "" {
            Outcome::error("an empty note")
        } else {
            Outcome::ok(arguments)
        }
    });
    let state = chat.clone();
    let search = native("search", async move |_: Value| {
        state.ran.fetch_add(1, SeqCst);
        let _request = Recorded(state.cancelled);
        state.started.notify_one();
        pending::<Value>().await
    });
    let tools = [draw, note, search, example("calculator", "calculator")];
    chat.registry.register_all(tools).expect("names of their own");
    chat
}

fn calling(name: &str, args: Value) -> Value {
    json!({"id": "call-1", "name": name, "args": args})
}

fn draw() -> Value {
    calling("draw", json!({"subject": "cat"}))
}

fn note(text: &str) -> Value {
    calling("note", json!({"text": text}))
}

fn step(stepper: &Stepper, call: Value, turn: &mut Turn) -> Step {
    wait_here(stepper.step(call, turn))
}

/// Returns the kind of a step, with its main fields.
fn outline(step: &Step) -> Value {
    let step = form(step);
    match step["kind"].as_str() {
        Some("history") => json!([step["name"], step["success"], step["end_turn"]]),
        Some("abort") => step["status"].clone(),
        _ => step["kind"].clone(),
    }
}

/// Returns the response that the model reads.
fn response(step: &Step) -> Value {
    let Step::History { entry, .. } = step else { panic!("{step:?}") };
    form(entry)["functionResponse"]["response"].clone()
}

#[test]
fn malformed_call_ends_the_turn() {
    let chat = chat();
    let stepper = Stepper::new(chat.registry);
    for call in [json!(null), json!({}), json!({"args": {}}), json!({"name": ""})] {
        let ended = step(&stepper, call.clone(), &mut Turn::default());
        assert!(matches!(ended, Step::Abort { status: AbortStatus::Error }), "{call}: {ended:?}");
    }
    // With its name and its id, the model can repair the call.
    let told = step(&stepper, calling("note", json!([1])), &mut Turn::default());
    assert!(response(&told).to_string().contains("expected an object, got an array"), "{told:?}");
    assert_eq!(chat.ran.load(SeqCst), 0);
}

#[test]
fn success_is_recorded_with_its_call() {
    let stepper = Stepper::new(chat().registry);
    let mut turn = Turn::default();
    let sum = step(&stepper, calling("calculator", json!({"expression": "6 * 7"})), &mut turn);
    assert_eq!(outline(&sum), json!(["calculator", true, false]));
    let Step::History { entry, .. } = &sum else { panic!("{sum:?}") };
    assert_eq!(
        form(entry),
        json!({
            "attributes": {"category": "math"},
            "functionCall": {"id": "call-1", "name": "calculator", "args": {"expression": "6 * 7"}},
            "functionResponse": {"id": "call-1", "name": "calculator", "response": {"result": 42}},
        })
    );
    let drawn = step(&stepper, draw(), &mut turn);
    assert_eq!(outline(&drawn), json!(["draw", true, true]));
    let Step::History { entry, .. } = &drawn else { panic!("{drawn:?}") };
    let picture = json!({"type": "image", "mimeType": "image/png", "bytes": 3});
    assert_eq!(form(entry)["media"], json!([picture]));
    assert_eq!(response(&drawn), json!({"result": {"drawn": "cat"}}));
}

#[test]
fn failure_is_reported_in_the_call_response() {
    let stepper = Stepper::new(chat().registry);
    let table = "failure_is_reported_in_the_call_response";
    for (name, args, words) in rows::<(&str, Value, &str)>("contract/programs/agent_loop", table) {
        let call = calling(name, args);
        let failed = step(&stepper, call.clone(), &mut Turn::default());
        assert_eq!(outline(&failed), json!([name, false, false]));
        let error = response(&failed)["result"]["error"].clone();
        assert!(error.as_str().is_some_and(|error| error.contains(words)), "{call}: {error}");
    }
}

#[test]
fn stop_before_the_call_starts_nothing() {
    let chat = chat();
    let mut turn = Turn::default();
    turn.stop();
    let ended = step(&Stepper::new(chat.registry), note("milk"), &mut turn);
    assert_eq!(outline(&ended), "stopped_by_user");
    assert_eq!(chat.ran.load(SeqCst), 0);
}

#[test]
fn stop_during_the_call_cancels_its_request() {
    let chat = chat();
    let stepper = Stepper::new(chat.registry.clone());
    let mut turn = Turn::default();
    let pressed = turn.call.abort.clone();
    let (ended, ()) = wait_here(async {
        let person = async {
            chat.started.notified().await;
            pressed.raise();
        };
        tokio::join!(stepper.step(calling("search", json!({})), &mut turn), person)
    });
    assert_eq!(outline(&ended), "stopped_by_user");
    assert!(chat.cancelled.load(SeqCst));
    assert_eq!(turn.consecutive_errors(), 0);

    // The next turn is not stopped.
    turn.next_turn();
    assert_eq!(outline(&step(&stepper, note("milk"), &mut turn)), json!(["note", true, false]));
}

#[test]
fn timeout_is_recorded_as_a_failure() {
    let chat = chat();
    let mut turn = Turn::default();
    turn.call.limits = Limits { timeout: Duration::from_secs(1), ..Limits::unlimited() };
    let stepper = Stepper::new(chat.registry);
    let ended = step(&stepper, calling("search", json!({})), &mut turn);
    assert_eq!(outline(&ended), json!(["search", false, false]));
    assert!(response(&ended)["result"]["error"].is_string());
    // Each call has its own time.
    let sum = step(&stepper, note("milk"), &mut turn);
    assert_eq!(outline(&sum), json!(["note", true, false]));

    let vars = |value: &'static str| {
        move |name: &str| (name == "TOOL_EXECUTION_TIMEOUT_MS").then(|| value.to_owned())
    };
    assert!(StepConfig::from_vars(vars("20000")).is_ok());
    assert!(StepConfig::from_vars(vars("soon")).is_err_and(|error| error.is_options()));
}

#[test]
fn tools_see_the_turns_context() {
    let asks = native("where", async |_: Value, invocation: Arc<Invocation>| {
        let context = &invocation.context;
        let extension = |name: &str| context.extensions.get(name).map(|value| value.to_value());
        let (locale, hint) = (extension("locale"), extension("show_kill_hint"));
        json!([context.tenant, locale, hint, !invocation.abort.is_raised()])
    });
    let stepper = Stepper::new(registry([asks]))
        .with_config(StepConfig { soft_warn_at: 3, ..StepConfig::default() });
    let mut turn = Turn::new(context(&json!({"tenant": "guild"})));
    turn.locale = Some("ja".into());
    for (iteration, hint) in [(2, json!(null)), (3, json!(true)), (4, json!(true))] {
        turn.iteration = iteration;
        let told = response(&step(&stepper, calling("where", json!({})), &mut turn));
        assert_eq!(told, json!({"result": ["guild", "ja", hint, true]}));
    }
}

#[test]
fn deliberate_mode_blocks_other_tools() {
    let chat = chat();
    let (notices, told) = Log::shared();
    let stepper =
        Stepper::new(chat.registry).with_observer(move |event: StepEvent| told.push(form(&event)));
    let mut turn = Turn::default();
    turn.deliberate =
        Some(Deliberate::new(["note"]).with_context_turns(1).with_trigger("draw", "a picture of"));

    let blocked = step(&stepper, calling("search", json!({})), &mut turn);
    assert_eq!(outline(&blocked), json!(["search", false, false]));
    let expected = json!({
        "status": "blocked_by_deliberate_tool_mode", "functionName": "search",
        "allowedToolNames": ["draw", "note"],
    });
    assert_eq!(response(&blocked)["result"], expected);
    assert_eq!(chat.ran.load(SeqCst), 0);
    assert_eq!(outline(&step(&stepper, draw(), &mut turn)), json!(["draw", true, true]));
    let notice = json!({
        "type": "trigger_notice", "id": "call-1", "tool": "draw", "trigger": "a picture of",
    });
    assert_eq!(notices.taken(), [notice]);

    // "Do it again": the tool stays open for one further turn, without a trigger.
    for open in [true, false] {
        turn.next_turn();
        turn.deliberate = Some(Deliberate::new(["note"]).with_context_turns(0));
        assert_eq!(turn.allows("draw"), open);
        assert_eq!(outline(&step(&stepper, draw(), &mut turn))[1], open);
    }
    turn.deliberate = Some(Deliberate::unrestricted());
    assert!(turn.allows("search"));
}

#[test]
fn restart_replaces_the_calls_record() {
    let stepper =
        Stepper::new(chat().registry).with_restart_hook(async |completion: Arc<Completion>| {
            let value = completion.result.value();
            value.is_some_and(|value| value.to_value()["text"] == "context_restart")
        });
    let mut turn = Turn::default();
    assert_eq!(outline(&step(&stepper, note(""), &mut turn)), json!(["note", false, false]));
    assert_eq!(turn.consecutive_errors(), 1);
    assert_eq!(outline(&step(&stepper, note("context_restart"), &mut turn)), "restart");
    assert_eq!(turn.consecutive_errors(), 0);
    assert_eq!(outline(&step(&stepper, note("milk"), &mut turn)), json!(["note", true, false]));
}

#[test]
fn too_many_errors_in_a_row_end_the_turn() {
    let chat = chat();
    let stepper = Stepper::new(chat.registry.clone())
        .with_config(StepConfig { max_errors: 2, ..StepConfig::default() });
    let mut turn = Turn::default();
    let texts = ["", "", "milk", "", "", ""];
    let outlines: Vec<_> =
        texts.iter().map(|text| outline(&step(&stepper, note(text), &mut turn))).collect();
    let [good, bad] = [true, false].map(|success| json!(["note", success, false]));
    assert_eq!(json!(outlines), json!([bad, bad, good, bad, bad, "error"]));
    // Each call was dispatched once, and is counted for its tool.
    assert_eq!(chat.ran.load(SeqCst), texts.len());
    let statistics = chat.registry.statistics("note").unwrap_or_default();
    assert_eq!((statistics.success, statistics.failure), (1, 5));
}

#[test]
fn concurrent_calls_are_recorded_in_order() {
    let stepper = Stepper::new(chat().registry);
    let calls = [draw(), note(""), calling("calculator", json!({"expression": "1 + 1"}))];
    let mut turn = Turn::default();
    let steps = wait_here(stepper.step_all(calls, &mut turn));
    let outlines: Vec<_> = steps.iter().map(outline).collect();
    let expected = [("draw", true, true), ("note", false, false), ("calculator", true, false)];
    assert_eq!(json!(outlines), json!(expected));
    assert_eq!(turn.consecutive_errors(), 0);
}
