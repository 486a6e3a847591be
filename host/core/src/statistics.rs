//! How a tool has fared so far.
//!
//! In: completions. Out: [`Statistics`].
//! Source: contract, section 4.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

use crate::call::{CallResult, Completion};
use crate::outcome::Outcome;
use crate::tool_error::{Exit, ToolError};

/// Significant figures of a latency that are kept: 1 % off at most, in a few KiB a tool.
const FIGURES: u8 = 2;

/// How a tool has fared since it was registered.
///
/// # Units
/// Times are wall time of whole calls.
///
/// # Shape
/// As JSON: its fields by name, times as whole microseconds in fields that end in `_us`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Calls that were made and ended: successes and failures.
    pub count: u64,
    /// Those that the handler answered with ok, a question or a halt.
    pub success: u64,
    /// All others of them.
    pub failure: u64,
    /// Calls that were refused before the handler ran. They say nothing of the tool, and count for nothing else here.
    pub refused: u64,
    /// Calls that somebody cancelled, likewise.
    pub cancelled: u64,
    /// The time of all calls together.
    #[serde(rename = "total_us", serialize_with = "micros")]
    pub total: Duration,
    /// Half of the calls took no longer; to within 1 %.
    #[serde(rename = "p50_us", serialize_with = "micros")]
    pub p50: Duration,
    /// Likewise for 95 of 100.
    #[serde(rename = "p95_us", serialize_with = "micros")]
    pub p95: Duration,
    /// Likewise for 99 of 100.
    #[serde(rename = "p99_us", serialize_with = "micros")]
    pub p99: Duration,
}

impl Statistics {
    /// The average time of a call; zero where there was none.
    #[must_use]
    pub fn average(&self) -> Duration {
        let nanos = self.total.as_nanos().checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Successes among the calls that were made, from 0 to 1; none where there was none.
    #[must_use]
    pub fn success_rate(&self) -> Option<f64> {
        (self.count > 0).then(|| self.success as f64 / self.count as f64)
    }
}

fn micros<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).serialize(serializer)
}

/// Counts calls of one tool.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Option<Counted>>);

#[derive(Debug)]
struct Counted {
    success: u64,
    refused: u64,
    cancelled: u64,
    total: Duration,
    /// Microseconds.
    times: Histogram<u64>,
}

impl Counters {
    /// Counts one call.
    pub(crate) fn record(&self, completion: &Completion) {
        let succeeded = match &completion.result {
            CallResult::Outcome(Outcome::Ok(_) | Outcome::AskUser(_) | Outcome::Halt(_)) => true,
            CallResult::ToolError(ToolError::HandlerExit(Exit::Cancelled)) => return self.record_cancelled(),
            CallResult::Refusal(_) => return self.count(|counted| counted.refused += 1),
            CallResult::Outcome(Outcome::Error(_)) | CallResult::ToolError(_) => false,
        };
        let wall = completion.usage.wall;
        self.count(|counted| {
            counted.success += u64::from(succeeded);
            counted.total = counted.total.saturating_add(wall);
            // It grows as it needs to, so that every value fits.
            let _ = counted.times.record(u64::try_from(wall.as_micros()).unwrap_or(u64::MAX));
        });
    }

    /// Counts a call that was dropped.
    pub(crate) fn record_cancelled(&self) {
        self.count(|counted| counted.cancelled += 1);
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn count(&self, change: impl FnOnce(&mut Counted)) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Made with the first call: most of many registered tools are never called.
        if counted.is_none() {
            let times = Histogram::new(FIGURES).ok();
            *counted =
                times.map(|times| Counted { success: 0, refused: 0, cancelled: 0, total: Duration::ZERO, times });
        }
        if let Some(counted) = counted.as_mut() {
            change(counted);
        }
    }

    /// What was counted until now.
    pub(crate) fn read(&self) -> Statistics {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(counted) = counted.as_ref() else { return Statistics::default() };
        let at = |quantile| Duration::from_micros(counted.times.value_at_quantile(quantile));
        let count = counted.times.len();
        Statistics {
            count,
            success: counted.success,
            failure: count.saturating_sub(counted.success),
            refused: counted.refused,
            cancelled: counted.cancelled,
            total: counted.total,
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
        }
    }
}

/// One call that is being counted: as it ends, or as cancelled if it never does.
pub(crate) struct Counting<'a>(Option<&'a Counters>);

impl<'a> Counting<'a> {
    pub(crate) fn new(counters: &'a Counters) -> Self {
        Self(Some(counters))
    }

    /// Counts its end, which it hands on.
    pub(crate) fn end(mut self, completion: Completion) -> Completion {
        if let Some(counters) = self.0.take() {
            counters.record(&completion);
        }
        completion
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        if let Some(counters) = self.0.take() {
            counters.record_cancelled();
        }
    }
}
