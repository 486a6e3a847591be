//! Shared by tests, benchmarks and the demo: building guests.

pub mod guests;
