//! What one call costs, against raw wasmtime with the same guest in the same run.
//!
//! `cargo bench --workspace --profile dev --bench call`

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::{Builder, Runtime};
use toolcell::{
    CallOptions, CallResult, Code, Component, Engine, Executor, Limits, Placement, Timeout, Tool, ToolCall, ToolError,
};
use toolcell_benches::floor::Floor;
use toolcell_benches::timing::{Contender, Summary, interleaved, percentile};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};

const ROUNDS: usize = 15;
const CALLS: usize = 2000;
const TEXT: &str = r#"{"text":"hello"}"#;
const SCHEMA: &str =
    r#"{"type":"object","properties":{"text":{"type":"string","maxLength":1000}},"required":["text"]}"#;
const SUM: &str = r#"{"expression":"2 * (3 + 4) - sqrt(16)"}"#;
/// Long enough for each of the loops to end many times.
const LONG_ENOUGH: Duration = Duration::from_secs(3);
/// Paragraphs of a text that takes some milliseconds, and how many of those calls are timed.
const PARAGRAPHS: usize = 2_000;
const LONG_CALLS: usize = 300;
/// Infinite loops that run beside.
const LOOPS: usize = 64;
/// How much slower they may make others. Source: threat model, row 1.
const SLIP: f64 = 3.0;

fn main() -> Result<()> {
    let bench = Bench::new()?;
    bench.one_call("tiny echo guest", &echo().component(), "hostile", TEXT, &[2.0, f64::INFINITY])?;
    bench.one_call(
        "calculator (Rust, JSON in and out)",
        &toolcell_test_guests::bytes("calculator"),
        "calculator",
        SUM,
        &[1.25, f64::INFINITY],
    )?;
    bench.two_threads()?;
    bench.neighbours()
}

fn echo() -> Hostile {
    Hostile { parameters: Some(SCHEMA), ..Hostile::answering(Answer::Echo) }
}

/// The caller's side: a runtime that is not the engine's.
struct Bench {
    runtime: Runtime,
    inline: Engine,
    cells: Engine,
}

impl Bench {
    fn new() -> Result<Self> {
        Ok(Self {
            runtime: Builder::new_multi_thread().worker_threads(2).enable_time().build()?,
            inline: Engine::builder().placement(Placement::Inline).build()?,
            cells: Engine::builder().placement(Placement::Cells).build()?,
        })
    }

    fn tool(&self, engine: &Engine, bytes: &[u8], name: &str) -> Result<Tool> {
        let component = self.runtime.block_on(Component::load(engine, bytes.to_vec()))?;
        ensure!(self.runtime.block_on(component.optimised()) == Code::Optimised, "{name} is not optimised");
        Ok(component.tool(name)?.clone())
    }

    fn one_call(&self, title: &str, bytes: &[u8], name: &str, arguments: &str, targets: &[f64]) -> Result<()> {
        let floor = Floor::new(bytes, name)?;
        let (inline, cells) = (self.tool(&self.inline, bytes, name)?, self.tool(&self.cells, bytes, name)?);
        let executor = Executor::new();
        let call = |tool: &Tool| {
            let answered = self.runtime.block_on(executor.call(tool, to(tool, arguments), CallOptions::default()));
            assert!(answered.result.value().is_some(), "{answered:?}");
        };
        let summaries = interleaved(
            &mut [
                Contender::new("raw wasmtime (the floor)", || {
                    floor.call(arguments).expect("a good call");
                }),
                Contender::new("Executor::call, inline", || call(&inline)),
                Contender::new("Executor::call, cells runtime", || call(&cells)),
            ],
            ROUNDS,
            CALLS,
        );
        table(title, &summaries, targets)
    }

    /// Calls per second of two callers against one, inline and raw.
    fn two_threads(&self) -> Result<()> {
        let bytes = echo().component();
        let (tool, floor) = (self.tool(&self.inline, &bytes, "hostile")?, Floor::new(&bytes, "hostile")?);
        let executor = Executor::new();
        let raw = || {
            floor.call(TEXT).expect("a good call");
        };
        let inline = || {
            let answered = futures_executor::block_on(executor.call(&tool, to(&tool, TEXT), CallOptions::default()));
            assert!(answered.result.value().is_some(), "{answered:?}");
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "\ntwo threads against one, calls per second (target: at least 1.25 x)")?;
        for (name, call) in [("raw wasmtime", &raw as &(dyn Fn() + Sync)), ("Executor::call, inline", &inline)] {
            let mut gains: Vec<f64> = (0..ROUNDS).map(|_| rate(call, 2) / rate(call, 1)).collect();
            let spread = (percentile(&mut gains, 0.0), percentile(&mut gains, 100.0));
            writeln!(
                out,
                "  {name:32} {:.2} x   spread {:.2} to {:.2}",
                percentile(&mut gains, 50.0),
                spread.0,
                spread.1
            )?;
        }
        Ok(())
    }

