//! The report of a campaign: a table, the figures that must hold, and each failure with the command
//! that runs it again.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::fixture::Fixture;
use crate::tally::{Finding, Tally};

/// Milliseconds by which calls may end after their deadline: at p99, and at most. Source: the
/// campaign's figures.
const OVERRUN: (f64, f64) = (25.0, 250.0);
/// Bytes that a thousand calls may leave behind.
const SLOPE: f64 = 1024.0;
/// Factor by which the latency of other calls may grow while a bomb is compiled.
const SLIP: f64 = 2.0;

/// Resources that were not given back, and peak memory.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) fds: i64,
    pub(crate) threads: i64,
    pub(crate) files: i64,
    /// Bytes of growth per thousand attempts; absent with too few attempts.
    pub(crate) slope: Option<f64>,
    pub(crate) peak: u64,
    pub(crate) bound: u64,
}

/// The results of one scenario.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) theatre: String,
    pub(crate) tried: u64,
    pub(crate) survived: u64,
    /// Attempts that ended as they should, but too late.
    pub(crate) slow: u64,
    pub(crate) deaths: u64,
    /// Calls that their deadline ended; the overruns below are in milliseconds.
    pub(crate) late: u64,
    pub(crate) overrun_p99: f64,
    pub(crate) overrun_max: f64,
    #[serde(flatten)]
    pub(crate) spent: Spent,
    pub(crate) permits: i64,
    pub(crate) connections: u64,
    pub(crate) canaries: u64,
    pub(crate) slip: Option<f64>,
    pub(crate) findings: Vec<Finding>,
}

impl Row {
    pub(crate) fn of(tally: &Tally, spent: Spent) -> Self {
        let millis = |micros: u64| micros as f64 / 1000.0;
        Self {
            tried: tally.tried,
            survived: tally.tried - tally.failed,
            slow: tally.slow,
            late: tally.overruns.len(),
            overrun_p99: millis(tally.overruns.value_at_quantile(0.99)),
            overrun_max: millis(tally.overruns.max()),
            spent,
            permits: tally.permits,
            connections: tally.connections,
            canaries: tally.canaries,
            slip: tally.slip,
            findings: tally.findings.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn none(theatre: String) -> Self {
        Self { theatre, ..Self::default() }
    }

    /// Adds the results of another process of the same scenario.
    pub(crate) fn add(&mut self, other: Self) {
        self.tried += other.tried;
        self.survived += other.survived;
        self.slow += other.slow;
        self.late += other.late;
        self.overrun_p99 = self.overrun_p99.max(other.overrun_p99);
        self.overrun_max = self.overrun_max.max(other.overrun_max);
        let (own, their) = (&mut self.spent, other.spent);
        own.fds += their.fds.max(0);
        own.threads += their.threads.max(0);
        own.files += their.files.max(0);
        own.slope = own.slope.or(their.slope);
        own.peak = own.peak.max(their.peak);
        own.bound = own.bound.max(their.bound);
        self.permits += other.permits;
        self.connections += other.connections;
        self.canaries += other.canaries;
        self.slip = larger(self.slip, other.slip);
        self.findings.extend(other.findings);
    }

    /// Returns the figures that do not hold: first the counts, then those that depend on the load
    /// of the machine.
    fn failed_figures(&self) -> (Vec<String>, Vec<String>) {
        let Spent { fds, threads, files, .. } = self.spent;
        let leaks: i64 = [fds, threads, files, self.permits].map(|count| count.max(0)).iter().sum();
        let counts = [
            (self.deaths, "process deaths"),
            (self.connections, "forbidden connections"),
            (self.canaries, "canary hits"),
            (leaks.unsigned_abs(), "leaks"),
            (self.tried - self.survived - self.slow, "attempts that did not end as they should"),
        ];
        let broken = counts.iter().filter(|(count, _)| *count > 0);
        let firm = broken.map(|(count, what)| format!("{}: {count} {what}", self.theatre));
        let mut timed = Vec::new();
        let mut over = |value: f64, bound: f64, what: &str| {
            if value > bound {
                timed.push(format!("{}: {what} {value:.1}, over {bound}", self.theatre));
            }
        };
        over(self.overrun_p99, OVERRUN.0, "ms of overrun, p99");
        over(self.overrun_max, OVERRUN.1, "ms of overrun at most");
        over(self.spent.slope.unwrap_or(0.0), SLOPE, "bytes left by a thousand attempts");
        over(self.spent.peak as f64, Fixture::bound() as f64, "bytes of memory");
        over(self.slip.unwrap_or(0.0), SLIP, "times the latency of others");
        over(self.slow as f64, 0.0, "attempts that ended too late");
        (firm.collect(), timed)
    }
}

/// Returns the larger of the values that are present.
pub(crate) fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

/// The results of a campaign.
#[derive(Debug, Serialize)]
pub struct Report {
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) rows: Vec<Row>,
    /// Figures that do not hold and do not depend on the load of the machine.
    pub(crate) broken: Vec<String>,
    /// Figures of time and memory that do not hold: a busy or small machine can cause them too.
    pub(crate) broken_times: Vec<String>,
}

impl Report {
    pub(crate) fn new(seed: u64, seconds: f64, rows: Vec<Row>) -> Self {
        let (broken, times): (Vec<_>, Vec<_>) = rows.iter().map(Row::failed_figures).unzip();
        Self { seed, seconds, rows, broken: broken.concat(), broken_times: times.concat() }
    }

