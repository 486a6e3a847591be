//! The meaning of a call: its words, its grants and their decision, schemas, messages.
//!
//! Not here: wasm, clocks, files, the network.

pub(crate) mod call;
pub mod controls;
pub(crate) mod definition;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod grants;
pub(crate) mod json;
pub(crate) mod limits;
pub(crate) mod message;
pub mod names;
pub(crate) mod outcome;
pub(crate) mod panic_guard;
pub(crate) mod schema;
