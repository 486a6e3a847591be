//! Runs: many tools by name, and many calls under one policy.
//!
//! An embedder (the program that uses this library) registers its tools in a registry. When a
//! model's answer has several calls, it passes them to a runner, which makes them at the same time
//! with the executor and returns a message for each. A policy decides what happens after a failed
//! call.

pub(crate) mod policy;
pub(crate) mod registry;
pub(crate) mod runner;

pub use policy::{Policy, Verdict};
pub use registry::Toolbox;
pub use runner::{RunOutcome, RunStream, UnknownTools};
#[doc(inline)]
pub use toolcell_contract::message::{RunEvent, RunFailure, RunHalt, SettledCall};
