//! The output of a guest: lines for the log, and the captured standard output of a command.

pub(in crate::engine) mod captured;
pub(in crate::engine) mod lines;
