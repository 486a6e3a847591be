//! `toolcell batch`: lists of calls in every form, the output, and the end of a run.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};
use toolcell_test_guests::{Hostile, Misdeed, Place};

use crate::typed::{CommandResult, check, command, example, fed, typed};

const SUM: &str = r#"{"id": "sum", "name": "calculator", "arguments": {"expression": "6 * 7"}}"#;
const GREET: &str = r#"{"name": "greet", "arguments": "{\"name\": \"Ada\"}"}"#;
/// Fails: it has no arguments.
const UNNAMED: &str = r#"{"id": "unnamed", "name": "greet"}"#;
const ASK: &str = r#"{"id": "ask", "name": "book_table", "arguments": {"date": "2026-03-03"}}"#;
const PLAN: &str = r#"{"id": "plan", "name": "submit_plan", "arguments": {"goal": "Ship", "steps": [{"id": "a", "title": "A"}]}}"#;

/// Runs a batch of calls, one a line, with all the tools that they name.
fn batch(calls: &[&str], words: &[&str]) -> CommandResult {
    let head = ["batch", "calculator.wasm", "hello.wasm", "desk.wasm", "--calls", "-"];
    fed(&[&head, words].concat(), calls.join("\n").as_bytes())
}

fn lines(shown: &CommandResult) -> Vec<Value> {
    shown
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{shown}")))
        .collect()
}

#[test]
fn array_and_lines_give_messages_in_call_order() {
    let array = format!("[{SUM}, {GREET},\n {UNNAMED}]");
    let openai =
        GREET.replacen('{', r#"{"id": "call-2", "type": "function", "function": {"#, 1) + "}";
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("\u{feff}{array}\n")).unwrap();
    let path = file.path().to_str().unwrap();
    let expected = batch(&[&array], &[]);
    check("batch", &expected);
    for shown in [
        batch(&[SUM, "", GREET, UNNAMED, ""], &["--quiet"]),
        batch(&[SUM, &openai, UNNAMED], &["--quiet"]),
        batch(&[&array], &["--quiet", "--max-concurrency", "1", "--timeout", "5s"]),
        typed(&["batch", "--quiet", "--calls", path, "hello.wasm", "calculator.wasm"]),
    ] {
        assert_eq!(
            (shown.status, shown.stdout, shown.stderr),
            (0, expected.stdout.clone(), String::new())
        );
    }
    for nothing in ["", "\n\n", "[]", " [ ]\n"] {
        let shown = batch(&[nothing], &[]);
        assert_eq!((shown.status, shown.stdout.as_str()), (0, "{\"messages\":[]}\n"), "{shown}");
        let shown = batch(&[nothing], &["--stream"]);
        let finished = "{\"type\":\"run_finished\",\"calls\":0,\"failed\":0}\n";
        assert_eq!((shown.status, shown.stdout.as_str()), (0, finished), "{shown}");
    }
}

