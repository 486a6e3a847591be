//! A store that is gone with the process.
//!
//! In, out: as [`KeyStore`](super::KeyStore).

use super::entries::{Entries, settings};

/// A store in memory, for tests and for tools whose keys need not outlive the process.
#[derive(Debug, Default)]
pub struct MemoryStore(Entries);

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

settings!(MemoryStore);
