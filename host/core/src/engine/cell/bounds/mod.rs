//! The bounds of one cell: memory, host memory, time.

pub(in crate::engine) mod blocking_pool;
pub(in crate::engine) mod host_memory;
pub(in crate::engine) mod limiter;
pub(in crate::engine) mod run_state;
pub(in crate::engine) mod ticker;
