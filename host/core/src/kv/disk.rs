//! A store on disk.
//!
//! In: a directory. Out: a store that outlives the process, also one that is killed, and that several processes share.
//! Invariants: a write is on the disk before it is acknowledged; what is damaged, not ours, or of a later version is not
//! written to. The file itself is the [`store`](crate::store)'s.

use std::path::Path;
use std::time::Duration;

use super::entries::{Entries, settings};
use crate::error::Error;
use crate::store::Database;

/// A store on disk: the file `store.db` in a directory. Several processes can use it at the same time; operations are
/// isolated.
///
/// Each write is flushed before it returns, so it survives `kill -9` and a loss of power. If the disk is full or fails,
/// writes are refused and earlier values are not lost; each later operation tries again.
#[derive(Debug)]
pub struct DiskStore(Entries);

impl DiskStore {
    /// Opens the store in a directory. Directory and file are created if they do not exist, for this user only. The
    /// whole store is read, so that damage is found now and not during a call.
    ///
    /// # Errors
    /// [`Error::is_environment`] if other users can write to the directory or the file, if the file is damaged, is not
    /// a store or has another version, or if the disk is full.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Ok(Self(Entries { database: Database::open(dir)?, ..Entries::default() }))
    }

    /// Fails for a directory that contains a store of an earlier version, whose format cannot be read any more.
    /// [`open`](Self::open) does this if there is no newer store.
    ///
    /// # Errors
    /// [`Error::is_environment`], with what to do about it.
    pub fn refuse_old(dir: &Path) -> Result<(), Error> {
        crate::store::refuse_old(dir)
    }

    /// Sets how long an operation waits for other processes before it fails as [`StoreError::Busy`](super::StoreError::Busy).
    ///
    /// # Defaults
    /// 30 s, the default timeout of a call.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.0.database.set_patience(patience);
        self
    }
}

settings!(DiskStore);

#[cfg(test)]
mod tests;
