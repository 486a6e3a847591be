//! Measures the latency of good calls beside hostile ones, on the cells runtime of one engine.
//!
//! Without the two lanes, the fair queue and the latency classes, the 99th percentile of an echo
//! beside 64 loops that end and begin again every 50 ms was 48 times its value without neighbours
//! (median of ten runs, kernel 6.18).
//!
//! `cargo bench --workspace --profile dev --bench neighbours`

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};
use toolcell::outcome::Timeout;
use toolcell::runtime::Placement;
use toolcell::{
    CallContext, CallOptions, CallResult, Engine, Executor, Limits, Refusal, Tool, ToolError,
};
use toolcell_benches::timing::percentile;
use toolcell_benches::tools::{optimised, to};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};

const TEXT: &str = r#"{"text":"hello"}"#;
/// Paragraphs of a text whose conversion takes some milliseconds.
const PARAGRAPHS: usize = 2_000;
/// Minimum time of a sample beside hostile calls, so that each of them ends many times.
const LONG_ENOUGH: Duration = Duration::from_secs(4);
/// Pause between two good calls.
const PAUSE: Duration = Duration::from_micros(200);

/// A set of hostile calls, each of which starts again when it ends.
struct Crowd {
    title: &'static str,
    calls: usize,
    tenant: Option<&'static str>,
    limit: Duration,
    /// Number of tenants that make the good calls in turn; 0: calls without a tenant.
    others: usize,
    /// Factor by which the p99 of short good calls may grow.
    slip: f64,
}

const CROWDS: [Crowd; 2] = [
    Crowd {
        title: "docs/threat-model.md, row 1: 64 infinite loops that end every 50 ms, all at once",
        calls: 64,
        tenant: None,
        limit: Duration::from_millis(50),
        others: 0,
        slip: 3.0,
    },
    Crowd {
        title: "docs/threat-model.md, row 56: one tenant with ten times as many loops as there are cells, and nine others",
        calls: 10 * Engine::DEFAULT_CELLS as usize,
        tenant: Some("abuser"),
        limit: Duration::from_secs(1),
        others: 9,
        slip: 2.0,
    },
];

fn main() -> Result<()> {
    let bench = Bench::new()?;
    CROWDS.iter().try_for_each(|crowd| bench.beside(crowd))
}

/// The caller's side, with a runtime that is not the engine's.
struct Bench {
    runtime: Runtime,
    executor: Executor,
    echo: Tool,
    markdown: Tool,
    spin: Tool,
}

/// A good tool: a title, the tool, its arguments, and the minimum number of calls.
type Good<'a> = (&'static str, &'a Tool, &'a str, usize);

