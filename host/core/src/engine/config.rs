//! The engine configurations.
//!
//! Pooled is the default: cells come from slots that are reset, not remade. On-demand makes each
//! cell from scratch, for components that are bigger than a slot, and for strict isolation, where
//! stacks are cleared by order too. They differ in the allocator alone, so one artifact fits all;
//! compilers differ in how much they optimise, so what each makes fits too. Source of the values:
//! measurements on wasmtime 48, each beside its line.

use std::num::NonZeroUsize;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    Strategy, WasmBacktraceDetails,
};

use super::proposals::OFF;
use super::tier::Tier;
use crate::defence::{Defence, stands};
use crate::error::Error;

/// Guest stack in bytes. Host functions get what is left of the fiber.
const GUEST_STACK: usize = 512 << 10;
/// Fiber stack in bytes, guest and host frames together.
const FIBER_STACK: usize = 2 << 20;
/// Frames of a guest backtrace: a trap with many frames costs ten times one with few. The first
/// twelve of a Rust panic are those of the standard library.
const BACKTRACE_FRAMES: usize = 24;
/// Bytes of initial memory that become an image however empty they are; more only where they are
/// full. Without an image a call begins with a copy of the memory, which costs it as much fuel as
/// it has bytes.
const DENSE_IMAGE: u64 = 4 << 20;
/// Memories of one component. A tool has one; a composed tool a few.
const MEMORIES: u32 = 4;
/// Tables of one component.
const TABLES: u32 = 16;
/// Core instances of one component, adapters included.
pub(super) const CORE_INSTANCES: u32 = 64;
/// Elements of one table: language runtimes have tens of thousands of functions.
pub(super) const TABLE_ELEMENTS: usize = 100_000;
/// Bytes of one instance's own structures.
const INSTANCE_BYTES: usize = 4 << 20;
/// Bytes of a memory that stay resident in a free slot, where the kernel can tell which pages were
/// written.
const KEEP_MEMORY: usize = 1 << 20;
/// The same without the kernel's help: every kept byte is cleared by hand, so little is kept.
const KEEP_MEMORY_BLIND: usize = 64 << 10;
/// Bytes of a table that stay resident in a free slot.
const KEEP_TABLE: usize = 64 << 10;

/// Which allocator a cell's memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allocation {
    /// From `cells` slots that are made once.
    Pooled {
        /// How many.
        cells: u32,
    },
    /// From the operating system, per cell.
    OnDemand,
    /// Likewise, with a stack that is cleared wherever it comes from.
    Cleared,
}

/// Whether a caller waits for a compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Haste {
    /// A caller waits: it takes every core.
    Awaited,
    /// No caller waits: in this process it takes the thread that it is called on, with that one's
    /// urgency.
    Background,
}

/// Makes a compiler. What it makes runs on every [`engine`].
///
/// # Errors
/// As [`engine`].
pub(super) fn compiler(tier: Tier, haste: Haste) -> Result<Engine, Error> {
    let mut config = base();
    config.parallel_compilation(haste == Haste::Awaited).cranelift_opt_level(match tier {
        Tier::Quick => OptLevel::None,
        Tier::Optimised => OptLevel::Speed,
    });
    Engine::new(&config).map_err(|error| Error::engine(format!("{error:#}")))
}

/// Makes an engine.
///
/// # Errors
/// [`Error::is_environment`] when the machine cannot host it.
pub(super) fn engine(allocation: Allocation) -> Result<Engine, Error> {
    let mut config = base();
    match allocation {
        Allocation::Pooled { cells } => {
            config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(cells)));
        }
        Allocation::OnDemand => {}
        Allocation::Cleared => {
            config.async_stack_zeroing(true);
        }
    }
    Engine::new(&config).map_err(|error| Error::engine(format!("{error:#}")))
}

fn base() -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        // Both meters, always: fuel is exact and part of the contract, the epoch bounds wall time.
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(FIBER_STACK)
        // The component model's own concurrency costs 0.4 times a call, and nothing here uses it.
        .concurrency_support(false)
        // Nothing of the host's and little of the guest's in an error.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES))
        .debug_info(false)
        // The same input gives the same output on every machine.
        .cranelift_nan_canonicalization(true)
        // Two bytes far apart must not become an image of everything between them, sixty times
        // over.
        .memory_guaranteed_dense_image_size(DENSE_IMAGE)
        .memory_init_cow(true);
    if stands(Defence::Proposals) {
        config.shared_memory(false);
        for (proposal, _) in OFF {
            config.wasm_features(proposal, false);
        }
    }
    config
}

fn pool(cells: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    let scan = PoolingAllocationConfig::is_pagemap_scan_available();
    pool.total_component_instances(cells)
        .total_core_instances(cells.saturating_mul(CORE_INSTANCES))
        .total_memories(cells.saturating_mul(MEMORIES))
        .total_tables(cells.saturating_mul(TABLES))
        .total_stacks(cells)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_memories_per_module(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_tables_per_module(TABLES)
        .table_elements(TABLE_ELEMENTS)
        .max_component_instance_size(INSTANCE_BYTES)
        .max_core_instance_size(INSTANCE_BYTES)
        // A warm slot is reused by the next cell of the same component.
        .max_unused_warm_slots(cells.saturating_mul(MEMORIES))
        .decommit_batch_size(1)
        .linear_memory_keep_resident(if scan { KEEP_MEMORY } else { KEEP_MEMORY_BLIND })
        .table_keep_resident(KEEP_TABLE)
        .pagemap_scan(if scan { Enabled::Yes } else { Enabled::No });
    pool
}

#[cfg(test)]
mod tests {
    use wasmtime::component::Component;

    use super::*;

    /// What tail calls cost a component that has none.
    #[test]
    fn code_without_tail_calls_is_the_same_whether_they_are_on() {
        let component = toolcell_test_guests::bytes("hello");
        let code = |is_on| {
            let engine = Engine::new(base().wasm_tail_call(is_on)).unwrap();
            Component::from_binary(&engine, &component).unwrap().text().to_vec()
        };
        let (on, off) = (code(true), code(false));
        assert!(on.len() > 10_000 && on == off, "{} and {} bytes", on.len(), off.len());
    }
}
