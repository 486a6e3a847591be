//! Measures the cost of a run on top of its calls, of an event on top of a run, and of checking
//! arguments.
//!
//! `cargo bench --workspace --profile dev --bench run`

use std::io::Write as _;

use anyhow::Result;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use toolcell::runtime::Placement;
use toolcell::{
    CallOptions, Definition, Engine, Executor, Registry, RunOptions, Runner, Tool, ToolCall,
};
use toolcell_benches::timing::{Contender, Step, Summary, interleaved, steps};
use toolcell_benches::tools::optimised;
use toolcell_test_guests::{Answer, Hostile};

const ROUNDS: usize = 15;
/// Batches of a hundred calls: enough to see a difference of 0.1 µs a call.
const BATCHES: usize = 3000;
/// Calls of a run.
const CALLS: usize = 100;
const TEXT: &str = r#"{"text":"hello"}"#;
/// Cost of a run on top of each call, at most, in microseconds.
const PER_CALL: f64 = 0.5;
/// Cost of a stream on top of a run for each event, at most, in microseconds.
const PER_EVENT: f64 = 1.0;
/// Cost of checking a KiB of arguments, at most, in microseconds.
const PER_LOOK: f64 = 3.0;

fn main() -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    for (placement, most) in [(Placement::Inline, 1), (Placement::Cells, 1), (Placement::Cells, 4)]
    {
        run(&runtime, placement, most)?;
    }
    validation(&runtime)
}

fn batch() -> Vec<ToolCall> {
    (0..CALLS).map(|n| ToolCall::new(format!("call-{n}"), "hostile", TEXT)).collect()
}

/// Measures a hundred calls made one by one, as a run, and as a stream, with the same concurrency.
fn run(runtime: &Runtime, placement: Placement, most: usize) -> Result<()> {
    let engine = Engine::builder().placement(placement).build()?;
    let echo = Hostile::answering(Answer::Echo).component();
    let tool = runtime.block_on(optimised(&engine, &echo, "hostile"))?;
    let (registry, executor) = (Registry::new(), Executor::new());
    registry.register(tool.clone())?;
    let runner = Runner::new(registry);
    let options = || RunOptions { max_concurrency: Some(most), ..RunOptions::default() };
    let steps = steps(
        &mut [
            Contender::new("Executor::call, one by one", || {
                let calls = batch()
                    .into_iter()
                    .map(|call| executor.call(&tool, call, CallOptions::default()));
                let answered = runtime
                    .block_on(stream::iter(calls).buffer_unordered(most).collect::<Vec<_>>());
                assert!(answered.iter().all(|completion| completion.result.value().is_some()));
            }),
            Contender::new("Runner::run", || {
                let outcome = runtime.block_on(runner.run(batch(), options()));
                assert!(outcome.is_ok_and(|outcome| {
                    outcome.messages.iter().all(|message| !message.is_error)
                }));
            }),
            Contender::new("Runner::stream", || {
                let events =
                    runtime.block_on(runner.stream(batch(), options()).collect::<Vec<_>>());
                assert_eq!(events.len(), 3 * CALLS);
            }),
        ],
        BATCHES,
    );
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\n{CALLS} calls of an echo guest, {most} at once, {placement:?}: microseconds per call"
    )?;
    for Step { name, p50, .. } in &steps {
        writeln!(out, "  {name:32} {:8.2}", p50 / CALLS as f64)?;
    }
    if let [_, run, stream] = steps.as_slice() {
        step("a run, on top of each call", run, CALLS, PER_CALL)?;
        step("a stream, on top of a run, each event", stream, 3 * CALLS, PER_EVENT)?;
    }
    Ok(())
}

/// Measures the check of a KiB of arguments against a schema of ten properties.
fn validation(runtime: &Runtime) -> Result<()> {
    let text = "x".repeat(80);
    let members = || (0..10).map(|n| (format!("field_{n}"), json!(text)));
    let arguments = Value::Object(members().collect()).to_string();
    let properties: Value = Value::Object(
        members().map(|(name, _)| (name, json!({"type": "string", "maxLength": 200}))).collect(),
    );
    let schema = json!({
        "type": "object", "properties": properties, "required": ["field_0", "field_9"], "additionalProperties": false,
    });
    let open = Tool::manual(Definition::new("open", "")?)?;
    let checked = Tool::manual(Definition::new("checked", "")?.with_parameters(schema))?;
    let executor = Executor::new();
    let look = |tool: &Tool| {
        let call = ToolCall::new("1", tool.definition().name.as_str(), arguments.as_str());
        let found = runtime.block_on(executor.validate(tool, call, CallOptions::default()));
        assert!(found.is_ok_and(|faults| faults.is_empty()));
    };
    let summaries = interleaved(
        &mut [
            Contender::new("parsed", || look(&open)),
            Contender::new("parsed and checked", || look(&checked)),
        ],
        ROUNDS,
        2000,
    );
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{} bytes of arguments: microseconds", arguments.len())?;
    for Summary { name, p50, spread, .. } in &summaries {
        writeln!(out, "  {name:32} {p50:8.2}   rounds {:.2} to {:.2}", spread.0, spread.1)?;
    }
    drop(out);
    if let [parsed, checked] = summaries.as_slice() {
        verdict("the check alone", checked.p50 - parsed.p50, PER_LOOK)?;
    }
    Ok(())
}

/// Prints the cost of one step per item, with its confidence interval.
fn step(what: &str, Step { more, interval, .. }: &Step, items: usize, most: f64) -> Result<()> {
    let per_item = |time: f64| time / items as f64;
    let (low, high) = (per_item(interval.0), per_item(interval.1));
    verdict(&format!("{what} (95 %: {low:.2} to {high:.2})"), per_item(*more), most)
}

fn verdict(what: &str, cost: f64, most: f64) -> Result<()> {
    let met = if cost <= most { "met" } else { "missed" };
    writeln!(std::io::stdout().lock(), "  {what}: {cost:.2} us, at most {most} us: {met}")?;
    Ok(())
}
