//! A store on disk.
//!
//! In: a directory. Out: a store that outlives the process, also one that is killed, and that several processes share.
//! Invariants: a write is on the disk before it is acknowledged; what is damaged, not ours, or of a later version is not
//! written to. The file itself is the [`store`](crate::store)'s.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::ledger::{Backend, Rows, RowsMut, Visit};
use super::{Quota, StoreError, Terms};
use crate::error::Error;
use crate::store::{Database, Failed, Table};

/// A store in a directory: the file `store.db`. Several processes may use it at once; each operation is alone.
///
/// What was acknowledged survives `kill -9` and a loss of power: each write is flushed before it returns. When the disk is
/// full or fails, writes are refused and nothing that was acknowledged is lost; each later operation tries anew.
pub struct DiskStore {
    terms: Terms,
    database: Database,
}

impl DiskStore {
    /// Opens the store of a directory. Both are made where they are not there, for this user alone. Reads all of the store,
    /// so that damage is found now and not in a call.
    ///
    /// # Errors
    /// [`Error::is_environment`] for a directory or a file that others can write, a file that is no store or is damaged, a
    /// store of another version, a disk that is full.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Ok(Self { terms: Terms::default(), database: Database::open(dir)? })
    }

    /// Refuses a directory that has a store of an earlier version, whose format is no longer read. [`open`](Self::open)
    /// does so where there is no newer one.
    ///
    /// # Errors
    /// [`Error::is_environment`], with what to do about it.
    pub fn refuse_old(dir: &Path) -> Result<(), Error> {
        crate::store::refuse_old(dir)
    }

    /// With this much room for each namespace.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.terms.quota = quota;
        self
    }

    /// With this much time for other processes to be done with the file, of each operation; then it fails as
    /// [`StoreError::Busy`]. Default: 30 s, so that the deadline of a call is what ends its wait.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.database.set_patience(patience);
        self
    }

    /// With another clock than the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.terms.clock = Arc::new(clock);
        self
    }
}

impl fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskStore").field("file", &self.database.file()).field("terms", &self.terms).finish()
    }
}

impl Backend for DiskStore {
    fn terms(&self) -> &Terms {
        &self.terms
    }

    fn read<T>(&self, look: impl FnOnce(&dyn Rows) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.database.read(|table| look(table))
    }

    fn write<T>(&self, change: impl FnOnce(&mut dyn RowsMut) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.database.write(|table| change(&mut Changed(table)))
    }
}

/// The table in a transaction that writes.
struct Changed<'a, 'b>(&'a Table<'b>);

impl Rows for Table<'_> {
    fn get(&self, row: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(Table::get(self, row)?)
    }

    fn visit(&self, from: &[u8], each: Visit<'_>) -> Result<(), StoreError> {
        let mut end = Ok(());
        Table::visit(self, from, &mut |row, content| match each(row, content) {
            ControlFlow::Continue(()) => true,
            ControlFlow::Break(result) => {
                end = result;
                false
            }
        })?;
        end
    }
}

impl Rows for Changed<'_, '_> {
    fn get(&self, row: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Rows::get(self.0, row)
    }

    fn visit(&self, from: &[u8], each: Visit<'_>) -> Result<(), StoreError> {
        Rows::visit(self.0, from, each)
    }
}

impl RowsMut for Changed<'_, '_> {
    fn put(&mut self, row: &[u8], content: &[u8]) -> Result<(), StoreError> {
        Ok(self.0.put(row, content)?)
    }

    fn remove(&mut self, row: &[u8]) -> Result<(), StoreError> {
        Ok(self.0.remove(row)?)
    }
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Busy(problem) => Self::Busy(problem),
            Failed::Full(problem) => Self::Full(problem),
            Failed::Unavailable(problem) => Self::Unavailable(problem),
        }
    }
}

#[cfg(test)]
mod tests;
