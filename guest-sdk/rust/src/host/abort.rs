//! The caller's request to end the call early.
//!
//! A tool that sees the request should stop and return an error; otherwise the host stops it. In
//! native tests there is no such request.

use super::imports;

/// Returns true if the call should end. Cheap enough to call in a loop.
pub fn requested() -> bool {
    imports::abort_requested()
}

/// Returns an object to wait on: it becomes ready when the call should end.
pub fn wait() -> Wait {
    Wait(imports::Wish::new())
}

/// An object that becomes ready when the call should end, from [`wait`].
#[derive(Debug)]
pub struct Wait(imports::Wish);

impl Wait {
    /// Returns true if the call should end.
    pub fn ready(&self) -> bool {
        self.0.ready()
    }

    /// Blocks until the call should end.
    ///
    /// # Panics
    /// Outside of a cell, where it would block forever.
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
