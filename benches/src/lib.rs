//! What the benches share: the floor they compare with, and honest summaries of noisy times.

pub mod floor;
pub mod timing;
