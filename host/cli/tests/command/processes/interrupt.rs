//! Ctrl-C and other signals: the output and the remaining files of a command that a signal ends.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{COMPONENTIZE_PY, Place, componentize_py, eventually};

const CONFIG: &str = "[components.clerk]\npath = \"clerk.wasm\"\ngrants = { scratch = true }\n";
/// Steps of a tool that creates a marker file, and ends when it is asked to.
const LISTENS: &str = r#"{"steps": [["make", "/scratch/here"], ["listen"]]}"#;
/// Steps of a tool that never ends, with more files than are removed in one attempt.
const SPINS: &str = r#"{"steps": [["make", "/scratch/a"], ["make", "/scratch/b"], ["make", "/scratch/here"], ["spin"]]}"#;
fn place(config: &str) -> Place {
    let place = Place::new(config);
    fs::create_dir(place.path().join("temp")).expect("a place");
    place.approved()
}

fn temp(place: &Place) -> PathBuf {
    place.path().join("temp")
}

/// Installs handlers with the default action for the signals that these tests send, so that started
/// programs have the default dispositions. An ignored signal would be inherited, for example if
/// these tests run in the background of a script.
pub(crate) fn signals_by_default() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let always = Arc::new(AtomicBool::new(true));
            signal_hook::flag::register_conditional_default(signal.as_raw(), always)
                .expect("a handler");
        }
    });
}

fn started(place: &Place, command: &mut Command, words: &[&str]) -> Child {
    signals_by_default();
    command.env("TMPDIR", temp(place)).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary runs")
}

fn run(place: &Place, steps: &str) -> Child {
    // Like at a terminal: a signal to the process group reaches all of its processes.
    let words = ["run", "clerk", "clerk", steps, "--fuel", "1000G", "--timeout", "5m"];
    started(place, place.command().process_group(0), &words)
}

/// Returns true if a tool has created its marker file.
fn works(below: &Path) -> bool {
    at_work(below) > 0
}

/// Returns the number of tools that have created their marker file.
fn at_work(below: &Path) -> usize {
    let entries = fs::read_dir(below).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .map(|path| if path.ends_with("here") { 1 } else { at_work(&path) })
        .sum()
}

fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it is there");
}

/// Returns the output of an ended command. Checks that no temporary file is left.
fn output_of(place: &Place, child: Child) -> Output {
    let output = child.wait_with_output().expect("it ends");
    let left: Vec<_> = fs::read_dir(temp(place)).expect("it is there").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    output
}

#[test]
fn interrupted_call_ends_by_signal_leaves_no_files() {
    for config in [CONFIG.to_owned(), format!("[host]\nisolation = \"process\"\n{CONFIG}")] {
        let place = place(&config);
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let child = run(&place, SPINS);
            eventually(|| works(&temp(&place)).then_some(()));
            send_signal(&child, signal);
            send_signal(&child, signal);
            let output = output_of(&place, child);
            assert_eq!(output.status.signal(), Some(signal.as_raw()), "{output:?}");
            assert_eq!(output.stdout, b"", "{output:?}");
        }
    }
}

#[test]
fn cooperative_tool_answers_after_interrupt() {
    for config in [CONFIG.to_owned(), format!("[host]\nisolation = \"process\"\n{CONFIG}")] {
        let place = place(&config);
        let child = run(&place, LISTENS);
        eventually(|| works(&temp(&place)).then_some(()));
        // Like at a terminal.
        rustix::process::kill_process_group(Pid::from_child(&child), Signal::INT)
            .expect("it is there");
        let output = output_of(&place, child);
        assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
        assert_eq!(output.stdout, b"[\"done\",\"stopped\"]\n", "{output:?}");
        let told = b"interrupted: the call has 2 s to finish; press Ctrl-C again to stop now\n";
        assert!(output.stderr.starts_with(told), "{output:?}");
    }
}

#[test]
fn javascript_tool_logs_reports_and_ends_on_abort() {
    const TOOL: &str = r#"import { abort, progress, tool } from "toolcell";
const handler = () => {
  console.warn("waiting", { for: "it" });
  progress(1, 2, "half");
  while (!abort.requested) for (let turns = 0; turns < 100000; turns++);
  return "stopped";
};
export default tool({ name: "waits", description: "Waits.", handler });"#;
    let place = place(CONFIG);
    fs::write(place.path().join("tool.js"), TOOL).expect("a file");
    assert_eq!(place.typed(&["build", "tool.js"]).status, 0);
    let words = ["run", "./tool.wasm", "{}", "--fuel", "1000G", "--timeout", "5m"];
    let mut child = started(&place, &mut place.command(), &words);
    let lines =
        BufReader::new(child.stderr.take().expect("piped")).lines().map(|line| line.expect("text"));
    let mut lines = lines.filter(|line| line.starts_with("tool "));
    assert_eq!(lines.next().as_deref(), Some(r#"tool log warn: waiting {"for":"it"}"#));
    assert_eq!(lines.next().as_deref(), Some("tool progress: 1 of 2, half"));
    send_signal(&child, Signal::INT);
    assert_eq!(lines.next(), None);
    let output = output_of(&place, child);
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
    assert_eq!(output.stdout, b"stopped\n", "{output:?}");
}

#[test]
fn interrupted_build_leaves_nothing() {
    let place = place(CONFIG);
    assert_eq!(place.typed(&["new", "greeter", "--language", "python"]).status, 0);
    let (version, started_file) = (componentize_py(), place.path().join("started"));
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo componentize-py {version}; exit; fi\n: > '{}'\nexec sleep 600\n",
        started_file.display()
    );
    place.write_program(COMPONENTIZE_PY, &script);
    let child = started(&place, &mut place.command(), &["build", "greeter"]);
    eventually(|| started_file.exists().then_some(()));
    send_signal(&child, Signal::INT);
    let output = output_of(&place, child);
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
}

#[test]
fn interrupted_batch_has_message_for_every_call() {
    let place = place(CONFIG);
    let call =
        |id| format!("{{\"id\": \"{id}\", \"name\": \"clerk\", \"arguments\": {LISTENS}}}\n");
    fs::write(place.path().join("calls.jsonl"), ["a", "b", "c"].map(call).concat())
        .expect("a place");
    let words =
        ["batch", "clerk", "--calls", "calls.jsonl", "--max-concurrency", "1", "--timeout", "5m"];
    let child = started(&place, &mut place.command(), &words);
    eventually(|| works(&temp(&place)).then_some(()));
    send_signal(&child, Signal::INT);
    let output = output_of(&place, child);
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["messages"].as_array().map(Vec::len), Some(3), "{told}");
}

