//! A store that is gone with the process.
//!
//! In, out: as [`KeyStore`](super::KeyStore). Invariants: a write is alone.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::time::SystemTime;

use parking_lot::RwLock;

use super::ledger::{Backend, Rows, RowsMut, Visit};
use super::{Quota, StoreError, Terms};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store in memory, for tests and for tools whose keys need not outlive the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    terms: Terms,
    rows: RwLock<Map>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the quota of each namespace.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.terms.quota = quota;
        self
    }

    /// Sets the clock, which tells when keys expire.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.terms.clock = std::sync::Arc::new(clock);
        self
    }
}

impl Backend for MemoryStore {
    fn terms(&self) -> &Terms {
        &self.terms
    }

    fn read<T>(&self, look: impl FnOnce(&dyn Rows) -> Result<T, StoreError>) -> Result<T, StoreError> {
        look(&*self.rows.read())
    }

    fn write<T>(&self, change: impl FnOnce(&mut dyn RowsMut) -> Result<T, StoreError>) -> Result<T, StoreError> {
        change(&mut *self.rows.write())
    }
}

impl Rows for Map {
    fn get(&self, row: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(Map::get(self, row).cloned())
    }

    fn visit(&self, from: &[u8], each: Visit<'_>) -> Result<(), StoreError> {
        for (row, content) in self.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)) {
            if let ControlFlow::Break(end) = each(row, content) {
                return end;
            }
        }
        Ok(())
    }
}

impl RowsMut for Map {
    fn put(&mut self, row: &[u8], content: &[u8]) -> Result<(), StoreError> {
        self.insert(row.to_owned(), content.to_owned());
        Ok(())
    }

    fn remove(&mut self, row: &[u8]) -> Result<(), StoreError> {
        Map::remove(self, row);
        Ok(())
    }
}
