//! A process under a ceiling: beside what its engines reserved at their start it may have as much address space as the host
//! takes at worst, and no more. An allocation that fails would abort it; seen to, with a ceiling of 24 MiB.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::task::JoinSet;
use toolcell::kv::MemoryStore;
use toolcell::{CallOptions, Component, Engine, Executor, Grants, Limits, Missing, Placement, Room, Tool, ToolCall};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place, bare_hello, bytes};
use toolcell_tests::{PLACEMENTS, ending, wait, worst_case};

/// Set for the process under the ceiling.
const UNDER: &str = "TOOLCELL_TEST_UNDER_A_CEILING";
/// Cells at once.
const CELLS: u32 = 80;
/// Bytes of memory of a call.
const MEMORY: u64 = 24 << 20;
/// Calls of one kind at once: every cell is taken, and some wait.
const CALLS: u32 = CELLS + 8;
const ROUNDS: usize = 2;
/// None of them is a matter of time.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is called, and how that may end.
struct Kind {
    tool: Tool,
    arguments: String,
    ends: &'static [&'static str],
}

#[test]
fn the_worst_case_fits_under_its_bound() {
    if env::var_os(UNDER).is_some() {
        return under_the_ceiling();
    }
    let mut child = Command::new(env::current_exe().expect("this test"));
    child.args(["the_worst_case_fits_under_its_bound", "--exact", "--nocapture"]).env(UNDER, "1");
    let output = child.output().expect("it starts");
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}

fn under_the_ceiling() {
    let scenes = PLACEMENTS.map(|placement| (placement, kinds(placement)));
    // The memory of the cells is among what was reserved.
    let ceiling = address_space() + worst_case(CELLS, 0);
    let limit = Rlimit { current: Some(ceiling), maximum: getrlimit(Resource::As).maximum };
    setrlimit(Resource::As, limit).expect("a process may have less");
    for (placement, (good, kinds)) in &scenes {
        for round in 0..ROUNDS {
            for kind in kinds {
                let ended = at_once(kind);
                assert_eq!(ended.len(), CALLS as usize, "each has an end");
                let strange: Vec<_> = ended.iter().filter(|end| !kind.ends.contains(&end.as_str())).collect();
                assert!(strange.is_empty(), "{placement:?}, {round}: {strange:?} instead of {:?}", kind.ends);
            }
            assert!(at_once(good).iter().all(|end| end == "ok"), "{placement:?}, after round {round}");
        }
    }
}

/// Bytes.
fn address_space() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the process's own");
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("its size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn at_once(kind: &Kind) -> Vec<String> {
    let limits = Limits::default().with_memory(MEMORY).with_host_calls(1000).with_timeout(PATIENCE);
    let executor = Executor::new().with_limits(limits);
    let (tool, arguments) = (kind.tool.clone(), kind.arguments.clone());
    wait(async move {
        let mut calls = JoinSet::new();
        for number in 0..CALLS {
            let (executor, tool) = (executor.clone(), tool.clone());
            let call = ToolCall::new(number.to_string(), tool.definition().name.as_str(), arguments.as_str());
            calls.spawn(async move { executor.call(&tool, call, CallOptions::default()).await });
        }
        calls.join_all().await.iter().map(|completion| ending(&completion.result)).collect()
    })
}

/// A call that is good, and those that want all the memory that they can have, wherever it is.
fn kinds(placement: Placement) -> (Kind, Vec<Kind>) {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ceiling");
    let builder = Engine::builder().cells(CELLS).placement(placement).cache(cache).keys(MemoryStore::new());
    let engine = builder.build().expect("an engine");
    let load = |bytes: Vec<u8>| {
        let mut grants = Grants::default();
        grants.scratch = Some(Room { bytes: 4 << 20, files: 100 });
        grants.keys.push("write *".parse().expect("a rule"));
        let engine = engine.clone();
        let loaded = wait(async move { Component::load_with(&engine, bytes, grants, Missing::Denied).await });
        loaded.expect("it loads").tools()[0].clone()
    };
    let kind = |tool, arguments: &str, ends| Kind { tool, arguments: arguments.to_owned(), ends };
    let hostile = |misdeed, ends| kind(load(Hostile::new(Place::Execute, misdeed).component()), "{}", ends);
    let answering = |answer, ends| kind(load(Hostile::answering(answer).component()), "{}", ends);
    let echo = json!({"text": "x".repeat(200_000)}).to_string();
    let writes = json!({"steps": [
        ["write", "/scratch/a", "300000"], ["read", "/scratch/a"], ["hold", "/scratch/b", "300000"], ["read", "/scratch/b"],
    ]});
    // More than a stream takes, for as many streams as a cell has room for.
    let flood = json!({"steps": [["flood", "/scratch/a", "200", "1000000"]]});
    // More memories than a slot of the pool has: each cell asks the operating system for gigabytes, and is given none.
    let large = Hostile { more_memories: 4, ..Hostile::new(Place::Execute, Misdeed::LeaveMarks) };
    let kinds = vec![
        hostile(Misdeed::Hoard, &["handler_raised/unreachable+memory"]),
        hostile(Misdeed::LeaveMarks, &["ok"]),
        hostile(
            Misdeed::HoardTable,
            &["handler_raised/unreachable+memory", "handler_raised/unreachable+table_elements"],
        ),
        hostile(Misdeed::HoardObjects, &["handler_raised/host_call"]),
        hostile(Misdeed::HoardHandles, &["handler_raised/host_call"]),
        hostile(Misdeed::SayTooMuch, &["handler_raised/host_call"]),
        hostile(Misdeed::Chatter, &["handler_raised/host_call+host_calls"]),
        answering(Answer::Megabytes(1), &["ok", "invalid_return/too_large", "invalid_return/not_json"]),
        answering(Answer::Megabytes(12), &["invalid_return/unreadable"]),
        kind(load(Hostile::answering(Answer::Echo).component()), &echo, &["ok"]),
        kind(load(bytes("clerk")), &writes.to_string(), &["ok", "invalid_return/too_large"]),
        kind(load(bytes("clerk")), &flood.to_string(), &["handler_raised/host_call"]),
        kind(load(large.component()), "{}", &["handler_raised/limit_at_start"]),
    ];
    (kind(load(bare_hello()), r#"{"name": "Ada"}"#, &["ok"]), kinds)
}
