//! Components that describe no tools: inspected, run unchanged, configured and approved.

use std::fs;

use toolcell_test_guests::{command_module, functions_component};

use crate::place::Place;
use crate::typed::check;

const MATH: &str = "package docs:math@0.1.0;
interface whole { record pair { a: u32, b: option<u32> } add: func(pair: pair) -> result<u64, string>; }
world plain { export whole; }";
/// Adds the first member of the pair and its option, which counts as 0 if absent, and returns a
/// 64-bit number.
const MODULE: &str = r#"(func (export "docs:math/whole@0.1.0#add") (param i32 i32 i32) (result i32)
    (i32.store (i32.const 1024) (i32.const 0))
    (i64.store (i32.const 1032) (i64.extend_i32_u (i32.add (local.get 0) (local.get 2))))
    (i32.const 1024))"#;

const CONFIG: &str = r#"
[components.math]
path = "math.wasm"
as = "functions"
[components.writer]
path = "program.wasm"
as = "command"
command = { argv = ["write", "<{text}>"], stdin = "empty" }
"#;

/// A component with one function.
pub(crate) fn math() -> Vec<u8> {
    functions_component(MATH, MODULE)
}

fn place(config: &str) -> Place {
    let place = Place::new(config);
    fs::write(place.path().join("math.wasm"), math()).expect("a place");
    fs::write(place.path().join("program.wasm"), command_module()).expect("a place");
    place
}

#[test]
fn inspect_proposes_component_kind() {
    let place = place("");
    for (file, kind) in [("math.wasm", "functions"), ("program.wasm", "command")] {
        let shown = place.typed(&["inspect", file]);
        assert_eq!(shown.status, 0, "{shown}");
        check(&format!("inspect_{kind}"), &shown);
        let json = place.typed(&["inspect", file, "--json"]).json();
        assert_eq!(
            (&json["as"]["kind"], &json["as"]["proposed"]),
            (&kind.into(), &true.into()),
            "{json}"
        );
        let refused = place.typed(&["run", file, "{}"]);
        assert_eq!(refused.status, 1, "{refused}");
        assert!(
            refused.stderr.contains(&format!("hint: use it as it is: `toolcell run --as {kind}`")),
            "{refused}"
        );
    }
}

#[test]
fn as_option_selects_component_kind() {
    let place = place("");
    for (words, status, stdout) in [
        (&["--as", "functions", "math.wasm", r#"{"pair": {"a": 40, "b": 2}}"#][..], 0, "42"),
        (&["--as", "functions", "math.wasm", "whole_add", "pair:={\"a\": 40}"], 0, "40"),
        (&["--as", "functions", "math.wasm", "pair:={}"], 21, ""),
        (&["--as", "command", "program.wasm", r#"{"args": ["write", "hello"]}"#], 0, "hello"),
        (&["--as", "command", "program.wasm", "args:=[\"copy\"]", "stdin=a b"], 0, "a b"),
        (
            &["--as", "command", "program.wasm", "args:=[\"fail\"]"],
            10,
            r#"{"error":"it went wrong (exit status 1)","data":{"status":1,"stderr":"it went wrong","stdout":"partly\n"}}"#,
        ),
        (&["--as", "command", "math.wasm"], 1, ""),
        (&["--as", "functions", "program.wasm"], 1, ""),
        (&["--as", "tool", "math.wasm"], 2, ""),
    ] {
        let shown = place.typed(&[&["run"], words].concat());
        assert_eq!((shown.status, shown.stdout.trim_end()), (status, stdout), "{words:?}: {shown}");
    }
    fs::copy(crate::typed::example("hello"), place.path().join("hello.wasm")).expect("a copy");
    for (kind, file, hint) in [
        ("command", "math.wasm", "use it as it is: `toolcell run --as functions`"),
        ("functions", "program.wasm", "use it as it is: `toolcell run --as command`"),
        ("command", "hello.wasm", "leave `--as` out"),
        ("functions", "hello.wasm", "leave `--as` out"),
    ] {
        let refused = place.typed(&["run", "--as", kind, file, "{}"]);
        assert!(refused.stderr.contains(&format!("\nhint: {hint}")), "{kind} {file}: {refused}");
    }
    fs::write(
        place.path().join("calls"),
        r#"[{"id": "1", "name": "whole_add", "arguments": {"pair": {"a": 1}}}]"#,
    )
    .unwrap();
    let batch = place.typed(&["batch", "--as", "functions", "math.wasm", "--calls", "calls"]);
    assert_eq!(batch.status, 0, "{batch}");
    assert!(batch.stdout.contains("\"1\""), "{batch}");
}

#[test]
fn world_defined_type_is_not_an_import() {
    const WIT: &str = "package docs:math@0.1.0;
world plain { record pair { a: u32, b: u32 } export add: func(pair: pair) -> u32; }";
    const ADD: &str = r#"(func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))"#;
    let place = Place::new("");
    fs::write(place.path().join("math.wasm"), functions_component(WIT, ADD)).expect("a file");
    let shown =
        place.typed(&["run", "--as", "functions", "math.wasm", r#"pair:={"a": 40, "b": 2}"#]);
    assert_eq!((shown.status, shown.stdout.as_str()), (0, "42\n"), "{shown}");
}

#[test]
fn test_runs_cases_of_commands_and_functions() {
    const CASES: &str = r#"{"cases": [
        {"name": "writes", "arguments": {"args": ["write", "hello"]}, "expect": {"ok": "hello"}},
        {"name": "fails", "arguments": {"args": ["fail"]}, "expect": {"error_contains": "it went wrong"}}]}"#;
    let place = place("");
    let folder = |name: &str, cases: &str| {
        fs::create_dir_all(place.path().join(name)).expect("a folder");
        fs::write(place.path().join(name).join("cases.json"), cases).expect("a file");
    };
    folder("program", CASES);
    folder(
        "math",
        r#"{"cases": [{"name": "adds", "arguments": {"pair": {"a": 40, "b": 2}}, "expect": {"ok": 42}}]}"#,
    );
    for (kind, file, cases, passed) in
        [("command", "program.wasm", "program", 2), ("functions", "math.wasm", "math", 1)]
    {
        let words = ["test", "--component", file, "--as", kind, cases, "--json"];
        let report = place.typed(&words).json();
        assert_eq!((&report["passed"], &report["failed"]), (&passed.into(), &0.into()), "{report}");
    }
    folder("program", &CASES.replace("hello\"}", "bye\"}"));
    let failed =
        place.typed(&["test", "--component", "program.wasm", "--as", "command", "program"]);
    assert!(failed.status == 1 && failed.stdout.contains("FAILED   program: writes"), "{failed}");
    for (words, status, needle) in [
        (&["--component", "program.wasm", "program"][..], 1, "hint: use it as it is: "),
        (
            &["--component", "math.wasm", "--as", "command", "math"],
            1,
            "does not export `wasi:cli/run@0.2`",
        ),
        (&["--as", "command", "program"], 2, "--component"),
    ] {
        let refused = place.typed(&[&["test"], words].concat());
        assert!(
            refused.status == status && refused.stderr.contains(needle),
            "{words:?}: {refused}"
        );
    }
}

#[test]
fn python_exception_hides_cpython_functions() {
    let place = Place::new("");
    for (module, has_functions) in [("libpython3.14.so", false), ("tool", true)] {
        let text = format!(
            r#"(module ${module} (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1) (data (i32.const 64) "ValueError: no such city\n    at find (tool.py:7)\n")
            (func $PyRun_Main (export "_start")
              (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 49))
              (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 16)))
              unreachable))"#
        );
        fs::write(place.path().join("tool.wasm"), toolcell_test_guests::module(&text))
            .expect("a file");
        let shown = place.typed(&["run", "--as", "command", "tool.wasm", "{}"]);
        assert!(shown.status == 20 && shown.stderr.contains("    at find (tool.py:7)"), "{shown}");
        assert_eq!(shown.stderr.contains("PyRun_Main"), has_functions, "{shown}");
    }
}

