//! Threads on which all HTTP requests of one `Egress` run.
//!
//! [`Threads::handle`] returns a tokio runtime, which it starts at the first request: two threads
//! for I/O and TLS, and up to 32 for name lookups of the operating system, which cannot be
//! interrupted. They are separate from the threads of the embedder (the program that uses this
//! library) and from those that run guests (the WebAssembly code of tools). Dropping the value ends
//! the runtime in the background. It never blocks, even inside of an async task.

use std::io;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads for I/O and TLS.
const THREADS: usize = 2;
/// Threads for lookups by the system's resolver, which cannot be interrupted and end by the
/// system's own time limit.
pub(super) const RESOLVING: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Threads(Mutex<Option<Runtime>>);

impl Threads {
    /// Returns the runtime's handle. Starts the threads at the first call.
    pub(crate) fn handle(&self) -> io::Result<Handle> {
        let mut runtime = self.0.lock();
        if let Some(runtime) = runtime.as_ref() {
            return Ok(runtime.handle().clone());
        }
        let made = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(RESOLVING)
            .thread_name("toolcell-egress")
            .enable_io()
            .enable_time()
            .build()?;
        Ok(runtime.insert(made).handle().clone())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let runtime = self.0.get_mut();
        if let Some(runtime) = runtime.take() {
            runtime.shutdown_background();
        }
    }
}
