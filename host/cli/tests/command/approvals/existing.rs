//! Components that describe no tools.

use std::fs;

use toolcell_test_guests::{command_module, functions_component};

use crate::place::Place;

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
fn component_kind_is_part_of_approval() {
    let place = Place::new(CONFIG);
    fs::write(place.path().join("math.wasm"), math()).expect("a place");
    fs::write(place.path().join("program.wasm"), command_module()).expect("a place");
    place.approve();
    let lock = fs::read_to_string(place.path().join("toolcell.lock")).expect("a lock");
    assert!(lock.contains("as = \"functions\"\n") && lock.contains("as = \"command {"), "{lock}");
    for (words, stdout) in [
        (&["run", "math", "pair:={\"a\": 1, \"b\": 2}"][..], "3\n"),
        (&["run", "writer", "text=x y"], "<x y>\n"),
        (&["tools", "writer", "--format", "openai"], ""),
    ] {
        let shown = place.typed(words);
        assert!(shown.status == 0 && shown.stdout.contains(stdout), "{shown}");
    }
    // The definitions stay equal: only the setting differs.
    for (from, to, needle) in [
        ("stdin = \"empty\"", "stdin = \"empty\", output = \"json\"", "→ command {\"argv\""),
        ("as = \"functions\"", "as = \"command\"", "does not export `wasi:cli/run@0.2`"),
        ("as = \"functions\"\n", "", "does not export `toolcell:tool/tool`"),
    ] {
        place.write(&CONFIG.replace(from, to));
        let name = if from.starts_with("as") { "math" } else { "writer" };
        let refused = place.typed(&["--config", "toolcell.toml", "run", name, "text=x"]);
        assert_ne!(refused.status, 0, "{to}: {refused}");
        assert!(
            refused.stderr.contains("is not the one that was approved: it was used as"),
            "{to}: {refused}"
        );
        let shown = place.typed(&["--config", "toolcell.toml", "approve", name]);
        assert!(shown.to_string().contains(needle), "{to}: {shown}");
    }
}
