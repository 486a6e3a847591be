//! Runs a campaign of attacks against the library: every kind of attack that the threat model
//! names, with cases made from a seed.
//!
//! ```text
//! campaign ── a process for each theatre ── performance: case, case, case … ── row ── report
//!     └─ sees a death by its last case, and goes on behind it
//! ```
//!
//! A *scenario* (in code: theatre) is one kind of attack. Each case is made from the seed and its
//! number alone, so that any one can be run again: `cargo xtask attack --seed S --only THEATRE
//! --case N`.

// -- shared types
mod dice;
mod disguise;
pub mod options;
mod report;
mod tally;
// -- observation
mod listener;
mod watch;
// -- attack material
mod addresses;
mod pieces;
mod stage;
// -- scenarios
mod bombs;
mod guests;
mod mixed;
mod mutants;
mod network;
mod paths;
mod schemas;
mod secrets;
mod server;
mod slots;
mod smith;
mod theatre;
// -- processes
mod campaign;
mod performance;

pub use campaign::campaign;
pub use performance::{compile, run_scenario};
pub use report::Report;
