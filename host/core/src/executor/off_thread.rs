//! Runs a long check on another thread, so that the caller's thread can serve other tasks
//! meanwhile.

use std::io;
use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

use super::trees::CHECKS;
use crate::defence::{Defence, stands};
use crate::engine::less_urgent;

/// How much less urgent these threads are than the host's own, in steps of `nice`: less than a
/// short call, more than a loop.
const NICENESS: i32 = 10;

/// A pool, and not a thread for each check: the allocator keeps some memory for each thread that it
/// has seen.
static THREADS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    let mut builder = Builder::new_current_thread();
    builder
        .max_blocking_threads(CHECKS)
        .thread_name("toolcell-check")
        .on_thread_start(|| less_urgent(NICENESS));
    builder.build()
});

/// Runs `work` on a thread of a pool of [`CHECKS`], and returns what it returned. Runs it here
/// where the process can have no such threads. Returns `None` when it panicked. When the future is
/// dropped, the work goes on to its end.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match &*THREADS {
        Ok(threads) if stands(Defence::CheckThreads) => threads.spawn_blocking(work).await.ok(),
        Ok(_) | Err(_) => Some(work()),
    }
}
