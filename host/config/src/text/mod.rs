//! Text for people: units, commands that can be pasted, untrusted text made safe.

pub mod clean;
pub(crate) mod hint_command;
pub mod units;

pub use hint_command::{HintCommand, quoted};
