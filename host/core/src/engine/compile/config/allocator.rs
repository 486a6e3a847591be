//! An engine of wasmtime with one way to allocate memory for cells, and its linker.

use std::sync::OnceLock;

use wasmtime::component::Linker;

use super::Allocation;
use crate::contract::error::Error;
use crate::engine::cell::Cell;
use crate::engine::cell::imports;
use crate::engine::compile::config;

pub(in crate::engine) struct Allocator {
    pub(in crate::engine) engine: wasmtime::Engine,
    linker: OnceLock<Linker<Cell>>,
}

impl Allocator {
    pub(in crate::engine) fn new(allocation: Allocation) -> Result<Self, Error> {
        Ok(Self { engine: config::engine(allocation)?, linker: OnceLock::new() })
    }

    /// Builds a pool for this many cells, and returns it with its number of cells. Where the
    /// machine has no room for so many, the pool takes at most half of the room, so that the rest
    /// of the process has the other half. Returns `None` where there is no room for one cell.
    pub(in crate::engine) fn pooled(cells: u32) -> Option<(Self, u32)> {
        let made = |cells| Self::new(Allocation::Pooled { cells });
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
                     wait; set the number of cells (`EngineBuilder::cells`, `toolcell serve --cells {fits}`), or allow more \
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
        match self.linker.get() {
            Some(linker) => Ok(linker),
            None => {
                let made = imports::linker(&self.engine)?;
                Ok(self.linker.get_or_init(|| made))
            }
        }
    }
}
