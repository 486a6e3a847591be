//! The number of processors that this process can use.

use std::sync::LazyLock;

/// Queried once for each process: on Linux the answer is read from several files.
static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));

/// Returns the number of processors that the system gives this process, or 1 if it is unknown.
pub(crate) fn cores() -> usize {
    *CORES
}
