//! Builds the configurations of wasmtime: engines that run cells, and compilers of two tiers.
//!
//! A cell is the wasmtime store of one call. [`pooled_engine`] is the default: its memory has slots
//! that are reset and reused. [`engine_on_demand`] is for components that are larger than a slot,
//! and for strict isolation, which also clears stacks. [`compiler`] takes the [`Tier`] (quick or
//! optimised) and whether a caller waits. All sizes that bound a cell in the engine are constants
//! here.
//! The engines differ in the allocator alone, so compiled code fits all of them. The compilers
//! differ in their optimisation alone, so the code of each fits all engines. No other file builds a
//! wasmtime engine.
//! Source: measurements on wasmtime 48, each beside its value.

pub(in crate::engine) mod allocator;
pub(in crate::engine) mod proposals;

use std::num::NonZeroUsize;

use toolcell_contract::controls::enforced;
use toolcell_contract::error::Error;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    Strategy, WasmBacktraceDetails,
};

use crate::engine::cell::bounds::limiter::TABLE_ELEMENTS;
use proposals::DISABLED;

/// Bytes of guest stack. Host functions get the rest of the fiber.
const GUEST_STACK: usize = 512 << 10;
/// Bytes of a fiber's stack, guest and host frames together.
const FIBER_STACK: usize = 2 << 20;
/// Frames of a guest backtrace: a trap with many frames costs ten times one with few. The first
/// twelve of a Rust panic are those of the standard library.
const BACKTRACE_FRAMES: usize = 24;
/// Bytes of initial memory that become an image even if most of them are zero; a larger memory
/// becomes an image only if it is dense. Without an image a call begins with a copy of the memory,
/// which costs as much fuel as it has bytes.
const DENSE_IMAGE: u64 = 4 << 20;
/// Memories of one component. A tool has one; a composed tool a few.
const MEMORIES: u32 = 4;
/// Tables of one component.
const TABLES: u32 = 16;
/// Core instances of one component, adapters included.
pub(super) const CORE_INSTANCES: u32 = 64;
/// Bytes of one instance's own structures.
const INSTANCE_BYTES: usize = 4 << 20;
/// Bytes of a memory that stay resident in a free slot, where the kernel can tell which pages were
/// written.
const KEEP_MEMORY: usize = 1 << 20;
/// [`KEEP_MEMORY`] without the kernel's help: each kept byte is cleared by a write, so little is
/// kept.
const KEEP_MEMORY_BLIND: usize = 64 << 10;
/// Bytes of a table that stay resident in a free slot.
const KEEP_TABLE: usize = 64 << 10;

/// The isolation of an engine's cells in memory. In either case each call has a store of its own,
/// which contains nothing of other calls. The values differ in what a guest that escapes from its
/// cell could find, and in the cost of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// Cells take their memory from slots, which are cleared and used again, for all tenants. This
    /// is the fastest.
    #[default]
    Pooled,
    /// Each cell gets its memory and stack from the operating system, and gives them back. No slot
    /// passes from one cell to the next. Source: docs/threat-model.md, rule 12.
    Strict,
}

/// The tier for which a component is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Tier {
    /// Without optimising.
    Quick,
    /// For speed.
    Optimised,
}

impl Tier {
    /// Returns its name in the order to a compile worker.
    pub(in crate::engine) fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Optimised => "optimised",
        }
    }

    /// Returns the tier of this name.
    pub(in crate::engine) fn of(word: &str) -> Option<Self> {
        [Self::Quick, Self::Optimised].into_iter().find(|tier| tier.word() == word)
    }
}

/// Tells a compiler whether a caller waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Priority {
    /// A caller waits: the compiler uses every core.
    Foreground,
    /// No caller waits: in this process the compiler uses only the thread that calls it, with the
    /// priority of that thread.
    Background,
}

/// Builds a compiler. Its code runs on every engine.
///
/// # Errors
/// As [`pooled_engine`].
pub(super) fn compiler(tier: Tier, haste: Priority) -> Result<Engine, Error> {
    let mut config = base();
    config.parallel_compilation(haste == Priority::Foreground).cranelift_opt_level(match tier {
        Tier::Quick => OptLevel::None,
        Tier::Optimised => OptLevel::Speed,
    });
    build(&config)
}

/// Builds an engine whose cells get their memory from this many slots that are allocated once.
///
/// # Errors
/// [`Error::is_environment`] if the machine cannot run it.
fn pooled_engine(cells: u32) -> Result<Engine, Error> {
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(cells)));
    build(&config)
}

/// Builds an engine whose cells get their memory from the operating system, each for itself, and
/// their stacks cleared on request.
///
/// # Errors
/// As [`pooled_engine`].
fn engine_on_demand(clears_stacks: bool) -> Result<Engine, Error> {
    let mut config = base();
    config.async_stack_zeroing(clears_stacks);
    build(&config)
}

fn build(config: &Config) -> Result<Engine, Error> {
    Engine::new(config).map_err(|error| Error::engine(format!("{error:#}")))
}

fn base() -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        // Both meters, always: fuel is exact and part of the contract; the epoch bounds wall time.
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(FIBER_STACK)
        // The component model's own concurrency adds 0.4 times the cost of a call, and nothing here
        // uses it.
        .concurrency_support(false)
        // Errors contain nothing of the host and little of the guest.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES))
        .debug_info(false)
        // NaNs are canonical, so that the same input gives the same output on every machine.
        .cranelift_nan_canonicalization(true)
        // Two bytes that are far apart must not make an image of everything between them, sixty
        // times over.
        .memory_guaranteed_dense_image_size(DENSE_IMAGE)
        .memory_init_cow(true);
    if enforced!(Proposals) {
        config.shared_memory(false);
        for (proposal, _) in DISABLED {
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

    /// Tail calls cost nothing in a component that has none.
    #[test]
    fn tail_calls_do_not_change_code_without_them() {
        let component = toolcell_test_guests::bytes("hello");
        let code = |is_on| {
            let engine = Engine::new(base().wasm_tail_call(is_on)).unwrap();
            Component::from_binary(&engine, &component).unwrap().text().to_vec()
        };
        let (on, off) = (code(true), code(false));
        assert!(on.len() > 10_000 && on == off, "{} and {} bytes", on.len(), off.len());
    }
}
