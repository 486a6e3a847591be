//! Counts a tool's calls, their results and their times.
//!
//! A [`Counting`] is created when a call begins and is told how it ended; if it is dropped before
//! that, the call counts as cancelled. [`Counters`] add up successes, failures and panics, and keep
//! a histogram of latencies, accurate to 1 %, in a few KiB for each tool. An embedder (the program
//! that uses this library) or a server reads [`Statistics`] and the [`LastError`] from the tool.
//! Refused and cancelled calls have counts of their own and affect no other number.
//!
//! Source: docs/contract.md, section 4.

use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use toolcell_contract::call::Completion;
use toolcell_contract::message::failure::Failure;
use toolcell_contract::outcome::tool_error::{Exit, Reason, ToolError};

/// Significant figures of a recorded latency: an error of 1 % at most, in a few KiB for each tool.
const FIGURES: u8 = 2;
/// The maximum number of characters that are kept of the last error's message.
const MESSAGE_CHARS: usize = 1000;

/// Statistics of a tool's calls, since it was made or its statistics were cleared.
///
/// # Units
/// Times are wall time of whole calls.
///
/// # Shape
/// As JSON: its fields by name, and `average_us` and `success_rate`, which is null if no call was
/// made. Times are whole microseconds in fields that end in `_us`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Calls that ran and ended: successes and failures.
    pub count: u64,
    /// Calls whose handler answered ok, with a question or with a halt, and whose answer could be
    /// encoded.
    pub success: u64,
    /// All other calls that ran.
    pub failure: u64,
    /// Failures by a panic in this process: of the host while it ran the tool, or of a native
    /// handler.
    pub panics: u64,
    /// Calls that were refused before the handler ran. They are not in `count` or any other number
    /// here.
    pub refused: u64,
    /// Calls that were cancelled. They are not in `count` or any other number here.
    pub cancelled: u64,
    /// The total time of the calls in `count`.
    pub total: Duration,
    /// The median time of a call, within 1 %.
    pub p50: Duration,
    /// The 95th percentile of the times, within 1 %.
    pub p95: Duration,
    /// The 99th percentile of the times, within 1 %.
    pub p99: Duration,
}

impl Statistics {
    /// Returns the average time of a call; zero if no call was made.
    #[must_use]
    pub fn average(&self) -> Duration {
        let nanos = self.total.as_nanos().checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the share of successes among the calls that ran, from 0 to 1; `None` if no call was
    /// made.
    #[must_use]
    pub fn success_rate(&self) -> Option<f64> {
        (self.count > 0).then(|| self.success as f64 / self.count as f64)
    }
}

/// The last failure that a tool's statistics count.
///
/// It contains text of one call: show it to the operator, not to another tenant.
///
/// # Shape
/// As JSON: `{"reason", "message"}`; the reason is `null` if the handler itself reported the
/// failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LastError {
    /// The reason of the tool error. `None` if the handler itself reported the failure.
    pub reason: Option<Reason>,
    /// The first thousand characters of the failure's text.
    pub message: String,
}

impl Serialize for Statistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { count, success, failure, panics, refused, cancelled, total, p50, p95, p99 } =
            *self;
        let mut fields = serializer.serialize_struct("Statistics", 12)?;
        fields.serialize_field("count", &count)?;
        fields.serialize_field("success", &success)?;
        fields.serialize_field("failure", &failure)?;
        fields.serialize_field("success_rate", &self.success_rate())?;
        fields.serialize_field("panics", &panics)?;
        fields.serialize_field("refused", &refused)?;
        fields.serialize_field("cancelled", &cancelled)?;
        fields.serialize_field("total_us", &micros(total))?;
        fields.serialize_field("average_us", &micros(self.average()))?;
        fields.serialize_field("p50_us", &micros(p50))?;
        fields.serialize_field("p95_us", &micros(p95))?;
        fields.serialize_field("p99_us", &micros(p99))?;
        fields.end()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The counters of the calls of one tool.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Option<Counted>>);

#[derive(Debug)]
struct Counted {
    /// Without the numbers that `times` gives.
    sums: Statistics,
    /// Microseconds.
    times: Histogram<u64>,
    last_error: Option<LastError>,
}

