//! State that concurrent commands share: room in directories, compiled components, the user's
//! state.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::place::{Place, eventually};

const CLERK: &str = "[components.clerk]\npath = \"clerk.wasm\"\n[components.clerk.grants]\nscratch = true\n\
                     directories = [{ name = \"/data\", path = \"data\", access = \"write\", max_bytes = 10000 }]\n";

fn started(command: &mut Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

/// Ten commands at once, each with the full quota to write.
///
/// Fails without: a count that processes share.
#[test]
fn concurrent_commands_share_directory_quota() {
    let place = Place::new(CLERK).approved();
    let run = |at: usize| {
        let steps: Vec<_> =
            (0..10).map(|file| format!(r#"["append", "/data/{at}-{file}", "1000"]"#)).collect();
        started(place.command().args([
            "run",
            "clerk",
            "clerk",
            &format!(r#"{{"steps": [{}]}}"#, steps.join(",")),
        ]))
    };
    let children: Vec<_> = (0..10).map(run).collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let files = fs::read_dir(place.path().join("data")).expect("it is there").flatten();
    let bytes: u64 = files
        .map(|file| {
            file.metadata().map_or(0, |found| if found.is_file() { found.len() } else { 0 })
        })
        .sum();
    assert_eq!(bytes, 10_000);
}

/// Fails without: a lock on the compilation of a component.
#[test]
fn concurrent_commands_compile_component_once() {
    let place = Place::new("").approved();
    let cache = place.path().join("cache");
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcell"));
        command
            .env_clear()
            .envs(toolcell::controls::inherited())
            .current_dir(place.path())
            .env("XDG_CACHE_HOME", &cache);
        command.env("XDG_STATE_HOME", place.state()).env("TOOLCELL_LOG", "toolcell=info");
        started(command.args(["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#]))
    };
    let children: Vec<_> = (0..12).map(|_| run()).collect();
    let mut compiled = 0;
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("compile_time="), "{said}");
        compiled += usize::from(said.contains("compile_time=Some"));
    }
    assert_eq!(compiled, 1);
    let left = fs::read_dir(cache.join("toolcell")).expect("it is there").flatten();
    let locks = left.filter(|file| file.path().extension().is_some_and(|ending| ending == "lock"));
    // The lock of the optimiser may be left by a command that ended during the optimisation.
    assert!(locks.count() <= 1);
}

fn is_at_work(below: &Path) -> bool {
    let entries = fs::read_dir(below).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.ends_with("here") || is_at_work(&path))
}

/// Fails without: the removal of directories that killed commands left.
#[test]
fn next_command_removes_files_of_killed_ones() {
    let place = Place::new(CLERK).approved();
    let temp = place.path().join("temp");
    fs::create_dir(&temp).expect("a place");
    let command = || {
        let mut command = place.command();
        command.env("TMPDIR", &temp);
        command
    };
    let living = fs::canonicalize(&temp).expect("a place");
    for _ in 0..4 {
        let steps = r#"{"steps": [["make", "/scratch/a"], ["make", "/scratch/here"], ["spin"]]}"#;
        let words = ["run", "clerk", "clerk", steps, "--fuel", "1000G", "--timeout", "5m"];
        let mut child = started(command().process_group(0).args(words));
        eventually(|| is_at_work(&living).then_some(()));
        assert_eq!(
            fs::read_dir(&temp).expect("it is there").count(),
            1,
            "its own, and none of those before it"
        );
        // Another command does not touch the files of a running one.
        let shown = place.shown(command().args(["inspect", "hello.wasm"]));
        assert!(shown.status == 0 && is_at_work(&living), "{shown}");
        child.kill().expect("it is there");
        child.wait().expect("it is there");
        assert!(is_at_work(&living), "no command has tidied up");
        let shown = place.shown(command().args(["inspect", "hello.wasm"]));
        assert_eq!(shown.status, 0, "{shown}");
        assert_eq!(fs::read_dir(&temp).expect("it is there").count(), 0);
    }
}

/// Killed at points spread over its run: the lock is one of two complete texts, the record matches
/// it or does not exist, and the next `approve` completes the work.
#[test]
fn approve_is_atomic_when_killed() {
    let component = |path: &str| format!("[components.hello]\npath = \"{path}\"\n");
    let configs = [component("hello.wasm"), component("asks.wasm")];
    let place = Place::new(&configs[0]);
    let lock = place.path().join("toolcell.lock");
    let mut texts = Vec::new();
    let began = Instant::now();
    for config in &configs {
        place.write(config);
        place.approve();
        texts.push(fs::read_to_string(&lock).expect("a lock"));
    }
    let takes = began.elapsed() / 2;
    assert_ne!(texts[0], texts[1]);
    let mut outcomes = [0; 2];
    for round in 0..24_u32 {
        let (config, text) = (&configs[round as usize % 2], &texts[round as usize % 2]);
        place.write(config);
        let mut child = started(place.command().args(["approve", "--yes"]));
        let end = Instant::now() + takes * (round + 4) / 24;
        while Instant::now() < end && child.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        child.kill().expect("a child");
        child.wait().expect("a child");
        let now = fs::read_to_string(&lock).expect("a lock");
        assert!(texts.contains(&now), "half a lock: {now}");
        let shown = place.typed(&["inspect", "hello"]);
        assert!(!shown.stderr.contains("damaged"), "{shown}");
        outcomes[usize::from(now == *text)] += 1;
        place.approve();
        assert_eq!(fs::read_to_string(&lock).expect("a lock"), *text);
        let names =
            fs::read_dir(place.path()).expect("a place").flatten().map(|entry| entry.file_name());
        let left: Vec<_> =
            names.filter(|name| name.to_string_lossy().starts_with(".toolcell")).collect();
        assert!(left.is_empty(), "{left:?}");
        let shown = place.typed(&["approve"]);
        shown.tells(0, "is approved in its present form");
    }
    assert!(outcomes[0] > 0, "it was never killed in time: {outcomes:?}");
}
