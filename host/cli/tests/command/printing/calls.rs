//! `toolcell run`: control characters, closed pipes and huge arguments.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::typed::{command, example, fed, typed};

/// Characters that a terminal executes or that are invisible, among them the joiners of emoji and
/// Persian.
const BAD: &str =
    "\u{1b}[2J\u{9b}31m\u{7}\r\u{8}\u{202e}\u{2066}\u{200b}\u{200c}\u{200d}\u{e0041}\u{7f}";

fn is_bad(text: &str) -> bool {
    text.chars().any(|c| BAD.contains(c) && !c.is_ascii_graphic())
}

#[test]
fn only_piped_text_result_is_printed_unescaped() {
    let name = json!({ "name": format!("A{BAD}B") }).to_string();
    let calls: [&[&str]; 5] = [
        &["hello.wasm", "greet", &name],
        &["jq.wasm", "jq", &json!({ "filter": ".", "input": { BAD: BAD } }).to_string()],
        &["jq.wasm", "jq", &json!({ "filter": "error(.)", "input": BAD }).to_string()],
        &["calculator.wasm", "calculator", &json!({ BAD: 1 }).to_string()],
        &["calculator.wasm", &format!("calculator{BAD}")],
    ];
    for call in calls {
        let is_text = call[0] == "hello.wasm";
        let shown = typed(&[&["run"], call].concat());
        assert!(
            is_bad(&shown.stdout) == is_text && !is_bad(&shown.stderr),
            "{}",
            shown.to_string().escape_debug()
        );
        let shown = typed(&[&["run"], call, &["--json"]].concat());
        assert!(
            !is_bad(&shown.stdout) && !is_bad(&shown.stderr),
            "{}",
            shown.to_string().escape_debug()
        );
        shown.json();
    }
    let shown = typed(&["run", "hello.wasm", "greet", &name]);
    assert_eq!((shown.stdout, shown.stderr), (format!("Hello, A{BAD}B!\n"), String::new()));
    let exact = typed(&["run", "hello.wasm", "greet", &name, "--json"]).json();
    assert_eq!(
        exact["outcome"]["ok"]["value"],
        json!(format!("Hello, A{BAD}B!")),
        "the value itself is kept"
    );
}

/// At the terminal of `script`, which every Debian has (package `bsdutils`).
#[test]
fn control_characters_never_reach_the_terminal() {
    // Compiled before: otherwise a spinner is drawn during the compilation.
    assert_eq!(typed(&["inspect", "hello.wasm"]).status, 0);
    let arguments = json!({ "name": format!("A{BAD}B") }).to_string();
    let mut call = command();
    call.arg("run").arg(example("hello")).args(["greet", &arguments]);
    let words = std::iter::once(call.get_program()).chain(call.get_args());
    let quoted =
        words.map(|word| format!("'{}'", word.to_string_lossy())).collect::<Vec<_>>().join(" ");
    let mut script = std::process::Command::new("script");
    script.args(["-q", "-c", &quoted, "/dev/null"]).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = script.output().expect("the command `script`");
    // The terminal's own ends of lines.
    let seen = String::from_utf8(output.stdout).expect("UTF-8").replace("\r\n", "\n");
    let note = "note: left out 12 invisible or control characters; `--json` escapes them";
    assert_eq!(seen, format!("Hello, A[2J31mB!\n{note}\n"), "{}", seen.escape_debug());
}

#[test]
fn closed_output_pipe_is_no_error() {
    for words in [&["run", "--json"][..], &["run"]] {
        let mut child = command()
            .args(words)
            .arg(example("hello"))
            .args(["greet", r#"{"name": "Ada"}"#])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the binary ends");
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (Some(0), "")
        );
    }
}

#[test]
fn huge_arguments_are_refused_at_once_with_size() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(100_000_000).unwrap();
    let started = Instant::now();
    let from_file = typed(&["run", "hello.wasm", "greet", &format!("@{}", file.path().display())]);
    from_file.tells(21, "at most 1048576 bytes, got 100000000");
    let from_input = fed(&["run", "hello.wasm", "greet", "-", "--json"], &vec![b' '; 4 << 20]);
    assert_eq!(from_input.status, 21, "{from_input}");
    let fault = &from_input.json()["outcome"]["refusal"]["faults"][0];
    assert_eq!(fault["actual"], "more than 1048576", "{from_input}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
