//! Pairs a wasmtime engine, which allocates the memory of cells in one way, with its linker.
//!
//! An engine of toolcell has one or two [`Allocator`]s: a pool, whose slots of memory are reused
//! from call to call, and one that allocates for each cell (a fresh WebAssembly instance for one
//! call) on demand. [`Allocator::pooled`] takes the wanted number of cells. If the machine has too
//! little address space, it builds a smaller pool, at most half of what fits, and warns; if that
//! leaves no cell, also if one of several wanted cells would fit, it returns `None`, and the engine
//! works without a pool. The linker (the table of host functions) is built at its first use.

use std::sync::OnceLock;

use toolcell_contract::error::Error;
use wasmtime::component::Linker;

use crate::engine::{cell::Cell, cell::imports, compile::config};

pub(in crate::engine) struct Allocator {
    pub(in crate::engine) engine: wasmtime::Engine,
    linker: OnceLock<Linker<Cell>>,
}

impl Allocator {
    /// Builds an allocator that takes the memory of each cell from the operating system.
    pub(in crate::engine) fn on_demand(clears_stacks: bool) -> Result<Self, Error> {
        Ok(Self { engine: config::engine_on_demand(clears_stacks)?, linker: OnceLock::new() })
    }

    /// Builds a pool for this many cells, and returns it with its number of cells. Where the
    /// machine has no room for so many, the pool takes at most half of the room, so that the rest
    /// of the process has the other half. Returns `None` where there is no room for one cell.
    pub(in crate::engine) fn pooled(cells: u32) -> Option<(Self, u32)> {
        let made = |cells| {
            config::pooled_engine(cells).map(|engine| Self { engine, linker: OnceLock::new() })
        };
        if let Ok(pool) = made(cells) {
            return Some((pool, cells));
        }
        let mut halves = std::iter::successors(Some(cells / 2), |cells| Some(cells / 2))
            .take_while(|cells| *cells > 0);
        let fits = halves.find(|cells| made(*cells).is_ok()).unwrap_or_default() / 2;
        match (fits > 0).then(|| made(fits)).and_then(Result::ok) {
            Some(pool) => {
                tracing::warn!(
                    "there is too little address space or memory for a pool of {cells} cells: it has {fits}, and further calls \
                     wait; set the number of cells (`EngineBuilder::cells`, `toolcell serve --max-cells {fits}`), or allow more \
                     address space (`ulimit -v`)"
                );
                Some((pool, fits))
            }
            None => {
                tracing::warn!(
                    "there is too little address space or memory for a pool of cells: each is made from scratch, which is \
                     slower; allow more address space (`ulimit -v`)"
                );
                None
            }
        }
    }

    /// Returns the linker. It is built at the first use, since few programs use both allocators.
    pub(in crate::engine) fn linker(&self) -> Result<&Linker<Cell>, Error> {
        if let Some(linker) = self.linker.get() {
            return Ok(linker);
        }
        let made = imports::linker(&self.engine)?;
        Ok(self.linker.get_or_init(|| made))
    }
}
