//! The results of the attempts of one scenario in one process.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Kinds of failure that are listed; further kinds are only counted as failed attempts.
const MAX_FINDINGS: usize = 200;
/// Microseconds. Longer times are recorded as a day.
const MAX_LATENCY: u64 = 86_400_000_000;
/// Characters of a failure's detail.
const DETAIL: usize = 400;

/// A kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The process died.
    Death,
    /// The process stopped answering.
    Hang,
    /// A resource was not given back.
    Leak,
    /// A connection was made to a forbidden address.
    Connection,
    /// A secret, or a file from outside, appeared where it may not.
    Canary,
    /// The attempt took too long.
    Slow,
    /// The attempt ended in another way than it should.
    Wrong,
}

/// Failures of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) theatre: String,
    pub(crate) fault: Fault,
    pub(crate) what: String,
    /// Number of failures.
    pub(crate) count: u64,
    /// The case of the first failure.
    pub(crate) case: u64,
    pub(crate) detail: String,
}

/// A failed attempt: its fault, its kind in words, and details.
pub(crate) type Failure = (Fault, String, String);

/// Returns the failure of an attempt that ended in another way than it should.
pub(crate) fn wrong(what: impl Into<String>, detail: impl Into<String>) -> Failure {
    (Fault::Wrong, what.into(), detail.into())
}

/// Records a time of any length. `saturating_record` would cut it off at the current end of the
/// histogram, which grows.
pub(crate) fn record(times: &mut Histogram<u64>, time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(MAX_LATENCY);
    times.record(micros.min(MAX_LATENCY)).expect("it grows");
}

/// The results so far.
pub(crate) struct Tally {
    scenario: String,
    pub(crate) case: u64,
    pub(crate) tried: u64,
    pub(crate) failed: u64,
    /// Failed attempts that only took too long: a busy machine causes them too.
    pub(crate) slow: u64,
    pub(crate) connections: u64,
    pub(crate) canaries: u64,
    pub(crate) permits: i64,
    /// Time by which calls ended after their deadline, in microseconds.
    pub(crate) overruns: Histogram<u64>,
    /// Latency of other calls during the attack, divided by that before it.
    pub(crate) slip: Option<f64>,
    pub(crate) findings: Vec<Finding>,
}

impl Tally {
    pub(crate) fn new(theatre: String) -> Self {
        Self {
            scenario: theatre,
            case: 0,
            tried: 0,
            failed: 0,
            slow: 0,
            connections: 0,
            canaries: 0,
            permits: 0,
            overruns: Histogram::new(3).expect("three digits are possible"),
            slip: None,
            findings: Vec::new(),
        }
    }

    /// Counts an attempt that ended as it should.
    pub(crate) fn record_success(&mut self) {
        self.tried += 1;
    }

    /// Counts an attempt: as survived, or as failed with this fault.
    pub(crate) fn record_result(&mut self, judgement: Result<(), Failure>) {
        self.tried += 1;
        let Err(failure) = judgement else { return };
        self.failed += 1;
        match failure.0 {
            Fault::Connection => self.connections += 1,
            Fault::Canary => self.canaries += 1,
            Fault::Slow => self.slow += 1,
            Fault::Death | Fault::Hang | Fault::Leak | Fault::Wrong => {}
        }
        self.note(failure);
    }

    /// Adds a finding without counting an attempt.
    pub(crate) fn note(&mut self, (fault, what, detail): Failure) {
        let detail = detail.chars().take(DETAIL).collect();
        let known = |finding: &&mut Finding| finding.fault == fault && finding.what == what;
        if let Some(finding) = self.findings.iter_mut().find(known) {
            finding.count += 1;
        } else if self.findings.len() < MAX_FINDINGS {
            let (theatre, case) = (self.scenario.clone(), self.case);
            self.findings.push(Finding { theatre, fault, what, count: 1, case, detail });
        }
    }

    pub(crate) fn overran(&mut self, by: Duration) {
        record(&mut self.overruns, by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_recorded() {
        let mut tally = Tally::new(String::new());
        tally.overran(Duration::from_secs(90));
        tally.overran(Duration::MAX);
        assert!(tally.overruns.min() > 89_000_000 && tally.overruns.max() > MAX_LATENCY / 2);
    }
}
