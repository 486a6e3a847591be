//! The number of processors that this process can use.
//!
//! The engine and the runs size their thread pools and default concurrency by [`cores`]. The system
//! is asked once for each process; 1 is returned if the number is unknown.

use std::sync::LazyLock;

/// Queried once for each process: on Linux the answer is read from several files.
static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));

/// Returns the number of processors that the system gives this process, or 1 if it is unknown.
pub(crate) fn cores() -> usize {
    *CORES
}
