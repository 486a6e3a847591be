//! A component that says one text wherever a tool can say something.

use crate::answer::Answer;
use crate::assemble;
use crate::hostile::Hostile;

/// Where the text lies: below the data of the guest that it is put into.
const AT: usize = 256;
/// Its bytes at most.
const MOST: usize = 512;

/// A component whose tool `herald` logs this text, reports it as progress, asks for a secret and a
/// key of that name, and then answers like this. Its description and what it declares say the text
/// too, where they are given.
///
/// # Panics
/// When the text is longer than 512 bytes, or this crate's own text does not assemble.
#[must_use]
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
    let execute = r#"#execute") (param i32) (result i32)"#;
    let text = Hostile { name: "herald", answer, ..told }.text();
    let text = text.replacen(execute, &format!("{execute} {code}"), 1);
    let text = text.replacen("(module", &format!("(module{imports}"), 1);
    assemble::component(
        &text,
        "import toolcell:tool/secrets@0.1.0; import toolcell:tool/kv@0.1.0;",
        &[],
    )
}
