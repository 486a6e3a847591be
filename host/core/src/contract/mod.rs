//! The meaning of a call: its words, its grants and their decision, schemas, messages.
//!
//! These modules define the types that every other layer shares: a tool's definition, a call and
//! its result, limits, grants, events, errors. They also decide if a request is within a tool's
//! rights, and check values against JSON Schema. A grant is access that an operator gives to a
//! component; a message is the text that a model gets back.
//!
//! Nothing here runs WebAssembly, reads a clock, opens a file or uses the network; the layers above
//! do.

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
