//! Tests of cells and worker processes: their bounds, their isolation, and how calls end.

mod alone;
mod ceiling;
mod ending;
mod hostile;
mod isolation;
mod load;
mod mischief;
mod panics;
mod worker_process;
mod workers;

use toolcell::Limits;

/// Limits that a good guest does not reach, and a bad one soon does.
fn tight() -> Limits {
    Limits { fuel: 20_000_000, memory: 4 << 20, host_calls: 1000, ..Limits::default() }
}
