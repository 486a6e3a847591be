//! Processor time of this process's threads: a measure of a request that other load does not
//! change.

use std::fs;
use std::time::Duration;

/// Returns the processor time of all living threads whose names begin with `name`; zero where the
/// system does not tell it.
#[must_use]
pub fn spent(name: &str) -> Duration {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let nanos = |task: fs::DirEntry| {
        let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        // The first of three numbers: nanoseconds on a processor.
        let nanos: Option<u64> =
            read("schedstat").split(' ').next().and_then(|nanos| nanos.parse().ok());
        nanos.filter(|_| read("comm").starts_with(name)).unwrap_or_default()
    };
    Duration::from_nanos(tasks.filter_map(Result::ok).map(nanos).sum())
}