#[test]
fn halted_batch_names_reason_and_ends_every_call() {
    type Row<'a> = (&'a [&'a str], &'a str, i32, &'a str, &'a str);
    let table: [Row<'_>; 7] = [
        (&[SUM, UNNAMED], "continue", 0, "", ""),
        (&[SUM], "halt", 0, "", ""),
        (&[SUM, ASK, GREET], "continue", 11, "ask_user", "ask"),
        (&[PLAN, SUM, ASK], "continue", 12, "plan_submitted", "plan"),
        (&[SUM, UNNAMED, PLAN], "halt", 20, "tool_error", "unnamed"),
        (&[UNNAMED, SUM, PLAN], "continue", 12, "plan_submitted", "plan"),
        (&[ASK, UNNAMED], "halt", 11, "ask_user", "ask"),
    ];
    for (calls, policy, status, reason, id) in table {
        let shown = batch(calls, &["--on-tool-error", policy]);
        let printed = shown.json();
        assert_eq!((shown.status, shown.stderr.lines().count()), (status, 1), "{shown}");
        let told = format!(
            "summary: {}: ",
            if calls.len() == 1 { "1 call".into() } else { format!("{} calls", calls.len()) }
        );
        assert!(shown.stderr.starts_with(&told) && shown.stderr.contains("; p50 "), "{shown}");
        assert_eq!(printed["messages"].as_array().map(Vec::len), Some(calls.len()), "{shown}");
        assert_eq!(printed.get("halt").is_some(), status != 0, "{shown}");

        let stream = batch(calls, &["--on-tool-error", policy, "--stream"]);
        let mut events = lines(&stream);
        let last = events.pop().expect("a last line");
        assert_eq!((stream.status, events.len()), (status, 3 * calls.len()), "{stream}");
        assert_eq!(
            last["type"],
            if status == 0 { "run_finished" } else { "run_halted" },
            "{stream}"
        );
        if status == 0 {
            let failed = calls.iter().filter(|call| **call == UNNAMED).count();
            assert_eq!(
                (&last["calls"], &last["failed"]),
                (&json!(calls.len()), &json!(failed)),
                "{stream}"
            );
        } else {
            let member = if status == 11 { "pending_tool_call_id" } else { "halt_tool_call_id" };
            for halt in [&printed["halt"], &last["halt"]] {
                assert_eq!(
                    (&halt["halted_reason"], &halt[member]),
                    (&json!(reason), &json!(id)),
                    "{shown}"
                );
            }
        }
    }
    let asked = &batch(&[ASK], &[]).json()["halt"];
    assert!(asked["ask_user_opts"].is_array(), "{asked}");
    assert!(asked["state"].as_str().is_some_and(|state| state.starts_with("tc2.")), "{asked}");
}

#[test]
fn stream_orders_the_events_of_each_call() {
    let shown = batch(&[SUM, UNNAMED], &["--stream", "--max-concurrency", "1"]);
    let told: Vec<_> = lines(&shown)
        .iter()
        .map(|event| {
            format!(
                "{} {}",
                event["type"].as_str().unwrap(),
                event["id"].as_str().unwrap_or_default()
            )
        })
        .collect();
    let of = |id: &str| {
        ["tool_execution_started", "tool_execution_completed", "tool_result_encoded"]
            .map(|kind| format!("{kind} {id}"))
    };
    let last = ["run_finished ".to_owned()];
    assert_eq!(told, [&of("sum")[..], &of("unnamed"), &last].concat(), "{shown}");
    let call = r#"{"name": "services", "arguments": {}}"#;
    let shown = fed(&["batch", "mischief.wasm", "--calls", "-", "--stream"], call.as_bytes());
    assert!(
        lines(&shown).iter().any(|event| event["type"] == "tool_log" && event["id"] == "call-1"),
        "{shown}"
    );
    let agui = batch(&[SUM, PLAN], &["--stream", "--format", "agui"]);
    let results = lines(&agui).iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").count();
    assert_eq!((agui.status, results), (12, 2), "{agui}");
    let last = lines(&agui).pop().unwrap();
    assert_eq!(
        (&last["name"], &last["value"]["halt"]["halt_tool_call_id"]),
        (&json!("run_halted"), &json!("plan"))
    );
}

#[test]
fn batch_prints_messages_in_provider_form() {
    for (format, pointer, expected) in [
        ("messages", "/messages/0/tool_call_id", "sum"),
        ("openai", "/messages/0/tool_call_id", "sum"),
        ("openai-responses", "/messages/0/call_id", "sum"),
        ("anthropic", "/messages/0/content/0/tool_use_id", "sum"),
        ("gemini", "/messages/0/parts/0/functionResponse/id", "sum"),
        ("mcp", "/messages/0/content/0/text", "42"),
        ("agui", "/messages/0/toolCallId", "sum"),
    ] {
        let shown = batch(&[SUM, PLAN], &["--format", format]);
        let printed = shown.json();
        assert_eq!(
            (shown.status, printed.pointer(pointer)),
            (12, Some(&json!(expected))),
            "{shown}"
        );
        assert_eq!(printed["halt"]["halted_reason"], "plan_submitted", "{shown}");
        let stream = batch(&[SUM], &["--format", format, "--stream"]);
        let has_events = ["messages", "agui"].contains(&format);
        assert_eq!(stream.status, if has_events { 0 } else { 2 }, "{stream}");
        assert_eq!(stream.stderr.contains("hint: leave out `--stream`"), !has_events, "{stream}");
    }
}

