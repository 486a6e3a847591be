//! Runs: many tools by name, and many calls under one policy.

pub(crate) mod policy;
pub(crate) mod registry;
pub(crate) mod runner;

pub use crate::contract::message::{Halted, RunEvent, RunFailure, Settled};
pub use policy::{Policy, Verdict};
pub use registry::Toolbox;
pub use runner::{RunOutcome, RunStream, UnknownTools};