impl Counters {
    /// Counts one call with its wall time, and with its failure if it failed.
    pub(crate) fn record(&self, wall: Duration, failure: Option<&Failure>) {
        let (succeeded, panicked) = match failure {
            None => (true, false),
            Some(Failure::ToolError(ToolError::HandlerExit(Exit::Cancelled))) => {
                return self.record_cancelled();
            }
            Some(Failure::Refusal(_)) => return self.count(|counted| counted.sums.refused += 1),
            Some(Failure::ToolError(ToolError::HandlerRaised(raised))) => {
                (false, raised.kind.is_panic())
            }
            Some(Failure::Error(_) | Failure::ToolError(_)) => (false, false),
        };
        self.count(|counted| {
            counted.sums.success += u64::from(succeeded);
            counted.sums.failure += u64::from(!succeeded);
            counted.sums.panics += u64::from(panicked);
            counted.sums.total = counted.sums.total.saturating_add(wall);
            if let Some(failure) = failure {
                let reason = if let Failure::ToolError(error) = failure {
                    Some(error.reason())
                } else {
                    None
                };
                let message = failure.to_string().chars().take(MESSAGE_CHARS).collect();
                counted.last_error = Some(LastError { reason, message });
            }
            // The histogram resizes itself, so that every value fits.
            let _ = counted.times.record(micros(wall));
        });
    }

    /// Counts a call that was dropped.
    pub(crate) fn record_cancelled(&self) {
        self.count(|counted| counted.sums.cancelled += 1);
    }

    /// Resets all counters.
    pub(crate) fn clear(&self) {
        *self.0.lock() = None;
    }

    fn count(&self, change: impl FnOnce(&mut Counted)) {
        let mut counted = self.0.lock();
        // Created with the first call: most registered tools are never called.
        if counted.is_none() {
            let times = Histogram::new(FIGURES).ok();
            let sums = Statistics::default();
            *counted = times.map(|times| Counted { sums, times, last_error: None });
        }
        if let Some(counted) = counted.as_mut() {
            change(counted);
        }
    }

    /// Returns the last failure that was counted.
    pub(crate) fn last_error(&self) -> Option<LastError> {
        self.0.lock().as_ref().and_then(|counted| counted.last_error.clone())
    }

    /// Returns the statistics until now.
    pub(crate) fn read(&self) -> Statistics {
        let counted = self.0.lock();
        let Some(counted) = counted.as_ref() else { return Statistics::default() };
        let at = |quantile| Duration::from_micros(counted.times.value_at_quantile(quantile));
        let count = counted.times.len();
        Statistics { count, p50: at(0.5), p95: at(0.95), p99: at(0.99), ..counted.sums }
    }
}

/// One call that is being counted: by its end, or as cancelled if it is dropped before that.
pub(crate) struct Counting<'a>(Option<&'a Counters>);

impl<'a> Counting<'a> {
    pub(crate) fn new(counters: &'a Counters) -> Self {
        Self(Some(counters))
    }

    /// Counts the end of the call, and returns the completion.
    pub(crate) fn end(self, completion: Completion) -> Completion {
        self.end_as(completion.usage.wall, completion.failure().as_ref());
        completion
    }

    /// Counts the end of the call, if the completion alone does not decide if it failed.
    pub(crate) fn end_as(mut self, wall: Duration, failure: Option<&Failure>) {
        if let Some(counters) = self.0.take() {
            counters.record(wall, failure);
        }
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        if let Some(counters) = self.0.take() {
            counters.record_cancelled();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcell_contract::outcome::HandlerError;
    use toolcell_contract::outcome::refusal::Refusal;

    use super::*;

    /// A hundred calls of 1 to 100 ms, unordered, ten of them failures; a cancelled and a refused
    /// call do not count.
    #[test]
    fn percentiles_and_rates_cover_only_calls_made() {
        let counters = Counters::default();
        let failure = Failure::Error(HandlerError::new("no"));
        for n in 0..100_u64 {
            let wall = Duration::from_millis(n * 37 % 100 + 1);
            counters.record(wall, Some(&failure).filter(|_| n % 10 == 0));
        }
        let cancelled = Failure::ToolError(ToolError::HandlerExit(Exit::Cancelled));
        for failure in [cancelled, Failure::Refusal(Refusal::NotAllowed)] {
            counters.record(Duration::from_secs(3600), Some(&failure));
        }
        let read = counters.read();
        let counts = [read.count, read.success, read.failure, read.refused, read.cancelled];
        assert_eq!((counts, read.success_rate()), ([100, 90, 10, 1, 1], Some(0.9)));
        assert_eq!(read.total, Duration::from_millis(5050));
        assert_eq!(read.average(), Duration::from_micros(50_500));
        for (percentile, millis) in [(read.p50, 50.0), (read.p95, 95.0), (read.p99, 99.0)] {
            let off = percentile.as_secs_f64() * 1000.0 / millis;
            assert!((0.99..=1.01).contains(&off), "{percentile:?} instead of {millis} ms");
        }
        let json = serde_json::to_value(read).unwrap();
        assert_eq!((&json["success_rate"], &json["average_us"]), (&json!(0.9), &json!(50_500)));
        assert_eq!(json["total_us"], 5_050_000);
        let none = serde_json::to_value(Statistics::default()).unwrap();
        assert_eq!((&none["success_rate"], &none["average_us"]), (&json!(null), &json!(0)));
    }
}
