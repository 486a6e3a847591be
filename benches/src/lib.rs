//! What the benches share: the floor they compare with, tools to time, and honest summaries of
//! noisy times.

pub mod client;
pub mod floor;
pub mod many;
pub mod program;
pub mod spent;
pub mod timing;
pub mod tools;
