//! Runs: many tools by name, and many calls under one policy.

pub(crate) mod policy;
pub(crate) mod registry;
pub(crate) mod runner;
