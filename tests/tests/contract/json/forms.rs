//! Checks that `docs/events.md` and `docs/json.md` are complete and true: the library's types read
//! their examples, and the pages name every event, kind and reason of these types.
//!
//! A block marked `json TYPE` has one value a line.

use std::fmt::Debug;
use std::fs;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcell::call::{LogLevel, LogSource};
use toolcell::grants::Layer;
use toolcell::message::ResultView;
use toolcell::outcome::{CrashKind, Exit, LimitKind, Part, Reason, ReturnRule, Timeout};
use toolcell::run::{RunEvent, RunFailure, RunHalt, RunOutcome, SettledCall};
use toolcell::step::{AbortStatus, Step, StepEvent};
use toolcell::{CallResult, Completion, Definition, Event, Refusal, Tool, Usage};

use crate::{form, named, registry};

fn page(name: &str) -> String {
    fs::read_to_string(format!("../docs/{name}")).expect("a page")
}

/// Returns the values of all JSON blocks, with the names of their types.
fn examples(page: &str) -> Vec<(String, Value)> {
    let mut examples = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let kind = info
            .strip_prefix("json ")
            .unwrap_or_else(|| panic!("a block of JSON says its type, not `{info}`"));
        for line in lines.by_ref().take_while(|line| *line != "```") {
            let value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            examples.push((kind.to_owned(), value));
        }
    }
    examples
}

/// Asserts that a value is unchanged after it was read and written.
fn same<T: Serialize + DeserializeOwned + Debug>(written: &Value) {
    let read: T = serde_json::from_str(&written.to_string())
        .unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(form(&read), *written);
}

fn check(kind: &str, example: &Value) {
    match kind {
        "Event" => same::<Event>(example),
        "SettledCall" => same::<SettledCall>(example),
        "StepEvent" => same::<StepEvent>(example),
        "RunEvent" => run_event(example),
        "Completion" => same::<Completion>(example),
        "CallResult" => same::<CallResult>(example),
        "Usage" => same::<Usage>(example),
        "Definition" => same::<Definition>(example),
        "RunOutcome" => same::<RunOutcome>(example),
        "RunHalt" => same::<RunHalt>(example),
        "Step" => same::<Step>(example),
        "ResultView" => same::<ResultView>(example),
        other => panic!("there is no type `{other}`"),
    }
}

/// Checks run events, which can be written but not read.
fn run_event(example: &Value) {
    let event = match example["type"].as_str() {
        Some("run_halted") => {
            RunEvent::Halted(serde_json::from_value(example["halt"].clone()).expect("a halt"))
        }
        Some("error") => {
            let manual = Tool::manual(named("calculator")).expect("a tool");
            let toolbox = registry([manual]).toolbox();
            RunEvent::Error(RunFailure(toolbox.resolve("calculate").expect_err("unknown")))
        }
        other => panic!("{other:?} is read by another type"),
    };
    assert_eq!(form(&event), *example);
}

#[test]
fn documented_examples_round_trip_through_types() {
    for name in ["events.md", "json.md"] {
        let examples = examples(&page(name));
        assert!(examples.len() > 10, "{name}");
        examples.iter().for_each(|(kind, example)| check(kind, example));
    }
}

/// Returns the names that a type accepts, from its error about an unknown one.
fn known<T: DeserializeOwned + Debug>(unknown: &Value) -> Vec<String> {
    let error =
        serde_json::from_str::<T>(&unknown.to_string()).expect_err("an unknown name").to_string();
    let (_, expected) = error.split_once("expected ").unwrap_or_else(|| panic!("{error}"));
    let names: Vec<_> = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(!names.is_empty() && !names.contains(&"?".to_owned()), "{error}");
    names
}

/// Asserts that a page has each of these names in backquotes.
fn assert_named(page: &str, names: &[String]) {
    let is_unnamed = |name: &&String| !page.contains(&format!("`{name}`"));
    assert_eq!(names.iter().filter(is_unnamed).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_event_is_documented() {
    let page = page("events.md");
    let types = [
        known::<Event>(&json!({"type": "?", "id": "c"})),
        known::<SettledCall>(&json!({"type": "?"})),
        known::<StepEvent>(&json!({"type": "?"})),
        ["run_halted", "error"].map(str::to_owned).to_vec(),
    ];
    for name in types.iter().flatten() {
        assert!(page.contains(&format!("### `{name}`")), "no section on `{name}`");
        let shown = examples(&page).iter().any(|(_, example)| example["type"] == **name);
        assert!(shown, "no example of `{name}`");
    }
    for names in [
        known::<LogSource>(&json!("?")),
        known::<LogLevel>(&json!("?")),
        known::<Layer>(&json!("?")),
    ] {
        assert_named(&page, &names);
    }
}

#[test]
fn every_kind_and_reason_is_documented() {
    let page = page("json.md");
    let timeout = known::<Timeout>(&json!({"kind": "?"}));
    assert_eq!(timeout.len(), 3, "{timeout:?}");
    for names in [
        known::<CallResult>(&json!({"?": 1})),
        known::<Part>(&json!({"type": "?"})),
        known::<Reason>(&json!("?")),
        known::<CrashKind>(&json!("?")),
        known::<LimitKind>(&json!("?")),
        known::<Exit>(&json!({"status": "?"})),
        timeout,
        known::<ReturnRule>(&json!({"rule": "?"})),
        known::<Refusal>(&json!({"kind": "?"})),
        known::<Step>(&json!({"kind": "?"})),
        known::<AbortStatus>(&json!("?")),
    ] {
        assert_named(&page, &names);
    }
    // The example has every number of a receipt.
    let receipt = form(&Usage::default());
    let fields = receipt.as_object().expect("an object");
    let shown = examples(&page).into_iter().find(|(kind, _)| kind == "Usage").expect("a receipt").1;
    assert!(fields.keys().eq(shown.as_object().expect("an object").keys()), "{shown}");
}
