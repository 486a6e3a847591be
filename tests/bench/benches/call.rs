//! Measures one call against raw wasmtime with the same guest in the same run.
//!
//! `cargo bench --workspace --profile dev --bench call`

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::runtime::{Builder, Runtime};
use toolcell::runtime::Placement;
use toolcell::{Engine, Executor, Tool};
use toolcell_benches::floor::Floor;
use toolcell_benches::timing::{Contender, Summary, interleaved, percentile};
use toolcell_benches::tools::{must_answer, optimised};
use toolcell_test_guests::{Answer, Hostile};

const ROUNDS: usize = 15;
const CALLS: usize = 2000;
const TEXT: &str = r#"{"text":"hello"}"#;
const SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string","maxLength":1000}},"required":["text"]}"#;
const SUM: &str = r#"{"expression":"2 * (3 + 4) - sqrt(16)"}"#;

fn main() -> Result<()> {
    let bench = Bench::new()?;
    bench.one_call("tiny echo guest", &echo().component(), ("hostile", TEXT), 2.0)?;
    let calculator = toolcell_test_guests::bytes("calculator");
    let title = "calculator (Rust, JSON in and out)";
    bench.one_call(title, &calculator, ("calculator", SUM), 1.25)?;
    bench.two_threads()
}

fn echo() -> Hostile {
    Hostile { parameters: Some(SCHEMA), ..Hostile::answering(Answer::Echo) }
}

/// The caller's side, with a runtime that is not the engine's.
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
        self.runtime.block_on(optimised(engine, bytes, name))
    }

    /// Measures a call. The target is the ratio of an inline call to the floor.
    fn one_call(
        &self,
        title: &str,
        bytes: &[u8],
        (name, arguments): (&str, &str),
        target: f64,
    ) -> Result<()> {
        let floor = Floor::new(bytes, name)?;
        let (inline, cells) =
            (self.tool(&self.inline, bytes, name)?, self.tool(&self.cells, bytes, name)?);
        let executor = Executor::new();
        let call = |tool: &Tool| self.runtime.block_on(must_answer(&executor, tool, arguments));
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
        table(title, &summaries, target)
    }

    /// Compares calls per second of two threads with those of one, inline and raw.
    fn two_threads(&self) -> Result<()> {
        let bytes = echo().component();
        let (tool, floor) =
            (self.tool(&self.inline, &bytes, "hostile")?, Floor::new(&bytes, "hostile")?);
        let executor = Executor::new();
        let raw = || {
            floor.call(TEXT).expect("a good call");
        };
        let inline = || futures_executor::block_on(must_answer(&executor, &tool, TEXT));
        let mut out = std::io::stdout().lock();
        writeln!(out, "\ntwo threads against one, calls per second (target: at least 1.25 x)")?;
        for (name, call) in
            [("raw wasmtime", &raw as &(dyn Fn() + Sync)), ("Executor::call, inline", &inline)]
        {
            let mut gains: Vec<f64> = (0..ROUNDS).map(|_| rate(call, 2) / rate(call, 1)).collect();
            let [low, p50, high] = [0.0, 50.0, 100.0].map(|part| percentile(&mut gains, part));
            writeln!(out, "  {name:32} {p50:.2} x   spread {low:.2} to {high:.2}")?;
        }
        Ok(())
    }
}

/// Returns calls per second of this many threads together.
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

fn table(title: &str, summaries: &[Summary], target: f64) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{title}: {ROUNDS} rounds of {CALLS} calls, microseconds")?;
    let columns = "     p50      p99  x floor     p50 of rounds  target";
    writeln!(out, "  {:32} {columns}", "")?;
    let floor = summaries.first().map_or(f64::NAN, |floor| floor.p50);
    for (index, summary) in summaries.iter().enumerate() {
        let Summary { name, p50, p99, spread: (low, high) } = summary;
        let ratio = p50 / floor;
        let verdict = if ratio <= target { "met" } else { "missed" };
        let target = if index == 1 { format!("<= {target} x: {verdict}") } else { String::new() };
        write!(out, "  {name:32} {p50:8.2} {p99:8.2} {ratio:8.2}")?;
        writeln!(out, " {low:8.2} {high:8.2}  {target}")?;
    }
    Ok(())
}
