//! Runs a campaign of attacks against the library: every kind of attack that the threat model
//! names, with cases made from a seed.
//!
//! ```text
//! campaign ── a process for each scenario: case, case, case … ── row ── report
//!     └─ notes the last case of a process that dies, and continues after it
//! ```
//!
//! A *scenario* is one kind of attack. Each case is made from the seed and its number alone, so
//! that any one can be run again: `cargo xtask attack --seed S --only SCENARIO --case N`.

mod campaign;
mod fixture;
mod report;
mod rng;
mod scenarios;
mod tally;

pub use scenarios::options;

pub use campaign::campaign;
pub use report::Report;
pub use scenarios::child::{compile, run_scenario};
