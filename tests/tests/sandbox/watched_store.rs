//! A store of keys that calls a function before each operation: to wait in it, or to panic.

use std::time::Duration;

use toolcell::kv::{Entry, KeyStore, Namespace, Page, SqliteStore, StoreError};

/// A new store, and the function, which gets the name of the operation and the keys' owner.
pub(crate) struct WatchedStore<F> {
    store: SqliteStore,
    before: F,
}

impl<F: Fn(&'static str, &Namespace) + Send + Sync + 'static> WatchedStore<F> {
    pub(crate) fn new(before: F) -> Self {
        Self { store: SqliteStore::in_memory(), before }
    }
}

impl<F: Fn(&'static str, &Namespace) + Send + Sync + 'static> KeyStore for WatchedStore<F> {
    fn get(&self, whose: &Namespace, key: &str) -> Result<Option<Entry>, StoreError> {
        (self.before)("get", whose);
        self.store.get(whose, key)
    }

    fn set(
        &self,
        whose: &Namespace,
        key: &str,
        data: &[u8],
        ttl: Option<Duration>,
    ) -> Result<u64, StoreError> {
        (self.before)("set", whose);
        self.store.set(whose, key, data, ttl)
    }

    fn delete(&self, whose: &Namespace, key: &str) -> Result<bool, StoreError> {
        (self.before)("delete", whose);
        self.store.delete(whose, key)
    }

    fn compare_and_swap(
        &self,
        whose: &Namespace,
        key: &str,
        expected: Option<u64>,
        data: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Option<u64>, StoreError> {
        (self.before)("compare_and_swap", whose);
        self.store.compare_and_swap(whose, key, expected, data, ttl)
    }

    fn list(
        &self,
        whose: &Namespace,
        prefix: &str,
        cursor: Option<&str>,
        most: usize,
    ) -> Result<Page, StoreError> {
        (self.before)("list", whose);
        self.store.list(whose, prefix, cursor, most)
    }
}
