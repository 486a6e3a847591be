//! Runtimes that can be dropped in any context, and the priority of threads.

use tokio::runtime::{Builder, Handle, Runtime};

use crate::contract::error::Error;

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
