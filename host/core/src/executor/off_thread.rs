//! Runs a long check on a small pool of threads, so that the caller's thread can serve other tasks.
//!
//! `checking` passes it the parse and schema check of a large value and awaits the result; the
//! result is `None` if the work panicked on its thread. The pool is shared by the process, starts
//! at its first use and has lower priority than the host's own threads. If no threads can be
//! started, the work runs in place. Work whose future is dropped still runs to its end.

use std::io;
use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};
use toolcell_contract::controls::enforced;

use super::trees::CHECKS;
use crate::os::threads::less_urgent;

/// The priority of these threads, as `nice` steps below the host's own threads: lower than that of
/// a short call, higher than that of a loop.
const NICENESS: i32 = 10;

/// A pool instead of a thread for each check, because the allocator keeps some memory for every
/// thread that ever existed.
static THREADS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    let mut builder = Builder::new_current_thread();
    builder
        .max_blocking_threads(CHECKS)
        .thread_name("toolcell-check")
        .on_thread_start(|| less_urgent(NICENESS));
    builder.build()
});

/// Runs `work` on a thread of a pool of [`CHECKS`] and returns its result. If the process cannot
/// start such threads, it runs here. Returns `None` if the work panicked on the pool; a panic of
/// work that runs here goes on to the caller. If the future is dropped, work on the pool still runs
/// to its end.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match &*THREADS {
        Ok(threads) if enforced!(CheckThreads) => threads.spawn_blocking(work).await.ok(),
        Ok(_) | Err(_) => Some(work()),
    }
}
