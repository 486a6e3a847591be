//! Shared parts of the benchmarks: the baseline, an HTTP client, tools to measure, and robust
//! summaries of noisy times.

pub mod client;
pub mod floor;
pub mod many;
pub mod program;
pub mod spent;
pub mod timing;
pub mod tools;
