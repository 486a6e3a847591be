//! `[components.NAME.tools.TOOL]`: sections that narrow single tools of a component.

use std::fs;

use crate::place::Place;
use crate::typed::check;

const CONFIG: &str = r#"
[components.asks]
path = "asks.wasm"
[components.asks.grants]
secrets = { key = { source = { env = "TOKEN" } }, token = { destination = "https://a.example", source = { file = "token" } } }
reveal = ["key"]
http = ["https://a.example"]
kv = ["write notes/*"]
[components.asks.tools.asks]
reveal = []
kv = ["read notes/*"]
limits = { timeout = "2s" }

[components.hello]
path = "hello.wasm"
[components.hello.tools.greet.limits]
fuel = 1000

[tenants.acme]
kv = ["read notes/a"]
"#;

#[test]
fn tool_section_narrows_component_grants() {
    let place = Place::new(CONFIG).approved();
    check("check_tools", &place.typed(&["check"]));
    let json = place.typed(&["check", "--json"]).json();
    assert_eq!(json["components"][0]["tools"][0]["limits"]["timeout_ms"], 2000, "{json}");
    let asks = place.typed(&["run", "asks", "asks"]);
    assert!(
        asks.status == 0 && asks.stderr.contains("denied: `reveal key` is denied for this tool"),
        "{asks}"
    );
    for (request, status) in [
        ("secret token", 0),
        ("kv read notes/1", 0),
        ("kv write notes/1", 21),
        ("kv read other", 21),
    ] {
        let shown = place.typed(&["explain", "asks", request]);
        assert_eq!(shown.status, status, "{request}: {shown}");
    }
    check("explain_tool", &place.typed(&["explain", "asks", "kv write notes/1"]));
    let learned = place.typed(&["learn", "asks"]);
    let line = "hint: [components.asks.tools.asks] narrows this call; to allow it, write there:\n    reveal = [\"key\"]  # in place of line 10\n";
    assert!(learned.stderr.contains(line), "{learned}");
    assert!(!learned.stderr.contains("asked for nothing"), "{learned}");
}

/// In addition to typed limits, in `run` and in `batch`. The hint names the place to raise the
/// limit.
#[test]
fn tool_limits_apply_in_run_and_batch() {
    let place = Place::new(CONFIG).approved();
    for typed in [&[][..], &["--fuel", "1G"]] {
        let shown =
            place.typed(&[&["run", "hello", "greet", "{\"name\": \"Ada\"}"], typed].concat());
        assert_eq!(shown.status, 20, "{shown}");
        assert!(
            shown
                .stderr
                .contains("hint: raise `fuel` in [components.hello.tools.greet.limits] (now 1k)"),
            "{shown}"
        );
    }
    fs::write(
        place.path().join("calls"),
        r#"[{"name": "greet", "arguments": {"name": "Ada"}}, {"name": "asks"}]"#,
    )
    .unwrap();
    let shown = place.typed(&["batch", "hello", "asks", "--calls", "calls"]);
    let messages = &shown.json()["messages"];
    assert!(messages[0]["content"].as_str().unwrap().contains("fuel"), "{shown}");
    assert_eq!(messages[1]["content"], "{}", "the others have theirs: {shown}");
}

/// With a misspelt section, a tool would keep more rights than intended.
#[test]
fn section_of_unknown_tool_is_an_error() {
    let place = Place::new(
        "[components.hello]\npath = \"hello.wasm\"\n[components.hello.tools.great]\nhttp = []\n",
    );
    for words in [&["check"][..], &["approve", "--yes"], &["list", "hello"], &["inspect", "hello"]]
    {
        let shown = place.typed(words);
        assert_eq!(shown.status, 1, "{shown}");
        assert!(shown.stderr.contains("toolcell.toml:3:1: `hello` has no tool `great`"), "{shown}");
        assert!(shown.stderr.contains("\nhint: did you mean `greet`?\n"), "{shown}");
    }
    place.write("[components.hello]\npath = \"hello.wasm\"\n[components.hello.tools.greet]\nlimits = { fuel = \"lots\" }\nhtpp = []\n");
    let shown = place.typed(&["check"]);
    assert!(shown.status == 1 && shown.stderr.contains("toolcell.toml:5:1: "), "{shown}");
}
