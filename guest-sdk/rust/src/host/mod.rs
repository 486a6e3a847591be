//! The functions of the host that a tool can call, with one interface for cells and native tests.
//!
//! Invariants: only `imports` depends on the compilation target. In a cell each of its functions
//! calls an import, which the component has only if the tool uses it; elsewhere it is a stand-in
//! without effects outside of the test, so that the tool's own tests run.

pub mod abort;
pub mod budget;
pub mod http;
pub mod invoke;
pub mod kv;
pub mod log;
pub mod progress;
pub mod secrets;

#[cfg_attr(target_arch = "wasm32", path = "cell.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "native.rs")]
mod imports;
