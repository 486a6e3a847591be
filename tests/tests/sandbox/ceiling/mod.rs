//! Tests the worst case of the host's resources: memory under a ceiling, large arguments, many
//! calls, a runtime that ends.
//!
//! Beside the address space that its engines reserve at their start, the process under the ceiling
//! may have exactly as much as the host takes in the worst case. A failed allocation would abort
//! it, as a ceiling of 24 MiB has shown.

mod arguments;
mod crowds;
mod objects;
mod shutdown;

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolcell::grants::DirectoryQuota;
use toolcell::kv::SqliteStore;
use toolcell::runtime::Placement;
use toolcell::{AbortSignal, CallOptions, Engine, Event, Executor, Grants, Limits, Tool, ToolCall};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place, bare_hello, bytes};
use toolcell_tests::{PLACEMENTS, ending, load_with, own_process, wait, worst_case};

/// Cells of an engine.
const CELLS: u32 = 80;
/// Memory of a call, in bytes.
const MEMORY: u64 = 24 << 20;
/// Concurrent calls of one kind: every cell is taken, and some calls wait.
const CALLS: u32 = CELLS + 8;
const ROUNDS: usize = 2;
const TOO_LARGE: &str = "invalid_return/too_large";
/// A bound so high that no ending depends on time.
const PATIENCE: Duration = Duration::from_secs(300);

/// A kind of call: the tool, its arguments, and the endings that it may have.
struct Kind {
    tool: Tool,
    arguments: String,
    ends: &'static [&'static str],
}

/// Returns a figure of `/proc/self/status` in bytes.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the process's own");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("its figure");
    line.trim_matches([':', '\t', ' ']).trim_end_matches(" kB").parse::<u64>().expect("a number")
        << 10
}

/// Runs `work`. Returns the peak memory of the process during it, and its result.
fn peak<T>(work: impl FnOnce() -> T) -> (u64, T) {
    fs::write("/proc/self/clear_refs", "5").expect("the peak begins anew");
    let done = work();
    (memory("VmHWM"), done)
}

/// Makes this many concurrent calls, raises the abort signal when all have begun, and returns their
/// endings.
fn side_by_side(tool: &Tool, arguments: &str, calls: u32) -> Vec<String> {
    let (tool, arguments) = (tool.clone(), arguments.to_owned());
    wait(async move {
        let (seen, mut started) = mpsc::unbounded_channel();
        let signal = AbortSignal::new();
        let executor =
            Executor::new().with_limits(Limits { timeout: PATIENCE, ..Limits::default() });
        let executor = executor.with_events(move |event: Event| {
            if let Event::Started { .. } = event {
                let _ = seen.send(());
            }
        });
        let mut running = JoinSet::new();
        for number in 0..calls {
            let (executor, tool) = (executor.clone(), tool.clone());
            let name = tool.definition().name.clone();
            let call = ToolCall::new(number.to_string(), name, arguments.as_str());
            let abort = signal.clone();
            let options =
                CallOptions { abort, stop_grace: Duration::MAX, ..CallOptions::default() };
            running.spawn(async move { ending(&executor.call(&tool, call, options).await.result) });
        }
        for _ in 0..calls {
            started.recv().await.expect("each has a first event, also where it is refused");
        }
        signal.raise();
        running.join_all().await
    })
}

#[test]
fn worst_case_memory_fits_its_bound() {
    own_process::run(module_path!(), "worst_case_memory_fits_its_bound", under_the_ceiling);
}

