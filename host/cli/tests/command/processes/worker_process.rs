//! A tenant's tools in a process of their own: the output of the command, and the environment of
//! that process.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use serde_json::Value;
use toolcell_test_guests::{asker, rows};

use crate::place::{Place, eventually};
use crate::typed::CommandResult;

const CONFIG: &str = r#"
[components.plain]
path = "hello.wasm"
[components.careful]
path = "asks.wasm"
[components.careful.grants]
secrets = { key = { source = { env = "TOKEN" } } }
reveal = ["key"]
[components.desk]
path = "desk.wasm"
[components.notes]
path = "notes.wasm"
[components.notes.grants]
kv = ["write notes/*"]
[components.search]
path = "file_search.wasm"
[components.clerk]
path = "clerk.wasm"
[components.undeclared]
path = "silent.wasm"
[components.mischief]
path = "mischief.wasm"
[components.mischief.tools.panics]
limits = { timeout = "7s" }
[tenants.acme]
kv = ["read notes/*"]
limits = { fuel = "20M" }
"#;
const BOOK: &str = r#"{"date": "2026-03-03", "time": "19:30", "party_size": 2}"#;

fn place(config: &str) -> Place {
    let place = Place::new(config);
    fs::write(place.path().join("silent.wasm"), asker(&[])).expect("a place");
    let calls = "{\"id\": \"a\", \"name\": \"greet\", \"arguments\": {\"name\": \"Ada\"}}\n\
                 {\"id\": \"b\", \"name\": \"panics\", \"arguments\": {\"words\": \"ouch\"}}\n";
    fs::write(place.path().join("calls.jsonl"), calls).expect("a place");
    place
}

/// Returns the result without the parts that differ from run to run.
fn comparable(mut shown: CommandResult) -> (i32, String, String) {
    if let Ok(mut json) = serde_json::from_str::<Value>(&shown.stdout)
        && let Some(wall) = json.pointer_mut("/usage/wall_us")
    {
        *wall = Value::Null;
        shown.stdout = json.to_string();
    }
    let stderr =
        shown.stderr.split_inclusive('\n').filter(|line| !line.starts_with("summary: ")).collect();
    (shown.status, shown.stdout, stderr)
}

#[test]
fn process_isolation_prints_identical_output() {
    let here = place(CONFIG);
    // At the end of the file, because hints name lines.
    let there = place(&format!("{CONFIG}\n[host]\nisolation = \"process\"\n"));
    let both = |words: &[&str]| {
        let (with, without) = (comparable(there.typed(words)), comparable(here.typed(words)));
        assert_eq!(with, without, "{words:?}");
        with.0
    };
    let named = ["--config", "toolcell.toml"];
    assert_eq!(both(&[&named[..], &["run", "plain", "greet"]].concat()), 21, "it is not approved");
    assert_eq!(both(&[&named[..], &["run", "plain", "greet", "--json"]].concat()), 21);
    here.approve();
    there.approve();
    for (words, status) in
        rows::<(Vec<&str>, i32)>("worker_process", "process_isolation_prints_identical_output")
    {
        assert_eq!(both(&words), status, "{words:?}");
    }
}

#[test]
fn question_can_be_answered_in_another_process() {
    let place = place(&format!("{CONFIG}isolation = \"process\"\n")).approved();
    let asked = place.typed(&["run", "desk", "book_table", BOOK, "--tenant", "acme", "--json"]);
    let state =
        asked.json()["outcome"]["ask_user"]["state"].as_str().expect("a sealed state").to_owned();
    let answer = ["--answer", r#"{"name": "Ada"}"#, "--state", &state];
    let answered = place
        .typed(&[&["run", "desk", "book_table", BOOK, "--tenant", "acme"], &answer[..]].concat());
    assert_eq!(answered.status, 0, "{answered}");
}

/// Returns the worker process that another process started, and its environment.
fn child_of(parent: u32) -> Option<(u32, Vec<String>)> {
    let words = |pid: u32, file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes)
            .split_terminator('\0')
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let pids = fs::read_dir("/proc").expect("processes").flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let of = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        of == Some(parent) && words(*pid, "cmdline").iter().any(|word| word == "worker-process")
    };
    pids.find(is_child).map(|pid| (pid, words(pid, "environ")))
}

/// Returns true if the process cannot write a core dump, and cannot change that.
fn dumps_no_core(pid: u32) -> bool {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("its limits");
    let core =
        limits.lines().find_map(|line| line.strip_prefix("Max core file size")).expect("a limit");
    core.split_whitespace().take(2).eq(["0", "0"])
}

fn lives(pid: u32) -> bool {
    let told = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    told.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Source: docs/threat-model.md, row 52.
#[test]
fn worker_has_only_tenant_secrets_and_dies_with_cli() {
    let config = r#"
[components.mischief]
path = "mischief.wasm"
[components.mischief.grants.secrets]
own = { source = { env = "OWN" }, destination = "https://a.example" }
theirs = { source = { env = "THEIRS" }, destination = "https://a.example" }
[components.careful]
path = "asks.wasm"
[components.careful.grants]
secrets = { key = { source = { env = "TOKEN" } } }
reveal = ["key"]
[tenants.acme]
isolation = "process"
secrets = ["own"]
[tenants.other]
"#;
    let place = place(config);
    let secrets = [("OWN", "canary-of-acme-4711"), ("THEIRS", "canary-of-another-0815")];
    let mut approving = place.command();
    assert_eq!(place.shown(approving.envs(secrets).args(["approve", "--yes"])).status, 0);
    let mut command = place.command();
    // A killed process does not remove its files.
    command
        .envs(secrets)
        .env("ELSE", "something else")
        .env("TMPDIR", place.path())
        .process_group(0);
    command.args(["run", "mischief", "sleeps", "--tenant", "acme", "--timeout", "1m"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut parent = command.spawn().expect("the binary runs");
    let (child, environment) =
        eventually(|| child_of(parent.id()).filter(|(_, known)| !known.is_empty()));
    for process in [parent.id(), child] {
        eventually(|| dumps_no_core(process).then_some(()));
    }
    parent.kill().expect("it runs");
    parent.wait().expect("it ends");
    let mut names: Vec<_> =
        environment.iter().filter_map(|known| Some(known.split_once('=')?.0)).collect();
    names.retain(|name| *name != "TOOLCELL_DOWN");
    names.sort_unstable();
    assert_eq!(names, ["HOME", "OWN", "TMPDIR", "XDG_STATE_HOME"]);
    eventually(|| (!lives(child)).then_some(()));
}

/// A child that is ended does not remove its files; its parent does.
#[test]
fn ended_worker_leaves_no_files() {
    let config = "[host]\nisolation = \"process\"\n[components.mischief]\npath = \"mischief.wasm\"\n\
                  [components.mischief.grants]\nscratch = true\n";
    let place = place(config).approved();
    let temp = place.path().join("temp");
    fs::create_dir(&temp).expect("a place");
    for (words, status) in [
        (&["run", "mischief", "panics", r#"{"words": "x"}"#][..], 20),
        (&["run", "mischief", "sleeps", "--timeout", "50ms"], 20),
        (&["batch", "mischief", "hello.wasm", "--calls", "calls.jsonl"], 0),
    ] {
        let shown = place.shown(place.command().env("TMPDIR", &temp).args(words));
        assert_eq!(fs::read_dir(&temp).expect("it is there").count(), 0, "{shown}");
        assert_eq!(shown.status, status, "{shown}");
    }
}