impl Bench {
    fn new() -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
        let engine = Engine::builder().placement(Placement::Cells).build()?;
        let tool = |bytes: Vec<u8>, name: &str| runtime.block_on(optimised(&engine, &bytes, name));
        let echo = tool(Hostile::answering(Answer::Echo).component(), "hostile")?;
        let markdown = tool(toolcell_test_guests::bytes("markdown"), "markdown_to_text")?;
        let spin = tool(Hostile::new(Place::Execute, Misdeed::Spin).component(), "hostile")?;
        let executor = Executor::new().with_limits(Limits { fuel: u64::MAX, ..Limits::default() });
        Ok(Self { runtime, executor, echo, markdown, spin })
    }

    /// Measures good calls without and with a crowd, and prints both.
    fn beside(&self, crowd: &Crowd) -> Result<()> {
        let text =
            format!(r#"{{"markdown":"{}"}}"#, r"some *text* and `more`\n\n".repeat(PARAGRAPHS));
        let good: [Good<'_>; 2] =
            [("a short call", &self.echo, TEXT, 2000), ("a long call", &self.markdown, &text, 300)];
        let alone = good.map(|good| self.sample(good, crowd.others, Duration::ZERO));
        let stop = Arc::new(AtomicBool::new(false));
        let hostile: Vec<_> =
            (0..crowd.calls).map(|_| self.runtime.spawn(self.hostile(crowd, &stop))).collect();
        let beside = good.map(|good| self.sample(good, crowd.others, LONG_ENOUGH));
        stop.store(true, Ordering::Relaxed);
        let mut late = Vec::new();
        for task in hostile {
            late.extend(self.runtime.block_on(task).context("a hostile call's task")?);
        }

        let mut out = std::io::stdout().lock();
        let columns = "microseconds    alone p50      p99 beside p50      p99";
        writeln!(out, "\n{}\n  {columns}", crowd.title)?;
        for (number, ((name, ..), (mut alone, mut beside))) in
            good.iter().zip(alone.into_iter().zip(beside)).enumerate()
        {
            let [alone, beside] = [&mut alone, &mut beside]
                .map(|times| [50.0, 99.0].map(|part| percentile(times, part)));
            let slip = beside[1] / alone[1];
            let verdict = if slip <= crowd.slip { "met" } else { "missed" };
            let target = format!(" (target <= {} x: {verdict})", crowd.slip);
            let target = if number == 0 { target } else { String::new() };
            writeln!(
                out,
                "  {name:14} {:10.1} {:8.1} {:10.1} {:8.1}  slip {slip:.1} x{target}",
                alone[0], alone[1], beside[0], beside[1],
            )?;
        }
        let [p50, p99, max] = [50.0, 99.0, 100.0].map(|part| percentile(&mut late, part));
        let (limit, calls) = (crowd.limit.as_millis(), late.len());
        writeln!(
            out,
            "  the limit of {limit} ms: p50 {p50:.1}, p99 {p99:.1}, max {max:.1} ms, {calls} calls that ran"
        )?;
        Ok(())
    }

    /// Returns the times of good calls in microseconds.
    fn sample(
        &self,
        (_, tool, arguments, calls): Good<'_>,
        tenants: usize,
        at_least: Duration,
    ) -> Vec<f64> {
        let options: Vec<_> = match tenants {
            0 => vec![CallOptions::default()],
            _ => (0..tenants).map(|number| of(&format!("tenant {number}"))).collect(),
        };
        let (start, mut times) = (Instant::now(), Vec::new());
        while times.len() < calls || start.elapsed() < at_least {
            let options = options[times.len() % options.len()].clone();
            let start = Instant::now();
            let answered =
                self.runtime.block_on(self.executor.call(tool, to(tool, arguments), options));
            times.push(start.elapsed().as_secs_f64() * 1e6);
            assert!(answered.result.value().is_some(), "{answered:?}");
            std::thread::sleep(PAUSE);
        }
        times
    }

    /// Calls a loop until its time limit, again and again. Returns the milliseconds to the end of
    /// each call that had a cell.
    fn hostile(
        &self,
        crowd: &Crowd,
        stop: &Arc<AtomicBool>,
    ) -> impl Future<Output = Vec<f64>> + Send + 'static {
        let (executor, spin, stop) = (self.executor.clone(), self.spin.clone(), Arc::clone(stop));
        let limits = Limits { timeout: crowd.limit, ..Limits::unlimited() };
        let options = CallOptions { limits, ..crowd.tenant.map_or_else(CallOptions::default, of) };
        async move {
            let mut late = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                let ended = executor.call(&spin, to(&spin, TEXT), options.clone()).await;
                match ended.result {
                    CallResult::ToolError(ToolError::Timeout(Timeout::Deadline { .. })) => {
                        late.push(start.elapsed().as_secs_f64() * 1e3);
                    }
                    CallResult::Refusal(Refusal::Overloaded { .. }) => {}
                    CallResult::Outcome(_) | CallResult::ToolError(_) | CallResult::Refusal(_) => {
                        unreachable!("{ended:?}")
                    }
                }
            }
            late
        }
    }
}

fn of(tenant: &str) -> CallOptions {
    let mut context = CallContext::default();
    context.tenant = Some(tenant.to_owned());
    CallOptions { context: context.into(), ..CallOptions::default() }
}