    /// Good tools and a deadline, each beside infinite loops on the cells runtime.
    fn neighbours(&self) -> Result<()> {
        let echo = self.tool(&self.cells, &echo().component(), "hostile")?;
        let markdown = self.tool(&self.cells, &toolcell_test_guests::bytes("markdown"), "markdown_to_text")?;
        let spin = self.tool(&self.cells, &Hostile::new(Place::Execute, Misdeed::Spin).component(), "hostile")?;
        let executor = Executor::new().with_limits(Limits::default().with_fuel(u64::MAX));
        let long_text = format!(r#"{{"markdown":"{}"}}"#, r"some *text* and `more`\n\n".repeat(PARAGRAPHS));
        let good: [(_, _, _, Box<dyn Fn() -> f64>); 2] = [
            ("a short call", CALLS, SLIP, Box::new(|| self.timed(&executor, &echo, TEXT))),
            ("a long call", LONG_CALLS, f64::INFINITY, Box::new(|| self.timed(&executor, &markdown, &long_text))),
        ];
        let sample = |calls: usize, at_least: Duration, once: &dyn Fn() -> f64| {
            let (start, mut times) = (Instant::now(), Vec::new());
            while times.len() < calls || start.elapsed() < at_least {
                times.push(once());
                std::thread::sleep(Duration::from_micros(200));
            }
            times
        };
        let alone: Vec<_> = good.iter().map(|(_, calls, _, once)| sample(*calls, Duration::ZERO, once)).collect();

        let stop = Arc::new(AtomicBool::new(false));
        let loops: Vec<_> = (0..LOOPS)
            .map(|_| self.runtime.spawn(ended_again_and_again(executor.clone(), spin.clone(), Arc::clone(&stop))))
            .collect();
        let beside: Vec<_> = good.iter().map(|(_, calls, _, once)| sample(*calls, LONG_ENOUGH, once)).collect();
        stop.store(true, Ordering::Relaxed);
        let mut late = Vec::new();
        for task in loops {
            late.extend(self.runtime.block_on(task).context("a loop's task")?);
        }

        let mut out = std::io::stdout().lock();
        writeln!(out, "\nbeside {LOOPS} infinite loops, cells runtime, microseconds")?;
        for (((name, _, most, _), mut alone), mut beside) in good.iter().zip(alone).zip(beside) {
            let [alone, beside] =
                [&mut alone, &mut beside].map(|times| [50.0, 99.0].map(|part| percentile(times, part)));
            let slip = beside[1] / alone[1];
            let target = match slip <= *most {
                _ if most.is_infinite() => String::new(),
                is_met => format!(" (target <= {most} x: {})", if is_met { "met" } else { "missed" }),
            };
            writeln!(
                out,
                "  {name}: p50 {:.1}, p99 {:.1}; alone p50 {:.1}, p99 {:.1}; slip at p99 {slip:.1} x{target}",
                beside[0], beside[1], alone[0], alone[1],
            )?;
        }
        let [p50, p99, max] = [50.0, 99.0, 100.0].map(|part| percentile(&mut late, part));
        let calls = late.len();
        writeln!(out, "  a limit of 50 ms: p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms over {calls} calls")?;
        Ok(())
    }

    /// Microseconds of a good call.
    fn timed(&self, executor: &Executor, tool: &Tool, arguments: &str) -> f64 {
        let start = Instant::now();
        let answered = self.runtime.block_on(executor.call(tool, to(tool, arguments), CallOptions::default()));
        assert!(answered.result.value().is_some(), "{answered:?}");
        start.elapsed().as_secs_f64() * 1e6
    }
}

/// Calls a loop that ends after 50 ms, and again: milliseconds until each had its end.
async fn ended_again_and_again(executor: Executor, spin: Tool, stop: Arc<AtomicBool>) -> Vec<f64> {
    let mut late = Vec::new();
    let limits = Limits::unlimited().with_timeout(Duration::from_millis(50));
    while !stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        let ended = executor.call(&spin, to(&spin, TEXT), CallOptions::default().with_limits(limits)).await;
        late.push(start.elapsed().as_secs_f64() * 1e3);
        let expected = matches!(ended.result, CallResult::ToolError(ToolError::Timeout(Timeout::Deadline { .. })));
        assert!(expected, "{ended:?}");
    }
    late
}

/// Calls per second of this many threads.
fn rate(call: &(dyn Fn() + Sync), threads: usize) -> f64 {
    let done = AtomicU64::new(0);
    let start = Instant::now();
    let until = start + Duration::from_millis(300);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut calls = 0;
                while Instant::now() < until {
                    call();
                    calls += 1;
                }
                done.fetch_add(calls, Ordering::Relaxed);
            });
        }
    });
    done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

fn to(tool: &Tool, arguments: &str) -> ToolCall {
    ToolCall::new("call-1", tool.definition().name.as_str(), arguments)
}

fn table(title: &str, summaries: &[Summary], targets: &[f64]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{title}: {ROUNDS} rounds of {CALLS} calls, microseconds")?;
    writeln!(out, "  {:32} {:>8} {:>8} {:>8} {:>17}  target", "", "p50", "p99", "x floor", "p50 of rounds")?;
    let floor = summaries.first().map_or(f64::NAN, |floor| floor.p50);
    for (index, summary) in summaries.iter().enumerate() {
        let target = match index.checked_sub(1).and_then(|index| targets.get(index)) {
            Some(target) if target.is_finite() => {
                format!("<= {target} x: {}", if summary.p50 / floor <= *target { "met" } else { "missed" })
            }
            _ => String::new(),
        };
        let Summary { name, p50, p99, spread } = summary;
        let ratio = p50 / floor;
        writeln!(out, "  {name:32} {p50:8.2} {p99:8.2} {ratio:8.2} {:8.2} {:8.2}  {target}", spread.0, spread.1)?;
    }
    Ok(())
}
