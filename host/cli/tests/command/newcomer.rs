//! Typical mistakes of new users, and the hint that helps.

use serde_json::{Value, json};

use crate::place::Place;
use crate::typed::{CommandResult, example, typed};

fn leads_on(shown: &CommandResult, status: i32, error: &str, hint: &str) {
    assert_eq!((shown.status, shown.stdout.as_str()), (status, ""), "{shown}");
    let has = |label: &str, text: &str| {
        let lines =
            shown.stderr.lines().filter(|line| line.starts_with(label) || line.starts_with("  - "));
        lines.filter(|line| line.contains(text)).count() == 1
    };
    assert!(has("error: ", error) && has("hint: ", hint), "{shown}");
}

#[test]
fn malformed_json_error_suggests_correction() {
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
fn unknown_component_name_is_usage_error() {
    let (with, without) =
        (Place::new("[components.hello]\npath = \"hello.wasm\"\n"), Place::new(""));
    std::fs::remove_file(without.path().join("toolcell.toml")).unwrap();
    for command in ["run", "learn", "inspect", "list", "tools"] {
        leads_on(
            &with.typed(&[command, "helo"]),
            2,
            "has no component `helo`",
            "did you mean `hello`?",
        );
        leads_on(
            &without.typed(&[command, "hello"]),
            2,
            "there is no file `hello`",
            "did you mean `hello.wasm`?",
        );
    }
    leads_on(
        &without.typed(&["inspect"]),
        2,
        "no component is named",
        "toolcell inspect asks.wasm`",
    );
}

#[test]
fn bad_request_error_shows_correct_form() {
    let place = Place::new("");
    for (words, error, hint) in [
        (
            &["hello.wasm"][..],
            "the request is missing after `hello.wasm`",
            "explain hello.wasm 'GET https://example.com/x'`",
        ),
        (
            &["hello.wasm", "greet"],
            "missing after `greet`",
            "explain hello.wasm greet 'GET https://example.com/x'`",
        ),
        (
            &["hello.wasm", "get https://a.example"],
            "`get` is neither",
            "did you mean 'GET https://a.example'?",
        ),
        (&["hello.wasm", "look /data"], "`look` is neither", "`read /data/x`"),
        (&["hello.wasm", "kv"], "the request `kv` is not whole", "`kv read KEY`"),
        (
            &["hello.wasm", "greet", "GET"],
            "the request `GET` is not whole",
            "`GET https://example.com/x`",
        ),
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
fn inspect_shows_only_the_named_tool() {
    let one = typed(&["inspect", "desk.wasm", "submit_plan"]);
    assert!(
        one.stdout.contains("\ntool submit_plan\n") && !one.stdout.contains("tool book_table"),
        "{one}"
    );
    let json = typed(&["inspect", "desk.wasm", "submit_plan", "--json"]).json();
    let names: Vec<_> =
        json["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!((names, json["rights"].as_object().unwrap().len()), (vec!["submit_plan"], 1));
    leads_on(
        &typed(&["inspect", "desk.wasm", "submit_plam"]),
        1,
        "no tool `submit_plam`",
        "did you mean `submit_plan`?",
    );
}

#[test]
fn refused_dry_run_prints_json() {
    let shown = typed(&["learn", "hello.wasm", "nme=Ada", "--json"]);
    assert_eq!((shown.status, shown.stderr.as_str()), (21, ""), "{shown}");
    let json = shown.json();
    let fault = &json["outcome"]["refusal"]["faults"][0];
    assert_eq!(
        (&fault["code"], &fault["nearest"]),
        (&json!("unknown_member"), &json!("name")),
        "{json}"
    );
    let ran = typed(&["learn", "hello.wasm", "name=Ada", "--json"]).json();
    let members = |json: &Value| json.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&json), members(&ran));
}

#[test]
fn messages_spell_out_counts_and_tenants() {
    let place =
        Place::new("[components.hello]\npath = \"hello.wasm\"\n[tenants.acme]\n").approved();
    assert_eq!(place.typed(&["serve", "--check"]).stdout, "1 tool, 1 tenant, 0 problems\n");
    let shown = place.typed(&["run", "hello", "name=Ada", "--tenant", "zeta"]);
    leads_on(
        &shown,
        2,
        "names no tenant `zeta`",
        "its tenants: acme; a new one needs a section [tenants.NAME]",
    );
    std::fs::write(place.path().join("calls.json"), r#"[{"name": "gret"}]"#).unwrap();
    let batch = place.typed(&["batch", "--calls", "calls.json", "--tenant", "acme"]);
    leads_on(
        &batch,
        1,
        "there is no tool `gret`",
        "did you mean `greet`? or pass `--unknown-tools answer`, so that",
    );
}

#[test]
fn config_error_describes_invalid_value() {
    for (config, error, hint) in [
        (
            "[components.a]\npath = \"\"\n",
            "toolcell.toml:2:8: the path is empty",
            "write the component's file",
        ),
        (
            "[components.a]\npath = \"hello.wasm\"\n[components.a.grants]\n\
             directories = [{ name = \"/x\", path = \"\", access = \"read\" }]\n",
            "`` is not a directory: the path is empty",
            "write the path of a directory",
        ),
        (
            "[components.a]\npath = \"hello.wasm\"\n[components.a.grants]\nkv = [\"wrte notes/*\"]\n",
            "`wrte` is not an access: `read` or `write`",
            "`read *` or `write notes/*`",
        ),
        (
            "[components.a]\npath = \"hello.wasm\"\n[components.a.grants]\nkv = [\"write\"]\n",
            "`write`: the key is missing",
            "`read *` or `write notes/*`",
        ),
        ("[tenants.\" a\"]\n", "` a` cannot be a tenant's name", "without blanks around it"),
        ("[tenants.\"\"]\n", "`` cannot be a tenant's name", "a name that is not empty"),
    ] {
        leads_on(&Place::new(config).typed(&["check"]), 1, error, hint);
    }
    let typed = ["run", "hello.wasm", "name=Ada", "--grant", "directory=read /data="];
    leads_on(
        &Place::new("").typed(&typed),
        2,
        "the path is empty",
        "write the path of a directory",
    );
}

#[test]
fn unusable_file_is_named() {
    let place = Place::new("");
    std::os::unix::fs::symlink("/nothing", place.path().join("led.wasm")).unwrap();
    let shown = place.typed(&["run", "led.wasm", "greet"]);
    leads_on(
        &shown,
        1,
        "`led.wasm` is a link to `/nothing`, which does not exist",
        "correct the link",
    );
    std::fs::write(place.path().join("a.json"), "{\"name\": ").unwrap();
    let shown = place.typed(&["run", "hello.wasm", "greet", "@a.json"]);
    leads_on(
        &shown,
        21,
        "the arguments from `a.json` do not fit",
        "write one JSON object to `a.json`",
    );
}

/// A grant that the component's imports cannot use.
#[test]
fn grant_without_import_is_reported_unusable() {
    let config =
        "[components.hello]\npath = \"hello.wasm\"\n[components.hello.grants]\nkv = [\"read a\"]\n";
    let place = Place::new(config).approved();
    let useless =
        "the rule `read a` in kv has no effect: the component imports nothing that can use it";
    leads_on_with(&place.typed(&["check"]), useless);
    let explained = place.typed(&["explain", "hello", "kv read a"]);
    leads_on_with(&explained, "no call can make this request, whatever is granted");
    let explained = place.typed(&["explain", "hello", "kv read a", "--json"]).json();
    assert_eq!(
        (&explained["allowed"], &explained["usable"]),
        (&json!(true), &json!(false)),
        "{explained}"
    );
}

fn leads_on_with(shown: &CommandResult, told: &str) {
    assert!(shown.status == 0 && shown.stderr.contains(told), "{shown}");
}

/// Otherwise the tool would only get the error that the store does not answer.
#[test]
fn kv_without_state_dir_fails_with_hint() {
    let place = Place::new("");
    std::fs::copy(example("notes"), place.path().join("notes.wasm")).unwrap();
    let mut command = place.command();
    command.env_remove("HOME").env_remove("XDG_STATE_HOME");
    command.args(["run", "notes.wasm", r#"{"action": "list"}"#, "--grant", "kv=write *"]);
    leads_on(&place.shown(&mut command), 1, "no place for stored keys", "pass `--state-dir DIR`");
}

#[test]
fn usage_error_names_help_of_subcommand() {
    leads_on(
        &typed(&["tenant", "revoke-key"]),
        2,
        "required arguments",
        "`toolcell tenant revoke-key --help` shows",
    );
    leads_on(
        &typed(&["run", "--nothing"]),
        2,
        "unexpected argument",
        "`toolcell run --help` shows",
    );
}
