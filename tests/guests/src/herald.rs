//! A component that emits one text through every channel that a tool has.

use crate::answer::Answer;
use crate::hostile::{Hostile, spliced};

/// Address of the text: below the data of the guest that it is put into.
const AT: usize = 256;
/// Bytes of the text, at most.
const MOST: usize = 512;

/// Returns a component whose tool `herald` logs this text, reports it as progress, asks for a
/// secret and a key of that name, and then gives `answer`. Everything else is as in `told`.
pub fn herald(text: &str, told: Hostile, answer: Answer) -> Vec<u8> {
    assert!(text.len() <= MOST, "a short text");
    let data: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let imports = format!(
        r#"
  (import "toolcell:tool/log@0.1.0" "log" (func $say (param i32 i32 i32)))
  (import "toolcell:tool/progress@0.1.0" "report" (func $report (param i64 i32 i64 i32 i32 i32)))
  (import "toolcell:tool/secrets@0.1.0" "get" (func $get (param i32 i32 i32)))
  (import "toolcell:tool/kv@0.1.0" "get" (func $key (param i32 i32 i32)))
  (data (i32.const {AT}) "{data}")"#
    );
    let length = text.len();
    let code = format!(
        "(call $say (i32.const 4) (i32.const {AT}) (i32.const {length}))
    (call $report (i64.const 1) (i32.const 0) (i64.const 0) (i32.const 1) (i32.const {AT}) (i32.const {length}))
    (call $get (i32.const {AT}) (i32.const {length}) (i32.const 0))
    (call $key (i32.const {AT}) (i32.const {length}) (i32.const 0))"
    );
    let world = "import toolcell:tool/secrets@0.1.0; import toolcell:tool/kv@0.1.0;";
    spliced(&Hostile { name: "herald", answer, ..told }, &imports, &code, world)
}
