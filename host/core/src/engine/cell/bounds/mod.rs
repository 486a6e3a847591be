//! Limits on what one cell can use: guest memory, host memory, threads that block, and time.
//!
//! A cell is the wasmtime store of one call. `limiter` bounds the memory of the guest (the
//! WebAssembly code of a tool), `host_memory` the objects that the host keeps for it, and
//! `blocking_pool` the threads that wait for its disk operations. `ticker` interrupts running
//! guests about every millisecond, and `run_state` records whether the guest runs, waits for the
//! host, or was cancelled.
//! Not here: fuel (executed instructions) and the counts of host calls, which `engine/cell` sets
//! and checks.

pub(crate) mod blocking_pool;
pub(crate) mod host_memory;
pub(crate) mod limiter;
pub(crate) mod run_state;
pub(crate) mod ticker;
