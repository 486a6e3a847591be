//! Resources that a process holds, as the operating system counts them.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Time after the last call in which resources may still be given back: idle threads are kept for
/// ten seconds.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Threads that are started when first needed, and kept: for files, for names, for waiting.
const LASTING_THREADS: i64 = 4;
const STEP: Duration = Duration::from_millis(100);

/// One reading of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) fds: i64,
    pub(crate) threads: i64,
    pub(crate) files: i64,
}

impl Reading {
    /// Reads the counts now; `temp` is the directory of the process's temporary files.
    pub(crate) fn now(temp: &Path) -> Self {
        Self {
            fds: entries("/proc/self/fd".as_ref()),
            threads: entries("/proc/self/task".as_ref()),
            files: count_files(temp),
        }
    }

    /// Returns the counts above a baseline, after waiting for resources to be given back.
    pub(crate) fn after_settling(baseline: Self, temp: &Path) -> Self {
        let began = Instant::now();
        loop {
            let over = Self::now(temp).relative_to(baseline);
            if [over.fds, over.threads, over.files].iter().all(|count| *count <= 0)
                || began.elapsed() > SETTLE_TIMEOUT
            {
                return over;
            }
            thread::sleep(STEP);
        }
    }

    fn relative_to(self, baseline: Self) -> Self {
        Self {
            fds: self.fds - baseline.fds,
            threads: (self.threads - baseline.threads - LASTING_THREADS).max(0),
            files: self.files - baseline.files,
        }
    }
}

fn entries(path: &Path) -> i64 {
    fs::read_dir(path).map_or(0, |entries| entries.count() as i64)
}

/// Counts files and directories below a path, recursively.
fn count_files(path: &Path) -> i64 {
    fs::read_dir(path).into_iter().flatten().flatten().fold(0, |count, entry| {
        let inside = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            count_files(&entry.path())
        } else {
            0
        };
        count + 1 + inside
    })
}

/// Bytes of the process in memory: now, and at their peak.
pub(crate) fn memory() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    (field("VmRSS:").unwrap_or(0) << 10, field("VmHWM:").unwrap_or(0) << 10)
}

/// Returns bytes per thousand calls: the slope of a straight line through samples of calls and
/// memory.
pub(crate) fn slope(samples: &[(f64, f64)]) -> Option<f64> {
    let count = samples.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|sample| sample.0), mean(|sample| sample.1));
    let spread: f64 = samples.iter().map(|sample| (sample.0 - x).powi(2)).sum();
    let together: f64 = samples.iter().map(|sample| (sample.0 - x) * (sample.1 - y)).sum();
    (samples.len() > 2 && spread > 0.0).then(|| together / spread * 1000.0)
}
