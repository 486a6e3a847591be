//! Components that describe no tools.

use std::fs;

use toolcell_test_guests::functions_component;

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
