//! Makes the summary line of a batch: the number of calls by ending, their times and their fuel.
//!
//! `batch` passes the sink of [`Summary::counter`] to the executor, which sends it the events of
//! all calls. After the run, [`Summary::print`] writes a note such as "3 calls: 2 ok, 1 refusal;
//! p50 1.2 ms, …", with the median and the 99th percentile of the times. Fuel counts executed
//! instructions. A call that another tool made is part of that tool's call and is not counted; its
//! log is. No note is printed if no call was made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use toolcell::{CallResult, Event};

use crate::print::{Count, Printer, counted};

/// Counts the calls of a run.
#[derive(Debug, Default)]
pub(super) struct Summary(Mutex<Totals>);

#[derive(Debug, Default)]
struct Totals {
    endings: BTreeMap<&'static str, usize>,
    walls: Vec<Duration>,
    fuel: u64,
    logged: Logged,
}

/// Bytes that all tools of a run logged; the sum of the two is all that they wrote.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Logged {
    log_bytes: u64,
    pub(super) log_bytes_dropped: u64,
}

impl Summary {
    /// Returns the event sink for the executor.
    pub(super) fn counter(self: &Arc<Self>) -> impl Fn(Event) + Send + Sync + 'static {
        let summary = Arc::clone(self);
        move |event| {
            let Event::Completed { result, usage, parent, .. } = event else { return };
            let mut seen = summary.0.lock();
            seen.logged.log_bytes += usage.log_bytes;
            seen.logged.log_bytes_dropped += usage.log_bytes_dropped;
            if parent.is_none() {
                *seen.endings.entry(ending(&result)).or_default() += 1;
                seen.walls.push(usage.wall);
                seen.fuel = seen.fuel.saturating_add(usage.fuel.unwrap_or_default());
            }
        }
    }

    /// Returns the bytes of the tools' logs if some were lost.
    pub(super) fn lossy_logs(&self) -> Option<Logged> {
        Some(self.0.lock().logged).filter(|logged| logged.log_bytes_dropped > 0)
    }

    /// Prints the summary if any call was made. `unreadable` is the number of calls that could not
    /// be read.
    pub(super) fn print(&self, printer: &Printer, unreadable: usize) {
        if let Some(line) = self.line(unreadable) {
            printer.labelled("summary", &line);
        }
    }

    fn line(&self, unreadable: usize) -> Option<String> {
        let Totals { endings, walls, fuel, .. } = &mut *self.0.lock();
        walls.sort_unstable();
        let (p50, p99) = (percentile(walls, 50)?, percentile(walls, 99)?);
        let calls = counted(walls.len(), "call");
        let unreadable = (unreadable > 0).then(|| format!("{unreadable} not read"));
        let endings = endings.iter().map(|(ending, count)| format!("{count} {ending}"));
        let endings: Vec<_> = endings.chain(unreadable).collect();
        let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
        let (endings, p50, p99, fuel) =
            (endings.join(", "), millis(p50), millis(p99), Count(*fuel));
        Some(format!("{calls}: {endings}; p50 {p50}, p99 {p99}, {fuel} fuel"))
    }
}

/// Returns the percentile of these sorted times: the smallest one that at least `percent` percent
/// of them do not exceed. None without times.
fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let at = (sorted.len() * percent).div_ceil(100).checked_sub(1)?;
    sorted.get(at).copied()
}

/// Returns the ending of a call, as its JSON names it.
fn ending(result: &CallResult) -> &'static str {
    match result {
        CallResult::ToolError(error) => error.reason().name(),
        CallResult::Outcome(_) | CallResult::Refusal(_) => result.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_uses_nearest_rank() {
        let times: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        for (of, percent, millis) in
            [(200, 50, 100), (200, 99, 198), (1, 99, 1), (2, 50, 1), (3, 50, 2)]
        {
            assert_eq!(
                percentile(&times[..of], percent),
                Some(Duration::from_millis(millis)),
                "{of} {percent}"
            );
        }
        assert_eq!(percentile(&[], 50), None);
    }
}
