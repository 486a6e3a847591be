//! How many processors this process can use.

use std::sync::LazyLock;

/// Asked once for each process: on Linux the answer comes from several files.
static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));

/// Processors that the system gives this process; 1 if it does not say.
pub(crate) fn cores() -> usize {
    *CORES
}
