//! Limits the memory of a cell (a fresh WebAssembly instance for one call): one budget for all
//! memories and tables of its guest.
//!
//! The store of each call has a [`Limiter`], and wasmtime asks it before a memory or table grows,
//! including the initial size. It adds the growth to one sum and refuses what would exceed the
//! limit of the call; the guest (the WebAssembly code of a tool) sees a failed growth, which it can
//! handle. wasmtime's own limits apply to each memory and table separately. The numbers of
//! instances, tables, memories, and elements of a table are limited too.
//! The last refusal is kept, so that an error of the call can name the limit. `peak` is the memory
//! in the call's usage.

use toolcell_contract::controls::bound;
use toolcell_contract::outcome::tool_error::{LimitHit, LimitKind};
use wasmtime::ResourceLimiter;

/// Elements of one table: language runtimes have tens of thousands of functions.
pub(crate) const TABLE_ELEMENTS: usize = 100_000;
/// Host bytes of one table element.
const ELEMENT_BYTES: u64 = 8;
/// Core instances of one cell; the stock limit is 10,000.
const INSTANCES: usize = 64;
/// Tables of one cell; the stock limit is 10,000.
const TABLES: usize = 64;
/// Memories of one cell; the stock limit is 10,000.
const MEMORIES: usize = 8;

/// Sums the memory of a cell, and refuses growth over the limit: the guest gets a failed growth,
/// which it can handle.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: u64,
    held: u64,
    last: u64,
    hit: Option<LimitHit>,
}

impl Limiter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, held: 0, last: 0, hit: None }
    }

    /// Returns the most bytes that were allocated. Memories and tables never shrink, so it is the
    /// current sum.
    pub(crate) fn peak(&self) -> u64 {
        self.held
    }

    /// Returns the bytes that may still be allocated.
    pub(crate) fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.held)
    }

    /// Returns the last refused growth.
    pub(crate) fn hit(&self) -> Option<LimitHit> {
        self.hit
    }

    fn grow(&mut self, by: u64) -> bool {
        let asked = self.held.saturating_add(by);
        if asked > bound!(Memory, self.limit) {
            self.hit = Some(LimitHit::new(LimitKind::Memory, self.limit, asked));
            return false;
        }
        (self.held, self.last) = (asked, by);
        true
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(desired.saturating_sub(current) as u64))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > bound!(TableElements, TABLE_ELEMENTS) {
            let (limit, asked) = (TABLE_ELEMENTS as u64, desired as u64);
            self.hit = Some(LimitHit::new(LimitKind::TableElements, limit, asked));
            return Ok(false);
        }
        Ok(self.grow((desired.saturating_sub(current) as u64).saturating_mul(ELEMENT_BYTES)))
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.held -= std::mem::take(&mut self.last);
        tracing::debug!(%error, "a permitted growth of a memory failed");
        Ok(())
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.held -= std::mem::take(&mut self.last);
        tracing::debug!(%error, "a permitted growth of a table failed");
        Ok(())
    }

    fn instances(&self) -> usize {
        bound!(Instances, INSTANCES)
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_size_is_bounded() {
        let mut limiter = Limiter::new(u64::MAX);
        assert!(limiter.table_growing(0, TABLE_ELEMENTS, None).unwrap());
        assert!(!limiter.table_growing(0, TABLE_ELEMENTS + 1, None).unwrap());
    }

    #[test]
    fn memories_and_tables_share_one_budget() {
        let mut limiter = Limiter::new(1000);
        assert!(limiter.memory_growing(0, 400, None).unwrap());
        assert!(limiter.memory_growing(0, 400, Some(1 << 30)).unwrap());
        assert!(!limiter.table_growing(0, 26, None).unwrap());
        assert_eq!(limiter.hit(), Some(LimitHit::new(LimitKind::Memory, 1000, 1008)));
        assert!(limiter.table_growing(0, 25, None).unwrap());
        assert!(!limiter.memory_growing(400, usize::MAX, None).unwrap());
        assert_eq!((limiter.peak(), limiter.remaining()), (1000, 0));
    }
}