fn under_the_ceiling() {
    let scenes = PLACEMENTS.map(|placement| (placement, kinds(placement)));
    // The memory of the cells is part of what is reserved, and none of these calls makes the host
    // keep much.
    let ceiling = memory("VmSize") + worst_case(0, 0);
    let limit = Rlimit { current: Some(ceiling), maximum: getrlimit(Resource::As).maximum };
    setrlimit(Resource::As, limit).expect("a process may have less");
    for (placement, (good, kinds)) in &scenes {
        for round in 0..ROUNDS {
            for kind in kinds {
                let ended = at_once(kind);
                assert_eq!(ended.len(), CALLS as usize, "each has an end");
                let strange = ended.iter().find(|end| !kind.ends.contains(&end.as_str()));
                assert_eq!(strange, None, "{placement:?}, {round}: not {:?}", kind.ends);
            }
            let is_good = at_once(good).iter().all(|end| end == "ok");
            assert!(is_good, "{placement:?}, after round {round}");
        }
    }
}

fn at_once(kind: &Kind) -> Vec<String> {
    let limits =
        Limits { memory: MEMORY, host_calls: 1000, timeout: PATIENCE, ..Limits::default() };
    let executor = Executor::new().with_limits(limits);
    let (tool, arguments) = (kind.tool.clone(), kind.arguments.clone());
    wait(async move {
        let mut calls = JoinSet::new();
        for number in 0..CALLS {
            let (executor, tool) = (executor.clone(), tool.clone());
            let name = tool.definition().name.clone();
            let call = ToolCall::new(number.to_string(), name, arguments.as_str());
            calls.spawn(async move { executor.call(&tool, call, CallOptions::default()).await });
        }
        calls.join_all().await.iter().map(|completion| ending(&completion.result)).collect()
    })
}

/// Returns a good call, and calls that take all the memory that they can get, of every kind.
fn kinds(placement: Placement) -> (Kind, Vec<Kind>) {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ceiling");
    let builder = Engine::builder().cells(CELLS).placement(placement).cache(cache);
    let engine = builder.keys(SqliteStore::in_memory()).build().expect("an engine");
    let load = |bytes: Vec<u8>| {
        let mut grants = Grants::default();
        grants.scratch = Some(DirectoryQuota { bytes: 4 << 20, files: 100 });
        grants.kv.push("write *".parse().expect("a rule"));
        load_with(&engine, bytes, grants).expect("it loads").tools()[0].clone()
    };
    let kind = |tool, arguments: &str, ends| Kind { tool, arguments: arguments.to_owned(), ends };
    let hostile =
        |misdeed, ends| kind(load(Hostile::new(Place::Execute, misdeed).component()), "{}", ends);
    let answering = |answer, ends| kind(load(Hostile::answering(answer).component()), "{}", ends);
    let echo = json!({"text": "x".repeat(200_000)}).to_string();
    let writes = json!({"steps": [
        ["write", "/scratch/a", "300000"], ["read", "/scratch/a"], ["hold", "/scratch/b", "300000"], ["read", "/scratch/b"],
    ]});
    // More than a stream accepts, on as many streams as a cell can have.
    let flood = json!({"steps": [["flood", "/scratch/a", "200", "1000000"]]});
    // More memories than a slot of the pool has: each cell asks the operating system for gigabytes,
    // and gets none.
    let large = Hostile { more_memories: 4, ..Hostile::new(Place::Execute, Misdeed::LeaveMarks) };
    let hoards = load(Hostile::new(Place::Execute, Misdeed::Hoard).component());
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
        answering(Answer::Megabytes(1), &["ok", TOO_LARGE, "invalid_return/not_json"]),
        answering(Answer::Megabytes(12), &[TOO_LARGE]),
        kind(load(Hostile::answering(Answer::Echo).component()), &echo, &["ok"]),
        kind(load(bytes("clerk")), &writes.to_string(), &["ok", TOO_LARGE]),
        kind(load(bytes("clerk")), &flood.to_string(), &["handler_raised/host_call"]),
        kind(load(large.component()), "{}", &["handler_raised/limit_at_start"]),
        kind(hoards, &arguments::worst(), &["handler_raised/unreachable+memory"]),
        kind(load(bare_hello()), &arguments::more_than_worst(), &["refusal/invalid_arguments"]),
    ];
    (kind(load(bare_hello()), r#"{"name": "Ada"}"#, &["ok"]), kinds)
}
