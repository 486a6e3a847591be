//! A tokio runtime that can be dropped anywhere, and the priority of threads.
//!
//! Tokio panics if a runtime is dropped inside of async code. [`Threads`] wraps one and shuts it
//! down in the background instead, so that an engine can be dropped in any context.
//! [`BlockingThreads`] are such a runtime for work that blocks, which starts at its first use.
//! [`less_urgent`] lowers the priority of the current thread, so that guests (the WebAssembly code
//! of tools) do not take processors from the host; if the system refuses it, nothing happens.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};
use toolcell_contract::error::Error;

/// A runtime that can be dropped in any context.
#[derive(Debug)]
pub(crate) struct Threads(Option<Runtime>);

impl Threads {
    pub(crate) fn build(mut builder: Builder) -> Result<Self, Error> {
        let runtime =
            builder.build().map_err(|error| Error::engine("no threads").with_source(error))?;
        Ok(Self(Some(runtime)))
    }

    /// Returns the handle of these threads.
    pub(crate) fn handle(&self) -> &Handle {
        match &self.0 {
            Some(runtime) => runtime.handle(),
            None => unreachable!("the runtime is taken only on drop"),
        }
    }
}

/// Threads for work that blocks. They start when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct BlockingThreads(OnceLock<Option<Threads>>);

impl BlockingThreads {
    /// Returns the handle of at most this many threads, or `None` if the process cannot start them.
    pub(crate) fn handle(&self, name: &str, threads: usize) -> Option<&Handle> {
        let made = self.0.get_or_init(|| {
            let mut builder = Builder::new_current_thread();
            builder.max_blocking_threads(threads).thread_name(name);
            Threads::build(builder)
                .inspect_err(|error| {
                    let error: &(dyn std::error::Error + 'static) = error;
                    tracing::error!(error, name, "no threads");
                })
                .ok()
        });
        made.as_ref().map(Threads::handle)
    }
}

/// Lowers the priority of the current thread. Some containers refuse it: then guests compete as
/// equals, and their deadlines still hold.
pub(crate) fn less_urgent(niceness: i32) {
    let _ = rustix::process::nice(niceness);
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
