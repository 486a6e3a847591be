//! Key-value storage for components: values with a time to live and a version, within a quota.
//!
//! The imports of a guest (the WebAssembly code of a tool) call a [`KeyStore`], which an embedder
//! (the program that uses this library) gives to the engine. Its operations are get, set, delete,
//! compare-and-swap and list, each one transaction. [`SqliteStore`] implements it; an embedder can
//! implement another one. Every operation takes a [`Namespace`] (a tenant and a component), so that
//! no tool reaches the keys of another component or tenant.
//! An acknowledged write of a store on disk is durable. A write beyond the [`Quota`] of the
//! namespace is refused and changes nothing. The methods block, so they run on threads that may
//! block.
//! Not here: the permission to use a key (`contract::grants`), and the functions that guests call
//! (`engine/cell/imports`).

mod namespace;
mod sqlite;
mod store;

use std::time::Duration;

pub use namespace::Namespace;
pub use sqlite::SqliteStore;

/// 1 KiB, in bytes: the longest key. It is enough for a path or a digest.
pub const MAX_KEY: usize = 1024;
/// Most keys on a page of a list, 1000: with the longest keys, 1 MiB.
pub const MAX_KEYS_LISTED: usize = 1000;
/// 16 MiB, in bytes: all keys and values of a namespace.
pub const DEFAULT_STORE_BYTES: u64 = 16 << 20;
/// 10,000 keys of a namespace. This bounds the cost of many small values.
pub const DEFAULT_STORE_KEYS: u64 = 10_000;
/// 1 MiB, in bytes: one value. Host and guest hold a whole value in memory.
pub const DEFAULT_VALUE_BYTES: u64 = 1 << 20;

/// The capacity of a namespace.
///
/// # Defaults
/// [`DEFAULT_STORE_BYTES`], [`DEFAULT_STORE_KEYS`], [`DEFAULT_VALUE_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of all keys and values.
    pub bytes: u64,
    /// Number of keys.
    pub keys: u64,
    /// Bytes of one value.
    pub value: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { bytes: DEFAULT_STORE_BYTES, keys: DEFAULT_STORE_KEYS, value: DEFAULT_VALUE_BYTES }
    }
}

/// A stored value with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The value.
    pub data: Vec<u8>,
    /// The version of the value. Each write of the key gives it a higher one, also after a
    /// deletion. A caller cannot rely on an order between versions of different keys, except that a
    /// namespace whose keys were all deleted goes on above their highest version.
    pub version: u64,
}

/// One page of a list of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Keys in the order of their bytes.
    pub keys: Vec<String>,
    /// The cursor of the next page; `None` on the last page.
    pub cursor: Option<String>,
}

/// The reason why an operation of a store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The key, the prefix or the cursor is not valid.
    #[error(
        "a key must have 1 to {MAX_KEY} bytes, and a cursor must be the one that the previous page returned"
    )]
    InvalidKey,
    /// The quota is used up. The text can be shown to the tool.
    #[error("{0}")]
    OverQuota(String),
    /// Other processes held the store for too long. Nothing was changed. The text may contain a
    /// path.
    #[error("the store is busy: {0}")]
    Busy(String),
    /// The disk is full. Nothing was changed, and earlier values are still there. The text may
    /// contain a path.
    #[error("the store is full: {0}")]
    Full(String),
    /// The store does not work at present. The text is for the operator: it may contain a path.
    #[error("the store is not available: {0}")]
    Unavailable(String),
}

/// A key-value store for tools. Implement it to use another database.
///
/// All methods block, possibly on a disk: do not call them on an async thread. Each is one atomic,
/// isolated transaction.
///
/// # Errors
/// Every method can fail with [`StoreError::InvalidKey`], with [`StoreError::Busy`] while other
/// processes use the store, and with [`StoreError::Unavailable`]; after the latter, a write may or
/// may not have been done. Methods that write can also fail with [`StoreError::OverQuota`] and
/// [`StoreError::Full`].
pub trait KeyStore: Send + Sync + 'static {
    /// Returns the value of a key, or `None` if the key does not exist.
    ///
    /// # Errors
    /// As above.
    fn get(&self, namespace: &Namespace, key: &str) -> Result<Option<Entry>, StoreError>;

    /// Stores a value without expiry or for the time `ttl`, and replaces an earlier one. Returns
    /// its version.
    ///
    /// # Errors
    /// As above.
    fn set(
        &self,
        namespace: &Namespace,
        key: &str,
        data: &[u8],
        ttl: Option<Duration>,
    ) -> Result<u64, StoreError>;

    /// Removes a key. Returns true if it existed.
    ///
    /// # Errors
    /// As above.
    fn delete(&self, namespace: &Namespace, key: &str) -> Result<bool, StoreError>;

    /// Stores a value if the key has the version `expected`, or, for `None`, if the key does not
    /// exist. Returns the new version, or `None` if nothing was stored.
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

    /// Returns one page of the keys that begin with `prefix`: the first page, or the page at
    /// `cursor`. The page has at most `most` keys; `most` is raised to one and lowered to
    /// [`MAX_KEYS_LISTED`].
    ///
    /// A key that exists while all pages are read is on exactly one of them, whatever is written in
    /// the meantime.
    ///
    /// # Errors
    /// As above.
    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Option<&str>,
        most: usize,
    ) -> Result<Page, StoreError>;
}

#[cfg(test)]
mod tests;