    /// Returns true if every figure holds.
    pub fn holds(&self) -> bool {
        self.broken.is_empty() && self.broken_times.is_empty()
    }

    /// Returns the opening line: the seed, and the memory that no process of the campaign may
    /// exceed.
    pub fn opening(seed: u64) -> String {
        let bound = Fixture::bound() >> 20;
        format!("seed {seed}; no process may have more than {bound} MiB in memory\n")
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data")
    }

    /// Returns the report as a table for people.
    pub fn text(&self) -> String {
        let heads = cells(&Row::default()).map(|(head, _)| head.to_owned());
        let mut lines = vec![heads];
        lines.extend(self.rows.iter().map(|row| cells(row).map(|(_, cell)| cell)));
        let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
        let widths: Vec<_> = (0..lines[0].len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let padded = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            });
            let _ = writeln!(text, "{}", padded.collect::<Vec<_>>().join("  ").trim_end());
        }
        let count = |of: fn(&Row) -> u64| self.rows.iter().map(of).sum::<u64>();
        let _ = writeln!(text, "{} attempts in {:.0} s", count(|row| row.tried), self.seconds);
        for Finding { theatre, fault, what, count, case, detail } in
            self.rows.iter().flat_map(|row| &row.findings)
        {
            let fault = format!("{fault:?}").to_lowercase();
            let _ = writeln!(text, "\n{fault} in {theatre}: {what} ({count} times)");
            let _ = writeln!(text, "  {}", detail.replace('\n', "\n  "));
            let command = format!("cargo xtask attack --seed {}", self.seed);
            let _ = writeln!(text, "  {command} --only {theatre} --case {case}");
        }
        for broken in self.broken.iter().chain(&self.broken_times) {
            let _ = writeln!(text, "\nDOES NOT HOLD: {broken}");
        }
        let every = if self.holds() { "every" } else { "not every" };
        let _ = writeln!(text, "\n{every} figure holds");
        text
    }
}

/// Returns the columns of the table: their heads, and the cells of a row.
fn cells(row: &Row) -> [(&'static str, String); 16] {
    let some = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.1}"));
    let late = |value: f64| some((row.late > 0).then_some(value));
    let spent = row.spent;
    [
        ("theatre", row.theatre.clone()),
        ("tried", row.tried.to_string()),
        ("survived", row.survived.to_string()),
        ("deaths", row.deaths.to_string()),
        ("late", row.late.to_string()),
        ("p99 ms", late(row.overrun_p99)),
        ("max ms", late(row.overrun_max)),
        ("fds", spent.fds.max(0).to_string()),
        ("threads", spent.threads.max(0).to_string()),
        ("permits", row.permits.to_string()),
        ("files", spent.files.max(0).to_string()),
        ("B/1000", some(spent.slope)),
        ("MiB", format!("{}/{}", spent.peak >> 20, spent.bound >> 20)),
        ("forbidden", row.connections.to_string()),
        ("canaries", row.canaries.to_string()),
        ("slip", some(row.slip)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Fault;

    /// A busy machine can make an attempt slow, and cause no other fault.
    #[test]
    fn slow_attempt_counts_as_a_timing_figure() {
        for (fault, firm, timed) in [(Fault::Slow, 0, 1), (Fault::Wrong, 1, 0), (Fault::Hang, 1, 0)]
        {
            let mut tally = Tally::new("bombs".into());
            tally.record_result(Err((fault, String::new(), String::new())));
            let (counts, times) = Row::of(&tally, Spent::default()).failed_figures();
            let found = (counts.len(), times.len());
            assert_eq!(found, (firm, timed), "{fault:?}: {counts:?} {times:?}");
        }
    }
}
