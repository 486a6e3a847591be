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

/// A store on disk: the file `store.db` in a directory. Several processes can use it at the same time; operations are
/// isolated.
///
/// Each write is flushed before it returns, so it survives `kill -9` and a loss of power. If the disk is full or fails,
/// writes are refused and earlier values are not lost; each later operation tries again.
pub struct DiskStore {
    terms: Terms,
    database: Database,
}

impl DiskStore {
    /// Opens the store in a directory. Directory and file are created if they do not exist, for this user only. The
    /// whole store is read, so that damage is found now and not during a call.
    ///
    /// # Errors
    /// [`Error::is_environment`] if other users can write to the directory or the file, if the file is damaged, is not
    /// a store or has another version, or if the disk is full.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Ok(Self { terms: Terms::default(), database: Database::open(dir)? })
    }

    /// Fails for a directory that contains a store of an earlier version, whose format cannot be read any more.
    /// [`open`](Self::open) does this if there is no newer store.
    ///
    /// # Errors
    /// [`Error::is_environment`], with what to do about it.
    pub fn refuse_old(dir: &Path) -> Result<(), Error> {
        crate::store::refuse_old(dir)
    }

    /// Sets the quota of each namespace.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.terms.quota = quota;
        self
    }

    /// Sets how long an operation waits for other processes before it fails as [`StoreError::Busy`].
    ///
    /// # Defaults
    /// 30 s, the default timeout of a call.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.database.set_patience(patience);
        self
    }

    /// Sets the clock, which tells when keys expire.
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
