//! The child process of a campaign: runs one scenario, and announces each case before it runs it.

mod resources;

use std::io::Write as _;
use std::time::{Duration, Instant};
use std::{env, panic};

use serde::{Deserialize, Serialize};

use super::options::ScenarioArgs;
use super::{Scenario, set_up};
use crate::fixture::Fixture;
use crate::report::{Row, Spent};
use crate::tally::{Fault, Tally};
use resources::{Reading, memory, slope};

/// Interval between reports of the tally: a death loses at most this much.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Part of the time, and of the cases, after which everything that is allocated once exists.
const WARM: f64 = 0.2;
/// Attempts from which on a slope is more than noise.
const MIN_ATTEMPTS: u64 = 10_000;
/// The message of handlers that panic on purpose.
pub(crate) const DELIBERATE_PANIC: &str = "as told";

/// A line from child to parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// The next case: its position in the order, and its number.
    Case(u64, u64),
    /// The results so far.
    SoFar(Row),
    /// The results of the whole run.
    Over(Row),
}

fn print_line(line: &Line) {
    let mut out = std::io::stdout().lock();
    let text = serde_json::to_string(line).expect("a line is JSON");
    // Without a parent there is nothing left to do.
    if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
        panic!("the parent does not listen");
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the case at a position of this seed's order, which spreads a table's cases so that a
/// short run has some of every part.
fn case_at(position: u64, cases: Option<u64>, seed: u64) -> u64 {
    let Some(cases) = cases else { return position };
    let stride = (cases * 382 / 1000..)
        .find(|stride| *stride > 0 && common_divisor(*stride, cases) == 1)
        .unwrap_or(1);
    ((u128::from(position) * u128::from(stride) + u128::from(seed % cases)) % u128::from(cases))
        as u64
}

/// Runs one scenario to its end, and reports to standard output.
///
/// # Panics
/// If the scenario cannot be set up, or the parent does not read: the parent counts a death.
pub fn run_scenario(options: &ScenarioArgs) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(DELIBERATE_PANIC) {
            usual(info);
        }
    }));
    let program = env::current_exe().expect("this program");
    let (cache, temp) = (program.with_file_name("attack-cache"), env::temp_dir());
    let stage = Fixture { seed: options.seed, program, cache, temp };
    let mut theatre = set_up(options.theatre, &stage);
    let row = run_cases(options, &stage, theatre.as_mut());
    drop(theatre);
    print_line(&Line::Over(row));
}

fn run_cases(options: &ScenarioArgs, stage: &Fixture, theatre: &mut dyn Scenario) -> Row {
    let name = options.theatre.text();
    let mut tally = Tally::new(name);
    let (began, mut told) = (Instant::now(), Instant::now());
    let mut baseline = None;
    let mut samples = Vec::new();
    let mut position = options.from;
    loop {
        let played = position - options.from;
        let part = (began.elapsed().as_secs_f64() / options.seconds)
            .min(played as f64 / options.least.max(1) as f64);
        let table_is_over = theatre.cases().is_some_and(|cases| position >= cases);
        if part >= 1.0
            || (options.case.is_some() && played > 0)
            || (options.case.is_none() && table_is_over)
        {
            break;
        }
        if baseline.is_none() && part >= WARM {
            baseline = Some((Reading::now(&stage.temp), tally.tried));
        }
        tally.case =
            options.case.unwrap_or_else(|| case_at(position, theatre.cases(), options.seed));
        print_line(&Line::Case(position, tally.case));
        theatre.attempt(tally.case, &mut tally);
        position += 1;
        if baseline.is_some() {
            samples.push((tally.tried as f64, memory().0 as f64));
        }
        if told.elapsed() > REPORT_INTERVAL {
            told = Instant::now();
            print_line(&Line::SoFar(Row::of(&tally, Spent::default())));
        }
    }
    theatre.close(&mut tally);
    let mut spent = Spent { bound: Fixture::bound(), peak: memory().1, ..Spent::default() };
    if let Some((baseline, tried)) = baseline {
        let over = Reading::after_settling(baseline, &stage.temp);
        (spent.fds, spent.threads, spent.files) = (over.fds, over.threads, over.files);
        if tally.tried - tried >= MIN_ATTEMPTS {
            spent.slope = slope(&samples[samples.len() / 2..]);
        }
        for (what, count) in [
            ("file descriptors", over.fds),
            ("threads", over.threads),
            ("temporary files", over.files),
        ] {
            if count > 0 {
                let detail = format!("{count} over the {baseline:?} after {tried} attempts");
                tally.note((Fault::Leak, what.to_owned(), detail));
            }
        }
    }
    Row::of(&tally, spent)
}

/// Compiles one component for the process that started this one. Returns the exit code.
pub fn compile(order: &str) -> u8 {
    let (input, output, complaints) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    toolcell::runtime::compile_worker(order, input.lock(), output.lock(), complaints.lock())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_of_a_table_comes_once() {
        for (cases, seed) in [(1, 0), (2, 7), (180, 3), (630, u64::MAX)] {
            let mut all: Vec<_> =
                (0..cases).map(|position| case_at(position, Some(cases), seed)).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..cases), "{cases}");
        }
        assert_eq!(case_at(7, None, 1), 7);
    }
}
