//! The caller's request to end the call early.
//!
//! A tool that sees it should stop and return an error; otherwise the host stops it. In native
//! tests there is no such request.

use crate::imports;

/// Whether the call should end. Cheap enough to ask in a loop.
pub fn requested() -> bool {
    imports::abort_requested()
}

/// Returns an object to wait for: it is ready once the call should end.
pub fn wait() -> Wait {
    Wait(imports::Wish::new())
}

/// Waits for the request to end the call: see [`wait`].
#[derive(Debug)]
pub struct Wait(imports::Wish);

impl Wait {
    /// Whether the call should end.
    pub fn ready(&self) -> bool {
        self.0.ready()
    }

    /// Sleeps until the call should end.
    ///
    /// # Panics
    /// Outside of a cell, where it would sleep for ever.
    pub fn block(&self) {
        self.0.block();
    }

    /// Returns the owned handle of the `wasi:io/poll` pollable, so that other bindings can wait for
    /// it together with other pollables: for example with `Pollable::from_handle` of the `wasi`
    /// crate. `None` outside of a cell.
    pub fn into_handle(self) -> Option<u32> {
        self.0.handle()
    }
}
