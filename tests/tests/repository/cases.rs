//! Runs every example tool against its case files.
//!
//! `tests/cases/TOOL/CASE.json` holds `{"arguments" | "arguments_text", "context"?, "outcome"}`;
//! with `UPDATE=1` the test writes the actual outcome.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcell::component::Inspection;
use toolcell::runtime::Placement;
use toolcell::{CallOptions, Executor, Grants, ToolCall};
use toolcell_test_guests::bytes;
use toolcell_tests::{context, engine, load, wait_here};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Value>,
    outcome: Value,
}

/// Runs all cases of all tools of a component.
fn component(name: &str) {
    let engine = engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
    let component = load(&engine, bytes(name)).expect("an example tool loads");
    for tool in component.tools() {
        let name = &tool.definition().name;
        let cases = files(&Path::new(CASES).join(name));
        assert!(!cases.is_empty(), "`{name}` has no cases");
        for path in cases {
            let text = fs::read_to_string(&path).expect("a case file");
            let mut case: Case = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let arguments = match (&case.arguments, &case.arguments_text) {
                (Some(value), None) => value.to_string(),
                (None, Some(text)) => text.clone(),
                _ => panic!("{}: one of `arguments` and `arguments_text`", path.display()),
            };
            let options = CallOptions {
                context: case.context.as_ref().map(context).unwrap_or_default().into(),
                ..CallOptions::default()
            };
            let call = ToolCall::new("call-1", name.as_str(), arguments);
            let executor = Executor::new().without_sealer();
            let completion = wait_here(executor.call(tool, call, options));
            let seen = serde_json::to_value(&completion.result).expect("JSON");
            if std::env::var_os("UPDATE").is_some() {
                case.outcome = seen;
                fs::write(&path, serde_json::to_string_pretty(&case).expect("JSON") + "\n")
                    .expect("written");
            } else {
                assert_eq!(seen, case.outcome, "{}", path.display());
            }
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Defines the tests that run the cases of these components.
macro_rules! cases {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            component(stringify!($name));
        }
    )* };
}

cases! { bare hello calculator jq markdown text_stats desk file_search }

/// Asserts the imports of a component that need a grant, and that the error names them.
fn needs_grant(name: &str, expected: &[&str]) {
    let examination = Inspection::of(&bytes(name)).expect("a component");
    let nothing = Grants::default();
    let missing: Vec<_> =
        examination.ungranted(&nothing).map(|(import, _)| import.as_str()).collect();
    assert_eq!(missing, expected, "{name}");
}

#[test]
fn notes() {
    needs_grant("notes", &["toolcell:tool/kv@0.1.0"]);
}

#[test]
fn fetch() {
    needs_grant("fetch", &["toolcell:tool/http@0.1.0"]);
}

#[test]
fn tools_import_only_used_interfaces() {
    for name in ["hello", "calculator", "desk", "file_search"] {
        let examination = Inspection::of(&bytes(name)).expect("a component");
        let ours = examination.imports.iter().filter(|(import, _)| import.starts_with("toolcell:"));
        assert_eq!(ours.count(), 0, "{name}: {:?}", examination.imports);
    }
}

/// Lists components without cases here, each with the place of its tests.
macro_rules! tested_elsewhere {
    ($($name:ident: $_place:literal,)*) => { $(fn $name() {})* };
}

tested_elsewhere! {
    caller: "grants.rs",
    clerk: "files",
    forecast: "path_to_grant.rs of the command",
    gossip: "secrets.rs",
    forge: "tests/attack/tests/short.rs",
    leaker: "tests/attack/tests/short.rs",
    messenger: "invoke/confided.rs",
    mischief: "mischief.rs",
    prober: "sockets.rs",
    reader: "host/server/tests/server/http/storage/files.rs",
    relay: "invoke",
    scribe: "same",
    suite: "cargo xtask conformance",
    visitor: "panics",
}

macro_rules! is_tested {
    ($component:ident) => {
        const _: fn() = $component;
    };
}

// Does not compile if a component has no function of its name above.
toolcell_test_guests::for_each_component!(is_tested);
