//! A way to get memory for cells: an engine of the runtime, and what components are linked with on it.

use std::sync::OnceLock;

use wasmtime::component::Linker;

use super::cell::Cell;
use super::config::{self, Allocation};
use super::imports;
use crate::error::Error;

/// An engine with one way to get memory, and its linker.
pub(super) struct Allocator {
    pub(super) engine: wasmtime::Engine,
    linker: OnceLock<Linker<Cell>>,
}

impl Allocator {
    pub(super) fn new(allocation: Allocation) -> Result<Self, Error> {
        Ok(Self { engine: config::engine(allocation)?, linker: OnceLock::new() })
    }

    /// What components are linked with. It is made at the first use: few programs use both allocators.
    pub(super) fn linker(&self) -> Result<&Linker<Cell>, Error> {
        match self.linker.get() {
            Some(linker) => Ok(linker),
            None => {
                let made = imports::linker(&self.engine)?;
                Ok(self.linker.get_or_init(|| made))
            }
        }
    }
}
