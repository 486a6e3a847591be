//! What a tool may ask of its host while it runs, in one shape for both sides.
//!
//! Invariants: this is the only place that asks which target is compiled. In a cell each function
//! is an import, which the component has only if the tool uses it; elsewhere it is a harmless
//! stand-in, so that a tool's own tests run.

#[cfg_attr(target_arch = "wasm32", path = "imports/cell.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "imports/native.rs")]
mod side;

pub(crate) use side::{
    Secret, Wish, abort_requested, answer_calls_with, answer_with, compare_and_swap, delete, get,
    invoke, keep, list, log, progress, remaining, reveal, secret, send, set,
};
