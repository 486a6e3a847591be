//! A campaign against the library: every kind of attack that the threat model names, tried for
//! real, from a seed.
//!
//! ```text
//! campaign ── a process for each theatre ── performance: case, case, case … ── row ── report
//!     └─ sees a death by its last case, and goes on behind it
//! ```
//!
//! A *theatre* is one kind of attack. Each of its cases is made from the seed and its own number
//! alone, so that any one of them can be tried again: `cargo xtask attack --seed S --only THEATRE
//! --case N`.

// -- words
mod dice;
mod disguise;
pub mod options;
mod report;
mod tally;
// -- what is watched
mod listener;
mod watch;
// -- what is attacked with
mod addresses;
mod pieces;
mod stage;
// -- theatres
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
// -- the pipe
mod campaign;
mod performance;

pub use campaign::campaign;
pub use performance::{compile, perform};
pub use report::Report;
