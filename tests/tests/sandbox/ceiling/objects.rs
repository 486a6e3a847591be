//! Checks that memory that the host keeps for cells is part of the bound that is printed.

use std::path::Path;

use serde_json::json;
use tokio::task::JoinSet;
use toolcell::{CallOptions, Engine, Executor, Grants, Limits, ToolCall};
use toolcell_test_guests::bytes;
use toolcell_tests::{ending, load_with, own_process, wait, worst_case};

use super::{PATIENCE, memory, peak};
use crate::any_fuel;

/// Cells of the engine.
const CELLS: u32 = 16;
/// Memory of a call, in bytes.
const MEMORY: u64 = 8 << 20;
/// Requests of a megabyte that each cell makes the host keep: one more would be over the bound.
const REQUESTS: u32 = 15;
/// Fuel units: more than each cell needs to make all of its requests.
const FUEL: u64 = 200_000_000;

/// Fails without: the host's memory in the bound.
#[test]
fn host_memory_for_cells_is_within_the_bound() {
    own_process::run(module_path!(), "host_memory_for_cells_is_within_the_bound", || {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ceiling");
        let engine = Engine::builder().cells(CELLS).cache(cache).build().expect("an engine");
        let mut grants = Grants::default();
        grants.http.push("https://example.com/".parse().expect("a rule"));
        let loaded = load_with(&engine, bytes("caller"), grants).expect("it loads");
        let hoarder = wait(async move {
            loaded.optimised().await;
            loaded.tool("hoarder").expect("the tool").clone()
        });
        let at_once = |requests: u32, rounds: u64| {
            let limits = Limits { memory: MEMORY, fuel: FUEL, ..any_fuel(PATIENCE) };
            let (executor, tool) = (Executor::new().with_limits(limits), hoarder.clone());
            wait(async move {
                let mut calls = JoinSet::new();
                for number in 0..CELLS {
                    let arguments = json!({"requests": requests, "rounds": rounds});
                    let call = ToolCall::with_value(number.to_string(), "hoarder", &arguments);
                    let (executor, tool) = (executor.clone(), tool.clone());
                    calls.spawn(async move {
                        ending(&executor.call(&tool, call, CallOptions::default()).await.result)
                    });
                }
                calls.join_all().await
            })
        };
        assert!(at_once(0, 1).iter().all(|end| end == "ok"));
        let before = memory("VmRSS");
        let (most, ended) = peak(|| at_once(REQUESTS, u64::MAX));
        assert!(ended.iter().all(|end| end == "timeout/fuel"), "{ended:?}");
        let kept = most.saturating_sub(before);
        eprintln!("{CELLS} cells with {REQUESTS} requests of a megabyte each: {} MiB", kept >> 20);
        // The host keeps more than the cells have.
        assert!(kept > u64::from(CELLS) * MEMORY, "{} MiB", kept >> 20);
        assert!(kept < worst_case(CELLS, MEMORY) - worst_case(0, 0), "{} MiB", kept >> 20);
    });
}
