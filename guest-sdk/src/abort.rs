//! The caller's wish that the call should end early.
//!
//! A tool that sees it should stop and answer with an error; one that does not is stopped by the host. In an author's
//! own tests nobody has such a wish.

use crate::imports;

/// Whether the call should end. Cheap enough to ask in a loop.
pub fn requested() -> bool {
    imports::abort_requested()
}

/// Something to wait for: it is ready once the call should end.
pub fn wait() -> Wait {
    Wait(imports::Wish::new())
}

/// A wait for the wish that the call should end, see [`wait`].
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

    /// Gives up the owned handle of the `wasi:io/poll` pollable, for other bindings to wait for it together with other
    /// things: `Pollable::from_handle` of the `wasi` crate for instance. None outside of a cell.
    pub fn into_handle(self) -> Option<u32> {
        self.0.handle()
    }
}
