//! What a newcomer types by mistake, and the line that leads on.

use serde_json::{Value, json};

use crate::place::Place;
use crate::typed::{Shown, typed};

fn leads_on(shown: &Shown, status: i32, error: &str, hint: &str) {
    assert_eq!((shown.status, shown.stdout.as_str()), (status, ""), "{shown}");
    let has = |label: &str, text: &str| {
        let lines = shown.stderr.lines().filter(|line| line.starts_with(label) || line.starts_with("  - "));
        lines.filter(|line| line.contains(text)).count() == 1
    };
    assert!(has("error: ", error) && has("hint: ", hint), "{shown}");
}

#[test]
fn json_with_a_slip_is_answered_with_what_was_meant() {
    for slip in ["{'name': 'Ada'}", r#"{"name": "Ada",}"#, "{name: Ada}"] {
        for command in ["run", "learn"] {
            let shown = typed(&[command, "hello.wasm", slip]);
            leads_on(&shown, 21, "not valid JSON", r#"did you mean '{"name":"Ada"}'?"#);
        }
    }
    let hint = "write NAME=VALUE, or one JSON object in quotes for the shell";
    leads_on(&typed(&["run", "hello.wasm", "greet", "Ada"]), 21, "not valid JSON", hint);
    let shown = typed(&["run", "hello.wasm", "name=Ada", "--context", "{'tenant': 'a'}"]);
    leads_on(&shown, 2, "--context: not valid JSON", r#"did you mean '{"tenant":"a"}'?"#);
}

/// With and without a configuration.
#[test]
fn a_name_that_nothing_has_is_a_wrong_usage() {
    let (with, without) = (Place::new("[components.hello]\npath = \"hello.wasm\"\n"), Place::new(""));
    std::fs::remove_file(without.path().join("toolcell.toml")).unwrap();
    for command in ["run", "learn", "inspect", "list", "tools"] {
        leads_on(&with.typed(&[command, "helo"]), 2, "has no component `helo`", "did you mean `hello`?");
        leads_on(&without.typed(&[command, "hello"]), 2, "there is no file `hello`", "did you mean `hello.wasm`?");
    }
    leads_on(&without.typed(&["inspect"]), 2, "no component is named", "toolcell inspect asks.wasm`");
}

#[test]
fn a_request_that_is_missing_or_mistyped_is_shown_as_it_is_written() {
    let place = Place::new("");
    for (words, error, hint) in [
        (
            &["hello.wasm"][..],
            "the request is missing after `hello.wasm`",
            "explain hello.wasm 'GET https://example.com/x'`",
        ),
        (&["hello.wasm", "greet"], "missing after `greet`", "explain hello.wasm greet 'GET https://example.com/x'`"),
        (&["hello.wasm", "get https://a.example"], "`get` is neither", "did you mean 'GET https://a.example'?"),
        (&["hello.wasm", "look /data"], "`look` is neither", "`read /data/x`"),
    ] {
        leads_on(&place.typed(&[&["explain"], words].concat()), 2, error, hint);
    }
    for kind in ["filesystem", "directories"] {
        let shown = place.typed(&["explain", "hello.wasm", &format!("{kind} read /data")]);
        assert_eq!(
            (shown.status, shown.stdout.as_str()),
            (21, "`read /data` is denied: it was not granted\n"),
            "{shown}"
        );
    }
}

#[test]
fn one_tool_of_a_component_is_shown() {
    let one = typed(&["inspect", "desk.wasm", "submit_plan"]);
    assert!(one.stdout.contains("\ntool submit_plan\n") && !one.stdout.contains("tool book_table"), "{one}");
    let json = typed(&["inspect", "desk.wasm", "submit_plan", "--json"]).json();
    let names: Vec<_> = json["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!((names, json["rights"].as_object().unwrap().len()), (vec!["submit_plan"], 1));
    leads_on(
        &typed(&["inspect", "desk.wasm", "submit_plam"]),
        1,
        "no tool `submit_plam`",
        "did you mean `submit_plan`?",
    );
}

#[test]
fn a_refused_dry_run_is_json_too() {
    let shown = typed(&["learn", "hello.wasm", "nme=Ada", "--json"]);
    assert_eq!((shown.status, shown.stderr.as_str()), (21, ""), "{shown}");
    let json = shown.json();
    let fault = &json["ended"]["refusal"]["faults"][0];
    assert_eq!((&fault["code"], &fault["nearest"]), (&json!("unknown_member"), &json!("name")), "{json}");
    let ran = typed(&["learn", "hello.wasm", "name=Ada", "--json"]).json();
    let members = |json: &Value| json.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&json), members(&ran));
}

#[test]
fn counts_and_tenants_are_in_words() {
    let place = Place::new("[components.hello]\npath = \"hello.wasm\"\n[tenants.acme]\n").approved();
    assert_eq!(place.typed(&["serve", "--check"]).stdout, "1 tool, 1 tenant, 0 problems\n");
    let shown = place.typed(&["run", "hello", "name=Ada", "--tenant", "zeta"]);
    leads_on(&shown, 2, "names no tenant `zeta`", "its tenants: acme; a new one needs a section [tenants.NAME]");
    std::fs::write(place.path().join("calls.json"), r#"[{"name": "gret"}]"#).unwrap();
    let batch = place.typed(&["batch", "--calls", "calls.json", "--tenant", "acme"]);
    leads_on(&batch, 1, "there is no tool `gret`", "did you mean `greet`? or pass `--unknown-tools answer`, so that");
}
