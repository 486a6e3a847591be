//! The message for an exception that a tool does not catch: its text, and the author's file and
//! line.

use std::fs;

use crate::place::Place;

const TOOL: &str = r#"import { tool } from "toolcell";

function inner(kind) {
  if (kind === "error") throw new RangeError("too many");
  if (kind === "text") throw "only text";
  if (kind === "object") throw { code: 7 };
  const city = null;
  return city.name;
}

tool({
  name: "throws",
  description: "Throws.",
  parameters: { type: "object", properties: { kind: { type: "string" } }, required: ["kind"] },
  handler: async ({ kind }) => {
    if (kind === "awaited") await Promise.reject(new TypeError("in vain"));
    if (kind === "unhandled") Promise.reject(new TypeError("not awaited"));
    return kind === "unhandled" ? 1 : inner(kind);
  },
});
"#;

/// Returns the expected standard error of a call, after these lines of the tool.
fn expected(lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("tool stderr: {line}\n")).collect();
    format!(
        "{lines}error: the tool aborted\n  reason: handler_raised\nhint: a bug in the tool: tell its author\n"
    )
}

#[test]
fn exception_shows_message_and_author_lines() {
    let place = Place::new("");
    fs::write(place.path().join("throws.js"), TOOL).expect("a file");
    assert_eq!(place.typed(&["build", "throws.js"]).status, 0);
    for (kind, lines) in [
        (
            "error",
            &[
                "RangeError: too many",
                "    at inner (throws.js:4:35)",
                "    at handler (throws.js:18:45)",
            ][..],
        ),
        ("text", &["a value that is not an Error was thrown: only text"]),
        ("object", &["a value that is not an Error was thrown: {\"code\":7}"]),
        (
            "other",
            &[
                "TypeError: cannot read property 'name' of null",
                "    at inner (throws.js:8:10)",
                "    at handler (throws.js:18:45)",
            ],
        ),
        ("awaited", &["TypeError: in vain", "    at handler (throws.js:16:54)"]),
        (
            "unhandled",
            &[
                "a promise was rejected, and nothing handles it: TypeError: not awaited",
                "    at handler (throws.js:17:50)",
            ],
        ),
    ] {
        let shown = place.typed(&["run", "./throws.wasm", &format!("kind={kind}")]);
        assert_eq!((shown.status, shown.stdout.as_str()), (20, ""), "{kind}: {shown}");
        // The first call also prints the note about the compilation.
        let told = shown.stderr.lines().filter(|line| !line.starts_with("note: compiling"));
        assert_eq!(told.collect::<Vec<_>>().join("\n") + "\n", expected(lines), "{kind}");
    }
    // The SDK for Python ends a tool in this way: it writes the author's lines, and the interpreter
    // aborts.
    let python = r#"(module $libpython3.14.so
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 64) "ZeroDivisionError: division by zero\n    at share (tool.py:7)\n    at handler (tool.py:12)\n")
        (func $PyRun_Main (export "_start")
          (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 89))
          (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 16)))
          unreachable))"#;
    fs::write(place.path().join("python.wasm"), toolcell_test_guests::module(python))
        .expect("a file");
    let shown = place.typed(&["run", "--as", "command", "python.wasm", "{}"]);
    let lines = [
        "ZeroDivisionError: division by zero",
        "    at share (tool.py:7)",
        "    at handler (tool.py:12)",
    ];
    assert_eq!((shown.status, shown.stderr), (20, expected(&lines)));
}
