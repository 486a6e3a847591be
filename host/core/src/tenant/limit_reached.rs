//! The error by which a host function ends a call that has reached a limit.
//!
//! A host function that a guest (the WebAssembly code of a tool) calls returns a [`LimitReached`]
//! as its error, for example when too many files are open. That ends the guest. The engine then
//! finds the limit in the error, and puts it into the call's tool error.

use toolcell_contract::outcome::tool_error::LimitHit;

/// The error by which a host function ends the call with this limit.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a limit of the cell")]
pub(crate) struct LimitReached(pub(crate) LimitHit);
