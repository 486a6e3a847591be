//! What a tool keeps between calls: keys with values, times to live, versions, and how much of it there may be.
//!
//! In: a namespace, a key, a value. Out: [`KeyStore`], kept by [`MemoryStore`] or [`DiskStore`].
//! Invariants: no operation takes a key without its [`Namespace`], so nobody reaches what another tenant or another tool
//! keeps; what is acknowledged stays; what is over the quota is refused and changes nothing.
//! Not here: whether a tool may use a key (`rights`), and what one call may hold of what it read.

mod disk;
mod ledger;
mod memory;
mod namespace;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use disk::DiskStore;
pub use memory::MemoryStore;
pub use namespace::Namespace;

/// The longest key, in bytes: room for a path or a digest, and far from what an index is made for.
pub const MAX_KEY: usize = 1024;
/// Keys on the largest page of a list: with the longest keys, 1 MiB.
pub const MAX_KEYS_LISTED: usize = 1000;
/// Bytes of keys and values together that a namespace may hold: a tool's notes, not its archive.
pub const DEFAULT_STORE_BYTES: u64 = 16 << 20;
/// Keys that a namespace may hold, so that many small values cost no more than few large ones.
pub const DEFAULT_STORE_KEYS: u64 = 10_000;
/// Bytes of one value: it is in memory as a whole, the host's and the guest's.
pub const DEFAULT_VALUE_BYTES: u64 = 1 << 20;

/// How much a namespace may hold.
///
/// # Defaults
/// [`DEFAULT_STORE_BYTES`], [`DEFAULT_STORE_KEYS`], [`DEFAULT_VALUE_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of all keys and values.
    pub bytes: u64,
    /// Keys.
    pub keys: u64,
    /// Bytes of one value.
    pub value: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { bytes: DEFAULT_STORE_BYTES, keys: DEFAULT_STORE_KEYS, value: DEFAULT_VALUE_BYTES }
    }
}

/// A value that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The value.
    pub data: Vec<u8>,
    /// Which writing of this key it is. Grows with every one and never comes again, also after a deletion. A namespace that
    /// had no key left goes on after the highest version of all that went; otherwise it says nothing of others.
    pub version: u64,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Keys in the order of their bytes.
    pub keys: Vec<String>,
    /// Where the next page begins; none when there is none.
    pub cursor: Option<String>,
}

/// Why an operation did nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The key, or the prefix or cursor of a list, is none.
    #[error("a key has 1 to {MAX_KEY} bytes, and a cursor is what the page before gave")]
    InvalidKey,
    /// There is no room. The text is fit for the tool.
    #[error("{0}")]
    OverQuota(String),
    /// Other processes held the store for too long; nothing was done. The text may name a path.
    #[error("the store is busy: {0}")]
    Busy(String),
    /// The disk has no room; nothing was done, and what was kept before is there. The text may name a path.
    #[error("the store is full: {0}")]
    Full(String),
    /// The store does not work at present. The text is for the operator: it may contain a path.
    #[error("the store is not available: {0}")]
    Unavailable(String),
}

/// A store of keys and values for tools. Implement it to use another database.
///
/// All methods block and may wait for a disk, so do not call them on an async thread. Each is one atomic, isolated
/// transaction.
///
/// # Errors
/// Of every method: [`StoreError::InvalidKey`], [`StoreError::Busy`] where other processes use the store, and
/// [`StoreError::Unavailable`] when nothing was done, or when a write may have been done or not, which cannot be told. Of those
/// that write: [`StoreError::OverQuota`], [`StoreError::Full`].
pub trait KeyStore: Send + Sync + 'static {
    /// The value of a key.
    ///
    /// # Errors
    /// As above.
    fn get(&self, namespace: &Namespace, key: &str) -> Result<Option<Entry>, StoreError>;

    /// Keeps a value, for ever or for a time, in place of the one before. The result is its version.
    ///
    /// # Errors
    /// As above.
    fn set(&self, namespace: &Namespace, key: &str, data: &[u8], ttl: Option<Duration>) -> Result<u64, StoreError>;

    /// Removes a key; whether there was one.
    ///
    /// # Errors
    /// As above.
    fn delete(&self, namespace: &Namespace, key: &str) -> Result<bool, StoreError>;

    /// Keeps a value if the key is at this version, or if there is no such key where none is expected. The result is the
    /// new version, or none when it is at another one.
    ///
    /// # Errors
    /// As above.
    fn compare_and_swap(
        &self,
        namespace: &Namespace,
        key: &str,
        expected: Option<u64>,
        data: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Option<u64>, StoreError>;

    /// Keys that begin with `prefix`, from the beginning or from where the page before ended, at most as many, which is
    /// taken as at least one and at most [`MAX_KEYS_LISTED`].
    ///
    /// A key that is there from the first page to the last is on exactly one of them, whatever is written meanwhile.
    ///
    /// # Errors
    /// As above.
    fn list(&self, namespace: &Namespace, prefix: &str, cursor: Option<&str>, most: usize) -> Result<Page, StoreError>;
}

/// What a store goes by: how much it may hold, and what time it is.
#[derive(Clone)]
struct Terms {
    quota: Quota,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { quota: Quota::default(), clock: Arc::new(SystemTime::now) }
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("quota", &self.quota).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
