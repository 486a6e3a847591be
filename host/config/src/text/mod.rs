//! Text for people: units, commands that can be pasted, untrusted text made safe.
//!
//! The configuration and the command share these forms, so that a value is written alike in both.
//! `units` has durations, sizes and counts, `hint_command` the commands that hints show, and
//! `clean` the functions that make untrusted text harmless for a terminal.

pub mod clean;
pub(crate) mod hint_command;
pub mod units;

pub use hint_command::{HintCommand, quoted};