/// Three calls: the first has ended, the second never ends, and the third ends when it is asked to.
fn batch(place: &Place, words: &[&str]) -> Child {
    let call = |(id, steps)| {
        format!("{{\"id\": \"{id}\", \"name\": \"clerk\", \"arguments\": {steps}}}\n")
    };
    let calls = [("done", r#"{"steps": []}"#), ("spins", SPINS), ("listens", LISTENS)].map(call);
    fs::write(place.path().join("calls.jsonl"), calls.concat()).expect("a place");
    let head = ["batch", "clerk", "--calls", "calls.jsonl", "--fuel", "1000G", "--timeout", "5m"];
    let child = started(place, &mut place.command(), &[&head, words].concat());
    eventually(|| (at_work(&temp(place)) == 2).then_some(()));
    child
}

/// Returns id and content of each call's message, and true if it is an error.
fn messages(output: &Output) -> Vec<(String, String, bool)> {
    let told: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let each = told["messages"].as_array().into_iter().flatten();
    each.map(|said| (text(&said["tool_call_id"]), text(&said["content"]), said["is_error"] == true))
        .collect()
}

#[test]
fn uncooperative_call_leaves_other_messages_intact() {
    for config in [CONFIG.to_owned(), format!("[host]\nisolation = \"process\"\n{CONFIG}")] {
        let place = place(&config);
        for signals in [1, 2] {
            // Two at once: when both have their marker files, the first call has ended.
            let child = batch(&place, &["--max-concurrency", "2"]);
            (0..signals).for_each(|_| send_signal(&child, Signal::INT));
            let output = output_of(&place, child);
            assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
            let messages = messages(&output);
            let ids: Vec<_> = messages.iter().map(|(id, ..)| id.as_str()).collect();
            assert_eq!(ids, ["done", "spins", "listens"], "{output:?}");
            assert_eq!((messages[0].1.as_str(), messages[0].2), ("[]", false), "{output:?}");
            assert!(messages[1].1.contains("cancelled") && messages[1].2, "{output:?}");
            let has_time = messages[2].1 == r#"["done","stopped"]"#;
            assert!(
                has_time || (signals == 2 && messages[2].1.contains("cancelled")),
                "{output:?}"
            );
        }
    }
}

#[test]
fn interrupted_stream_ends_every_started_call() {
    let place = place(CONFIG);
    for words in [&["--stream"][..], &["--stream", "--max-concurrency", "3"]] {
        let child = batch(&place, words);
        send_signal(&child, Signal::INT);
        send_signal(&child, Signal::INT);
        let output = output_of(&place, child);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let count = |kind: &str, id: &str| {
            let is_it = |line: &&str| {
                line.contains(&format!("\"type\":\"{kind}\""))
                    && line.contains(&format!("\"id\":\"{id}\""))
            };
            told.lines().filter(is_it).count()
        };
        for id in ["done", "spins", "listens"] {
            for kind in
                ["tool_execution_started", "tool_execution_completed", "tool_result_encoded"]
            {
                assert_eq!(count(kind, id), 1, "{kind} {id}: {told}");
            }
        }
    }
}

/// For instance in a shell that starts these tests in the background.
#[test]
fn tests_pass_with_inherited_ignored_signals() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT HUP TERM; exec \"$@\"", "sh", "timeout", "--signal=KILL", "60"]);
    shell.arg(std::env::current_exe().expect("this program"));
    shell.args(["--exact", "processes::interrupt::cooperative_tool_answers_after_interrupt"]);
    let output = shell.stdin(Stdio::null()).output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn ignored_signal_stays_ignored() {
    let place = place(CONFIG);
    let program = env!("CARGO_BIN_EXE_toolcell");
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let typed = format!("trap '' INT; exec {program} --cache-dir {} \"$@\"", cache.display());
    let mut shell = Command::new("sh");
    shell.current_dir(place.path()).env("XDG_STATE_HOME", place.state()).args(["-c", &typed, "sh"]);
    let child = started(&place, &mut shell, &["run", "clerk", "clerk", LISTENS, "--timeout", "5m"]);
    eventually(|| works(&temp(&place)).then_some(()));
    send_signal(&child, Signal::INT);
    send_signal(&child, Signal::TERM);
    let output = output_of(&place, child);
    assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()), "{output:?}");
    assert_eq!(output.stdout, b"[\"done\",\"stopped\"]\n", "{output:?}");
}
