//! Parsing of the tool and its arguments in every command: `COMPONENT [TOOL] [ARGS]…`.

use std::fs;

use serde_json::json;

use crate::place::Place;
use crate::typed::{example, typed};

#[test]
fn single_tool_component_needs_no_tool_name() {
    for words in [
        &["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#][..],
        &["run", "hello.wasm", r#"{"name": "Ada"}"#],
        &["run", "hello.wasm", "greet", "name=Ada"],
        &["run", "hello.wasm", "name=Ada"],
        &["run", "hello.wasm", r#"name:="Ada""#],
    ] {
        let shown = typed(words);
        assert_eq!(
            (shown.status, shown.stdout.as_str(), shown.stderr.as_str()),
            (0, "Hello, Ada!\n", ""),
            "{words:?}"
        );
    }
    let numbers =
        typed(&["run", "calculator.wasm", "expression=a * b", r#"variables={"a": 6, "b": 7}"#]);
    assert_eq!((numbers.status, numbers.stdout.as_str()), (0, "42\n"), "{numbers}");
    let several = typed(&["run", "desk.wasm", "date=2026-03-03"]);
    assert_eq!((several.status, several.stdout.as_str()), (2, ""), "{several}");
    assert!(
        several.stderr.contains(
            "offers several tools: say which\nhint: there are: book_table, submit_plan\n"
        )
    );
    for (words, problem) in [
        (&["run", "hello.wasm", "name=Ada", "x"][..], "`x` is neither NAME=VALUE nor NAME:=JSON"),
        (&["run", "hello.wasm", "name=Ada", "name=Bob"], "the argument `name` is given twice"),
        (&["run", "hello.wasm", "name:=Ada"], "`name:=Ada`: not valid JSON"),
    ] {
        let shown = typed(words);
        assert_eq!((shown.status, shown.stdout.as_str()), (2, ""), "{shown}");
        assert!(shown.stderr.contains(problem) && shown.stderr.contains("\nhint: "), "{shown}");
    }
}

/// The order of words is equal, and so is the error of an unknown tool.
#[test]
fn run_learn_and_explain_share_word_order() {
    let place = Place::new("[components.hello]\npath = \"hello.wasm\"\n").approved();
    for words in [
        &["run", "hello", "greet", "name=Ada"][..],
        &["run", "hello", "name=Ada"],
        &["learn", "hello", "greet", "name=Ada"],
        &["learn", "hello", "name=Ada"],
        &["explain", "hello", "greet", "GET https://a.example"],
        &["explain", "hello", "GET https://a.example"],
    ] {
        let expected = if words[0] == "explain" { 21 } else { 0 };
        let shown = place.typed(words);
        assert_eq!(shown.status, expected, "{words:?}: {shown}");
    }
    fs::write(place.path().join("calls"), r#"{"name": "gret"}"#).unwrap();
    for words in [
        &["run", "hello", "gret"][..],
        &["learn", "hello", "gret"],
        &["explain", "hello", "gret", "GET https://a.example"],
        &["batch", "--calls", "calls"],
    ] {
        let shown = place.typed(words);
        assert_eq!(shown.status, 1, "{words:?}: {shown}");
        assert!(
            shown.stderr.contains("error: there is no tool `gret`\nhint: did you mean `greet`?"),
            "{shown}"
        );
        let json = place.typed(&[words, &["--json"]].concat()).json();
        assert_eq!(json["error"]["kind"], "unknown_tool", "{words:?}: {json}");
    }
}

#[test]
fn omitted_component_means_all_configured_ones() {
    let config =
        "[components.desk]\npath = \"desk.wasm\"\n[components.hello]\npath = \"hello.wasm\"\n";
    let place = Place::new(config);
    fs::copy(example("desk"), place.path().join("desk.wasm")).unwrap();
    fs::write(place.path().join("calls"), r#"{"name": "greet", "arguments": {"name": "Ada"}}"#)
        .unwrap();
    let place = place.approved();
    let tools = place.typed(&["list", "--json"]).json()["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| &tool["tool"]).collect();
    assert_eq!(names, ["book_table", "submit_plan", "greet"]);
    assert_eq!(place.typed(&["tools"]).json()[2]["name"], "greet");
    for config in [config.to_owned(), format!("[host]\nisolation = \"process\"\n{config}")] {
        place.write(&config);
        place.approve();
        let shown = place.typed(&["batch", "--calls", "calls"]);
        assert_eq!(
            (shown.status, &shown.json()["messages"][0]["content"]),
            (0, &json!("Hello, Ada!")),
            "{shown}"
        );
    }
    place.write("");
    place.approve();
    for words in [&["list"][..], &["tools"], &["batch", "--calls", "calls"]] {
        let shown = place.typed(words);
        assert_eq!(shown.status, 2, "{shown}");
        assert!(
            shown.stderr.contains("`toolcell.toml` names no component\nhint: name a component"),
            "{shown}"
        );
    }
}

/// At every size: a byte over the limit, and megabytes over it.
#[test]
fn oversized_result_names_its_limit_at_any_size() {
    let answer = |size: usize, limit: &[&str]| {
        let filter = format!("filter=\"x\" * {size}");
        typed(
            &[&["run", "jq.wasm", &filter, "input:=null", "--memory", "1GiB", "--json"], limit]
                .concat(),
        )
    };
    for size in [1 << 10, 1 << 20, 8 << 20, 32 << 20] {
        let shown = answer(size, &["--max-result", "1KiB"]);
        let cause = &shown.json()["outcome"]["tool_error"];
        assert_eq!(
            (shown.status, &cause["reason"]),
            (20, &json!("invalid_return")),
            "{size}: {:.300}",
            shown.stdout
        );
        assert_eq!(
            (&cause["cause"]["rule"], &cause["cause"]["limit"]),
            (&json!("too_large"), &json!(1024)),
            "{cause}"
        );
    }
    assert_eq!(answer(2 << 20, &["--max-result", "4MiB"]).status, 0, "it raises the limit too");
    let person =
        typed(&["run", "jq.wasm", r#"filter="x" * 2000"#, "input:=null", "--max-result", "1KiB"]);
    assert!(
        person.stderr.contains("hint: raise `--max-result` (now 1KiB), or ask the tool for less\n"),
        "{person}"
    );
}
