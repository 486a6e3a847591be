//! What came of the attempts of one theatre, in one process.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Kinds of failure that are told one by one; the rest is counted.
const KEPT: usize = 200;
/// Microseconds of the longest time that is told from longer ones: a day.
const LONGEST: u64 = 86_400_000_000;
/// Characters of a failure's detail.
const DETAIL: usize = 400;

/// What must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The process died.
    Death,
    /// No end came.
    Hang,
    /// Something was not given back.
    Leak,
    /// A connection to where none may go.
    Connection,
    /// A secret, or a file from outside, where it may not be.
    Canary,
    /// It took too long.
    Slow,
    /// It ended otherwise than it should.
    Wrong,
}

/// Failures of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) theatre: String,
    pub(crate) fault: Fault,
    pub(crate) what: String,
    /// How often.
    pub(crate) count: u64,
    /// The first one.
    pub(crate) case: u64,
    pub(crate) detail: String,
}

/// Records a time, of whatever length: `saturating_record` would cut it off where the histogram
/// ends as yet.
pub(crate) fn record(times: &mut Histogram<u64>, time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(LONGEST);
    times.record(micros.min(LONGEST)).expect("it grows");
}

/// What came of the attempts so far.
pub(crate) struct Tally {
    theatre: String,
    pub(crate) case: u64,
    pub(crate) tried: u64,
    pub(crate) failed: u64,
    /// Of the failed ones, those that only took too long: a busy machine makes them too.
    pub(crate) slow: u64,
    pub(crate) connections: u64,
    pub(crate) canaries: u64,
    pub(crate) permits: i64,
    /// How much later than its deadline a call ended, in microseconds.
    pub(crate) overruns: Histogram<u64>,
    /// Latency of others while the attack went on, over that without it.
    pub(crate) slip: Option<f64>,
    pub(crate) findings: Vec<Finding>,
}

impl Tally {
    pub(crate) fn new(theatre: String) -> Self {
        Self {
            theatre,
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

    /// An attempt that ended as it should.
    pub(crate) fn survived(&mut self) {
        self.tried += 1;
    }

    /// An attempt that did not.
    pub(crate) fn failed(
        &mut self,
        fault: Fault,
        what: impl Into<String>,
        detail: impl Into<String>,
    ) {
        self.tried += 1;
        self.failed += 1;
        match fault {
            Fault::Connection => self.connections += 1,
            Fault::Canary => self.canaries += 1,
            Fault::Slow => self.slow += 1,
            Fault::Death | Fault::Hang | Fault::Leak | Fault::Wrong => {}
        }
        self.note(fault, what, detail);
    }

    /// A failure that is no attempt's own.
    pub(crate) fn note(
        &mut self,
        fault: Fault,
        what: impl Into<String>,
        detail: impl Into<String>,
    ) {
        let (what, detail) = (what.into(), detail.into().chars().take(DETAIL).collect());
        let known = |finding: &&mut Finding| finding.fault == fault && finding.what == what;
        if let Some(finding) = self.findings.iter_mut().find(known) {
            finding.count += 1;
        } else if self.findings.len() < KEPT {
            let (theatre, case) = (self.theatre.clone(), self.case);
            self.findings.push(Finding { theatre, fault, what, count: 1, case, detail });
        }
    }

    /// Survived, or why not.
    pub(crate) fn judged(&mut self, judgement: Result<(), (Fault, String, String)>) {
        match judgement {
            Ok(()) => self.survived(),
            Err((fault, what, detail)) => self.failed(fault, what, detail),
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
    fn long_times_are_told() {
        let mut tally = Tally::new(String::new());
        tally.overran(Duration::from_secs(90));
        tally.overran(Duration::MAX);
        assert!(tally.overruns.min() > 89_000_000 && tally.overruns.max() > LONGEST / 2);
    }
}
