//! The functions of the host that a tool can call, with one interface for cells and native tests.
//!
//! Invariants: only this module depends on the compilation target. In a cell each function calls an
//! import, which the component has only if the tool uses it; elsewhere it is a stand-in without
//! effects outside of the test, so that the tool's own tests run.

#[cfg_attr(target_arch = "wasm32", path = "imports/cell.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "imports/native.rs")]
mod side;

pub(crate) use side::{
    Secret, Wish, abort_requested, answer_calls_with, answer_with, compare_and_swap, delete, get,
    invoke, list, log, progress, remaining, reveal, secret, send, set, set_secret,
};
