//! Threads on which all HTTP requests of one `Egress` run.
//!
//! [`Threads::handle`] returns a tokio runtime, which it starts at the first request: two threads
//! for I/O and TLS, and up to 32 for name lookups of the operating system, which cannot be
//! interrupted. They are separate from the threads of the embedder (the program that uses this
//! library) and from those that run guests (the WebAssembly code of tools). Dropping the value ends
//! the runtime in the background. It never blocks, even inside of an async task.

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use toolcell_contract::error::Error;

use crate::os::threads;

/// Threads for I/O and TLS.
const THREADS: usize = 2;
/// Threads for lookups by the system's resolver, which cannot be interrupted and end by the
/// system's own time limit.
pub(super) const RESOLVING: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Threads(Mutex<Option<threads::Threads>>);

impl Threads {
    /// Returns the runtime's handle. Starts the threads at the first call.
    pub(crate) fn handle(&self) -> Result<Handle, Error> {
        let mut started = self.0.lock();
        if let Some(started) = started.as_ref() {
            return Ok(started.handle().clone());
        }
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).max_blocking_threads(RESOLVING);
        builder.thread_name("toolcell-egress").enable_io().enable_time();
        Ok(started.insert(threads::Threads::build(builder)?).handle().clone())
    }
}