#[test]
fn component_kind_is_part_of_approval() {
    let named = |words: &[&'static str]| [&["--config", "toolcell.toml"], words].concat();
    let place = place(CONFIG);
    let approved = place.typed(&named(&["approve", "--yes"]));
    assert_eq!(approved.status, 0, "{approved}");
    let lock = fs::read_to_string(place.path().join("toolcell.lock")).unwrap();
    assert!(lock.contains("as = \"functions\"\n") && lock.contains("as = \"command {"), "{lock}");
    let listed = place.typed(&named(&["list"]));
    check("list_existing", &listed);
    for (words, stdout) in [
        (&["run", "math", "pair:={\"a\": 1, \"b\": 2}"][..], "3\n"),
        (&["run", "writer", "text=x y"], "<x y>\n"),
        (&["tools", "writer", "--format", "openai"], ""),
    ] {
        let shown = place.typed(&named(words));
        assert_eq!(shown.status, 0, "{shown}");
        assert!(shown.stdout.contains(stdout), "{shown}");
    }
    // The definitions stay equal: only the setting differs.
    for (from, to, needle) in [
        ("stdin = \"empty\"", "stdin = \"empty\", output = \"json\"", "→ command {\"argv\""),
        ("as = \"functions\"", "as = \"command\"", "does not export `wasi:cli/run@0.2`"),
        ("as = \"functions\"\n", "", "does not export `toolcell:tool/tool`"),
    ] {
        place.write(&CONFIG.replace(from, to));
        let name = if from.starts_with("as") { "math" } else { "writer" };
        let refused = place.typed(&named(&["run", name, "text=x"]));
        assert_ne!(refused.status, 0, "{to}: {refused}");
        assert!(
            refused.stderr.contains("is not the one that was approved: it was used as"),
            "{to}: {refused}"
        );
        let shown = place.typed(&named(&["approve", name]));
        assert!(shown.to_string().contains(needle), "{to}: {shown}");
    }
}

#[test]
fn invalid_as_and_command_settings_are_errors() {
    let place = Place::new("");
    for (config, needle) in [
        ("as = \"function\"", "`components.x.as`: `function` is not one of its values"),
        (
            "command = {}",
            "[components.x] has a section `command`, and is not used `as = \"command\"`",
        ),
        (
            "as = \"command\"\ncommand = { argv = [\"{stdin}\"] }",
            "is already the argument for standard input",
        ),
        (
            "as = \"command\"\ncommand = { output = \"yaml\" }",
            "`components.x.command.output`: `yaml` is not one of its values",
        ),
        (
            "as = \"command\"\ncommand = { media_type = \"image/png\" }",
            "`media_type` is of an output of bytes",
        ),
    ] {
        place.write(&format!("[components.x]\npath = \"hello.wasm\"\n{config}\n"));
        let shown = place.typed(&["check"]);
        assert_eq!(shown.status, 1, "{config}: {shown}");
        assert!(
            shown.stderr.contains(needle) && shown.stderr.contains("hint: "),
            "{config}: {shown}"
        );
    }
}
