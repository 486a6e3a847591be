//! `toolcell run`: every end of a call, as text and as JSON.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcell_test_guests::{Hostile, Misdeed, Place};

use crate::typed::{CommandResult, check, command, example, fed, typed};

/// One call for each exit status: name, status, and the words after `run`.
const ENDINGS: [(&str, i32, &[&str]); 12] = [
    ("ok_text", 0, &["hello.wasm", "greet", r#"{"name": "Ada"}"#, "--usage"]),
    ("ok_json", 0, &["calculator.wasm", "calculator", r#"{"expression": "6 * 7"}"#]),
    (
        "ok_message",
        0,
        &[
            "desk.wasm",
            "book_table",
            r#"{"name":"Ada","party_size":2,"date":"2026-03-03","time":"19:30"}"#,
        ],
    ),
    ("handler_error", 10, &["calculator.wasm", "calculator", r#"{"expression": "1/0"}"#]),
    ("ask_user", 11, &["desk.wasm", "book_table", r#"{"date": "2026-03-03"}"#, "--timeout", "5s"]),
    (
        "halt",
        12,
        &["desk.wasm", "submit_plan", r#"{"goal": "Ship", "steps": [{"id": "a", "title": "A"}]}"#],
    ),
    (
        "out_of_fuel",
        20,
        &["calculator.wasm", "calculator", r#"{"expression": "1"}"#, "--fuel", "1000"],
    ),
    ("out_of_memory", 20, &["hello.wasm", "greet", r#"{"name": "Ada"}"#, "--memory", "64KiB"]),
    (
        "out_of_time",
        20,
        &["jq.wasm", "jq", r#"{"filter":"last(range(1e9))","input":1}"#, "--timeout", "100ms"],
    ),
    ("invalid_arguments", 21, &["calculator.wasm", "calculator", r#"{"expresion": "1"}"#]),
    ("no_arguments", 21, &["hello.wasm", "greet"]),
    (
        "forgotten_at",
        21,
        &["hello.wasm", "greet", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")],
    ),
];

#[test]
fn run_shows_every_outcome_as_text() {
    for (name, status, words) in ENDINGS {
        let shown = typed(&[&["run"], words].concat());
        assert_eq!(shown.status, status, "{name}: {shown}");
        if name != "forgotten_at" {
            check(name, &shown);
        }
    }
}

#[test]
fn run_shows_every_outcome_as_json() {
    for (name, status, words) in ENDINGS {
        let shown = typed(&[&["run", "--json", "--id", "c7"], words].concat());
        assert_eq!(shown.status, status, "{name}: {shown}");
        assert_eq!(shown.stdout.lines().count(), 1, "{name}: {shown}");
        let said = shown.json();
        let (outcome, _) = said["outcome"]
            .as_object()
            .and_then(|outcome| outcome.iter().next())
            .expect("an outcome");
        let expected = match status {
            0 => "ok",
            10 => "error",
            11 => "ask_user",
            12 => "halt",
            20 => "tool_error",
            _ => "refusal",
        };
        assert_eq!(
            (said["id"].as_str(), outcome.as_str()),
            (Some("c7"), expected),
            "{name}: {shown}"
        );
        assert_eq!(said["usage"]["fuel"].is_u64(), status != 21, "{name}: {shown}");
        assert!(said["usage"]["wall_us"].is_u64() && said["tool"].is_string(), "{name}: {shown}");
    }
    check("json", &typed(&["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#, "--json"]));
}

#[test]
fn printed_command_answers_the_question() {
    // Quotes and shell syntax in the repeated words: none of it may be executed.
    let name = "$(exit 3)'; exit 4; '\u{202e}";
    let arguments = json!({ "name": name, "date": "2026-03-03" }).to_string();
    let asked =
        typed(&["run", "desk.wasm", "book_table", &arguments, "--context", r#"{"tenant": "a'b"}"#]);
    assert_eq!(asked.status, 11, "{asked}");
    let shown =
        asked.stderr.lines().find(|line| line.ends_with(" --answer ANSWER")).expect("a command");
    let pasted = shown.replace("ANSWER", r#"'{"party_size": 2, "time": "19:30"}' --json"#);
    let cache = command();
    let cache: Vec<_> = cache.get_args().map(|word| word.to_string_lossy()).collect();
    let script = format!("{pasted} {}", cache.join(" "));
    let mut shell = std::process::Command::new("sh");
    shell.envs(command().get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.arg("-c").arg(&script).output().expect("a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = CommandResult {
        status: output.status.code().expect("no signal"),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    };
    assert_eq!(shown.status, 0, "{script}\n{shown}");
    let booking = &shown.json()["outcome"]["ok"]["value"]["booking"];
    assert_eq!((&booking["party_size"], &booking["name"]), (&json!(2), &json!(name)), "{shown}");
}

#[test]
fn arguments_come_from_word_file_or_stdin() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("with a space.json");
    std::fs::write(&file, "\u{feff}{\"name\": \"File\"}\n").unwrap();
    let at = format!("@{}", file.display());
    for (arguments, input, expected) in [
        (at.as_str(), "", "Hello, File!\n"),
        ("-", "{\"name\":\n\"Input\"}\n", "Hello, Input!\n"),
        (r#"{"name": "Word"}"#, "", "Hello, Word!\n"),
    ] {
        let shown = fed(&["run", "hello.wasm", "greet", arguments], input.as_bytes());
        assert_eq!((shown.status, shown.stdout.as_str()), (0, expected), "{shown}");
    }
}

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
fn run_shows_tool_logs_and_failure_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("guest.wasm");
    for (misdeed, status, on_stderr) in [
        (
            Misdeed::Chatter,
            20,
            &[
                "tool log info: chatter!",
                "the tool's log exceeded its limit",
                "calls into the host",
            ][..],
        ),
        (
            Misdeed::Abort,
            20,
            &["error: the tool aborted", "reason: handler_raised: unreachable", "tell its author"],
        ),
        (
            Misdeed::Exit,
            20,
            &["error: the tool called `exit` with success", "reason: handler_exit: exited, code 0"],
        ),
        (Misdeed::Hoard, 20, &["raise `--memory` (now 64MiB)"]),
        (Misdeed::Sleep, 20, &["reason: timeout: blocked", "raise `--timeout` (now 100ms)"]),
    ] {
        std::fs::write(&path, Hostile::new(Place::Execute, misdeed).component()).unwrap();
        let timeout = if misdeed == Misdeed::Sleep { "100ms" } else { "30s" };
        let shown = typed(&["run", path.to_str().unwrap(), "hostile", "{}", "--timeout", timeout]);
        assert_eq!((shown.status, shown.stdout.as_str()), (status, ""), "{shown}");
        for part in on_stderr {
            assert!(shown.stderr.contains(part), "{misdeed:?}: no `{part}` in: {shown}");
        }
    }
}

#[test]
fn run_shows_language_runtime_output() {
    for (tool, arguments, status, on_stderr) in [
        (
            "services",
            "{}",
            0,
            &["tool log info: call call-1", "tool progress: 1 of 2, half-way"][..],
        ),
        (
            "panics",
            r#"{"words": "so\u001b[2J\nhint: run `rm`"}"#,
            20,
            &[
                "error: the tool aborted: panicked at ",
                "\n    so?[2J\n    hint: run `rm`\n",
                "hint: a bug in the tool",
            ],
        ),
        (
            "exits",
            r#"{"code": 3}"#,
            20,
            &["WASI tells the host only whether the exit was a success, not its code"],
        ),
        (
            "impatient",
            "{}",
            20,
            &["timeout: blocked", "hint: the tool itself allows no more than 50ms"],
        ),
    ] {
        let shown = typed(&["run", "mischief.wasm", tool, arguments]);
        assert_eq!(shown.status, status, "{shown}");
        for part in on_stderr {
            assert!(shown.stderr.contains(part), "{tool}: no `{part}` in: {shown}");
        }
        assert!(
            !shown.stderr.contains('\u{1b}') && !shown.stderr.contains("\nhint: run"),
            "{shown}"
        );
        // A panic is printed once, without the runtime's advice on backtraces.
        assert!(
            shown.stderr.matches("so?[2J").count() <= 1 && !shown.stderr.contains("RUST_BACKTRACE"),
            "{shown}"
        );
    }
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
    assert_eq!(from_file.status, 21, "{from_file}");
    assert!(from_file.stderr.contains("at most 1048576 bytes, got 100000000"), "{from_file}");
    let from_input = fed(&["run", "hello.wasm", "greet", "-", "--json"], &vec![b' '; 4 << 20]);
    assert_eq!(from_input.status, 21, "{from_input}");
    let fault = &from_input.json()["outcome"]["refusal"]["faults"][0];
    assert_eq!(fault["actual"], "more than 1048576", "{from_input}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// If address space is scarce there is no pool, and each cell is created from scratch: slower, but
/// complete.
#[test]
fn scarce_address_space_disables_pool() {
    let script = "ulimit -v 9000000; exec \"$0\" inspect \"$1\" --json --no-cache";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_toolcell")])
        .arg(crate::typed::example("hello"))
        .output()
        .expect("a shell");
    let shown = String::from_utf8_lossy(&output.stdout);
    let inspected: serde_json::Value =
        serde_json::from_str(&shown).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(inspected["pooled"], false, "{shown}");
}

/// The pool is half of what fits, and the message names the setting.
#[test]
fn limited_address_space_shrinks_pool_with_hint() {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("toolcell.toml");
    std::fs::write(&config, "").unwrap();
    let script = "ulimit -v 200000000; exec \"$0\" serve --check --no-cache --config \"$1\" --state-dir \"$2\"";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_toolcell")])
        .args([&config, place.path()])
        .output()
        .expect("a shell");
    let told = String::from_utf8_lossy(&output.stderr);
    let expected =
        "for a pool of 64 cells: it has 4, and further calls wait; set the number of cells";
    assert!(
        told.contains(expected) && told.contains("`toolcell serve --max-cells 4`"),
        "{output:?}"
    );
}