#[test]
fn batch_runs_nothing_if_call_list_is_invalid() {
    let long = format!("[{SUM}, {{\"{}\": 1}}]", "x".repeat(100_000));
    let table: [(&[&str], i32, &str, &str); 8] = [
        (&[SUM, SUM], 1, "two calls have the id `sum`", "its own id"),
        (&[SUM, r#"{"name": "gret"}"#], 1, "there is no tool `gret`", "did you mean `greet`?"),
        (
            &[SUM, "", "{\"name\""],
            1,
            "standard input: line 3 column 7: EOF",
            "write a JSON array of calls",
        ),
        (
            &["[", SUM, ",", "5]"],
            1,
            "standard input: call 2, line 4 column 1: invalid type",
            "one call a line",
        ),
        (
            &[SUM, r#"{"name": "greet", "args": {}}"#],
            1,
            "unknown field `args`",
            "\"arguments\": {}",
        ),
        (&[SUM, "{}"], 1, "line 2: missing field `name`", "\"name\": \"greet\""),
        (&[SUM, "nonsense"], 1, "line 2 column 2", "write a JSON array"),
        (&[&long], 1, "call 2, line 1", "write a JSON array"),
    ];
    for (calls, status, message, hint) in table {
        let shown = batch(calls, &[]);
        assert_eq!((shown.status, shown.stdout.as_str()), (status, ""), "{shown}");
        assert!(shown.stderr.contains(message) && shown.stderr.len() < 1000, "{shown}");
        let last = shown.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("hint: ") && last.contains(hint), "{shown}");
        let told = batch(calls, &["--json"]);
        assert!(told.json()["error"]["message"].as_str().unwrap().contains(message), "{told}");
        for (form, kind) in [("messages", "error"), ("agui", "RUN_ERROR")] {
            let event = batch(calls, &["--stream", "--format", form]);
            assert_eq!((event.status, event.stdout.lines().count()), (status, 1), "{event}");
            assert_eq!(event.json()["type"], *kind, "{event}");
            assert!(event.json()["message"].as_str().unwrap().contains(message), "{event}");
        }
    }
    // A run that was read and cannot start is one event.
    for (calls, reason) in
        [(&[SUM, SUM][..], "duplicate_call_id"), (&[r#"{"name": "gret"}"#], "unknown_tool")]
    {
        let shown = batch(calls, &["--stream"]);
        assert_eq!((shown.status, shown.stderr.contains("\nhint: ")), (1, true), "{shown}");
        assert_eq!(
            (&shown.json()["type"], &shown.json()["reason"]),
            (&json!("error"), &json!(reason)),
            "{shown}"
        );
    }
    let binary = fed(&["batch", "hello.wasm", "--calls", "-"], b"{\"name\": \"\xff\"}");
    assert!(
        binary.status == 1 && binary.stderr.contains("standard input is not UTF-8 text"),
        "{binary}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len((256 << 20) + 1).unwrap();
    let huge = typed(&["batch", "hello.wasm", "--calls", file.path().to_str().unwrap()]);
    assert!(
        huge.status == 1
            && huge.stderr.contains("too large for a list of calls: the limit is 256MiB"),
        "{huge}"
    );
    let none = typed(&["batch", "hello.wasm", "--calls", "no such file"]);
    assert!(none.status == 1 && none.stderr.contains("`no such file` does not exist"), "{none}");
    let none = typed(&["batch", "nothing", "--calls", "-", "--stream"]);
    assert_eq!((none.status, &none.json()["type"]), (2, &json!("error")), "{none}");
}

#[test]
fn usage_error_exits_2_with_hint() {
    for (words, message) in [
        (&["batch", "hello.wasm"][..], "--calls <FILE>"),
        (&["batch", "--calls", "-"], "there is no `toolcell.toml` in this directory or above it"),
        (
            &["batch", "hello.wasm", "--calls", "-", "--calls-format", "open-ai"],
            "a similar value exists: 'openai'",
        ),
        (
            &["batch", "hello.wasm", "--calls", "-", "--max-concurrency", "0"],
            "write a whole number from 1 to 4000",
        ),
        (
            &["batch", "hello.wasm", "--calls", "-", "--format", "open-ai"],
            "a similar value exists: 'openai'",
        ),
        (
            &["batch", "hello.wasm", "--calls", "-", "--on-tool-error", "stop"],
            "[possible values: continue, halt]",
        ),
        (
            &["batch", "hello.wasm", "--calls", "-", "--context", r#"{"resume": {"answer": 1}}"#],
            "a batch cannot answer a question",
        ),
        (&["tools"], "there is no `toolcell.toml` in this directory or above it"),
        (&["list"], "there is no `toolcell.toml` in this directory or above it"),
    ] {
        let shown = typed(words);
        assert_eq!((shown.status, shown.stdout.as_str()), (2, ""), "{shown}");
        assert!(shown.stderr.contains(message) && shown.stderr.contains("\nhint: "), "{shown}");
    }
}

#[test]
fn same_tool_in_two_components_is_an_error() {
    let copy = tempfile::NamedTempFile::new().unwrap();
    fs::copy(example("hello"), copy.path()).unwrap();
    let copy = copy.path().to_str().unwrap();
    let hello = example("hello").display().to_string();
    for words in [&["batch", "--calls", "-"][..], &["tools"]] {
        for (components, message) in [
            (
                ["hello.wasm", copy],
                format!("error: `{hello}` and `{copy}` both offer a tool `greet`"),
            ),
            (["hello.wasm", "hello.wasm"], format!("error: `{hello}` is named twice")),
            (["hello.wasm", "no such file"], "error: `no such file` does not exist".to_owned()),
        ] {
            let shown = typed(&[words, &components].concat());
            assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{shown}");
            assert!(
                shown.stderr.contains(&message) && shown.stderr.contains("\nhint: "),
                "{shown}"
            );
        }
    }
}

#[test]
fn each_call_has_its_own_limits() {
    let spin = r#"{"name": "jq", "arguments": {"filter": "last(range(1e9))", "input": 1}}"#;
    let calls = [spin, SUM, spin].join("\n");
    let head = ["batch", "jq.wasm", "calculator.wasm", "--calls", "-"];
    for (limit, value) in [("--timeout", "1s"), ("--fuel", "10M")] {
        let shown =
            fed(&[&head[..], &[limit, value, "--max-concurrency", "3"]].concat(), calls.as_bytes());
        let ends = shown.json();
        let failed: Vec<_> =
            ends["messages"].as_array().unwrap().iter().map(|said| &said["is_error"]).collect();
        assert_eq!(
            (shown.status, failed),
            (0, vec![&json!(true), &Value::Null, &json!(true)]),
            "{shown}"
        );
    }
}

#[test]
fn batch_answers_500_calls_in_order() {
    let calls: Vec<_> = (0..500)
        .map(|n| format!(r#"{{"name": "calculator", "arguments": {{"expression": "{n} + 1"}}}}"#))
        .collect();
    let calls: Vec<_> = calls.iter().map(String::as_str).collect();
    let shown = batch(&calls, &[]);
    let messages = shown.json()["messages"].as_array().unwrap().clone();
    assert_eq!((shown.status, messages.len()), (0, 500));
    for (n, message) in messages.iter().enumerate() {
        let expected = (format!("call-{}", n + 1), (n + 1).to_string());
        assert_eq!(
            (&message["tool_call_id"], &message["content"]),
            (&json!(expected.0), &json!(expected.1))
        );
    }
    assert_eq!(lines(&batch(&calls, &["--stream"])).len(), 1501);
}

#[test]
fn closed_output_pipe_ends_batch() {
    let mut child = command()
        .args(["batch", "--stream", "--max-concurrency", "1", "--calls", "-"])
        .arg(example("calculator"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // More than a pipe holds, so that the run cannot end before the closed reader is noticed.
    let calls = format!("{SUM}\n{}", "{\"name\": \"calculator\"}\n".repeat(5000));
    child.stdin.take().expect("piped").write_all(calls.as_bytes()).expect("it reads");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut first).expect("a line");
    assert!(first.contains("tool_execution_started"), "{first}");
    let output = child.wait_with_output().expect("the binary ends");
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (Some(0), "")
    );
}

#[test]
fn question_without_state_dir_cannot_be_resumed() {
    let run = |call: &str| {
        let mut command = command();
        command.env_remove("XDG_STATE_HOME").args(["batch", "--calls", "-"]).arg(example("desk"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        child.stdin.take().expect("piped").write_all(call.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (status, _, stderr) = run(PLAN);
    assert!(status == Some(12) && stderr.starts_with("summary: 1 call: 1 halt; p50 "), "{stderr}");
    let (status, stdout, stderr) = run(ASK);
    assert!(status == Some(11) && stdout.contains(r#""state":"tc2."#), "{stdout}");
    assert!(
        stderr.contains("this run's questions cannot be answered later")
            && stderr.contains("`--state-dir DIR`")
    );
}

#[test]
fn tools_prints_definitions_in_every_format() {
    for (format, pointer) in [
        ("json", "/1/name"),
        ("openai", "/1/function/name"),
        ("openai-responses", "/1/name"),
        ("anthropic", "/1/name"),
        ("gemini", "/0/functionDeclarations/1/name"),
        ("mcp", "/1/name"),
        ("agui", "/1/name"),
    ] {
        let shown = typed(&["tools", "calculator.wasm", "hello.wasm", "--format", format]);
        assert_eq!(
            (shown.status, shown.json().pointer(pointer)),
            (0, Some(&json!("greet"))),
            "{shown}"
        );
        let is_note = |line: &str| {
            ["calculator", "greet"]
                .iter()
                .any(|tool| line.starts_with(&format!("note: `{tool}` at `/")))
        };
        assert!(shown.stderr.lines().all(is_note), "{shown}");
        // Only our own form can express a result that is a number.
        assert_eq!(shown.stderr.is_empty(), format == "json", "{shown}");
    }
    check("tools", &typed(&["tools", "hello.wasm"]));
    check("tools_anthropic", &typed(&["tools", "calculator.wasm", "--format", "anthropic"]));
}

/// Kept and lost bytes add up to all bytes, also without `--stream`.
#[test]
fn lost_log_bytes_are_counted_and_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), Hostile::new(Place::Execute, Misdeed::Chatter).component()).unwrap();
    let path = file.path().to_str().unwrap();
    let usage = &typed(&["run", path, "hostile", "--json"]).json()["usage"];
    let count = |name: &str| usage[name].as_u64().expect("a count");
    // Eight letters and an end of line for each call except the last, which exceeds the limit of
    // calls.
    assert_eq!(
        count("log_bytes") + count("log_bytes_dropped"),
        9 * (count("host_calls") - 1),
        "{usage}"
    );
    assert!(count("log_bytes_dropped") > 0, "{usage}");
    let twice = "{\"name\": \"hostile\"}\n".repeat(2);
    for format in ["messages", "openai"] {
        let shown = fed(&["batch", path, "--calls", "-", "--format", format], twice.as_bytes());
        for count in ["log_bytes", "log_bytes_dropped"] {
            assert_eq!(
                shown.json()[count].as_u64(),
                usage[count].as_u64().map(|one| 2 * one),
                "{count}: {shown}"
            );
        }
        let is_told =
            |line: &str| line.starts_with("warning: ") && line.contains("exceeded their limits");
        assert_eq!(shown.stderr.lines().filter(|line| is_told(line)).count(), 1, "{shown}");
    }
    let stream =
        fed(&["batch", path, "--calls", "-", "--stream", "--format", "agui"], twice.as_bytes());
    assert!(stream.stderr.contains("exceeded their limits"), "{}", stream.stderr);
}

/// An untrusted tool that hides itself: `run` prints a hint.
#[test]
fn every_refusal_has_a_hint() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut hidden = Hostile::new(Place::Execute, Misdeed::Abort);
    hidden.visible = false;
    fs::write(file.path(), hidden.component()).unwrap();
    let shown = typed(&["run", file.path().to_str().unwrap(), "hostile", "{}"]);
    assert_eq!(shown.status, 21, "{shown}");
    assert!(
        shown
            .stderr
            .contains("  reason: not_visible\nhint: call another tool: this one is not offered"),
        "{shown}"
    );
}
