//! Key-value store of components in SQLite, on disk or in memory.
//!
//! [`SqliteStore::open`] takes a directory and checks the whole file in it, `open_later` does so at
//! the first operation; `in_memory` needs none.
//! Each method of [`KeyStore`] is one transaction. A write first removes expired keys of its
//! namespace, then checks the quota, takes the next version and stores the value with a checksum.
//! Invariants: a key that was seen to have expired is removed, so a clock that goes back does not
//! restore it. Versions are never reused, not even after a deletion. A namespace without keys has
//! no row. A value that was altered from outside is an error, not a result.
//! Not here: the database file, its locks and its errors ([`store`](super::store)).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rusqlite::TransactionBehavior::{Deferred, Immediate};
use rusqlite::{Connection, OptionalExtension as _, params};
use toolcell_contract::controls::bound;
use toolcell_contract::error::Error;

use super::store::{Answer, Database};
use super::{Entry, KeyStore, MAX_KEY, MAX_KEYS_LISTED, Namespace, Page, Quota, StoreError};
use crate::os::clock::{Clock, SystemClock};

/// A key-value store in a file, or in memory.
#[derive(Debug)]
#[must_use]
pub struct SqliteStore {
    quota: Quota,
    clock: Arc<dyn Clock>,
    pub(super) database: Database,
}

impl SqliteStore {
    /// Opens the store in a directory, in the file `store.db`. Several processes can use it at the
    /// same time; operations are isolated. Directory and file are created if they do not exist, for
    /// this user only. The whole store is read, so that damage is found now and not during a call.
    ///
    /// Each write is flushed before it returns, so it survives `kill -9` and a loss of power. If
    /// the disk is full or fails, writes are refused and earlier values are not lost; each later
    /// operation tries again.
    ///
    /// # Errors
    /// [`Error::is_environment`] if other users can write to the directory or the file, if the file
    /// is damaged, is not a store or has another version, or if the disk is full.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let store = Self::open_later(dir);
        store.database.file()?;
        Ok(store)
    }

    /// As [`open`](Self::open), but at the first operation. If the store cannot be opened, that
    /// operation fails, and the next one tries again.
    pub fn open_later(dir: impl Into<PathBuf>) -> Self {
        Self::of(Database::new(Some(dir.into())))
    }

    /// Creates an empty store in memory, for tests and for tools whose keys need not outlive the
    /// process.
    pub fn in_memory() -> Self {
        Self::of(Database::new(None))
    }

    pub(super) fn of(database: Database) -> Self {
        Self { quota: Quota::default(), clock: Arc::new(SystemClock), database }
    }

    /// Sets the quota of each namespace.
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Sets the clock that decides when keys expire.
    #[cfg(test)]
    pub(super) fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns milliseconds since 1970, or 0 for an earlier clock.
    fn now(&self) -> i64 {
        let since = self.clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Reads one state of a namespace. Expired keys are removed afterwards; a failed removal does
    /// not affect the result.
    fn read<T>(
        &self,
        namespace: &Namespace,
        look: impl FnOnce(&View<'_>) -> Answer<T>,
    ) -> Result<T, StoreError> {
        let (found, has_ended) = self.database.transaction(Deferred, |rows| {
            let view = View { rows, space: &namespace.name(), quota: self.quota, now: self.now() };
            let ended =
                "SELECT EXISTS (SELECT 1 FROM entry WHERE namespace = ?1 AND expires <= ?2)";
            let has_ended =
                rows.query_row(ended, params![view.space, view.now], |row| row.get::<_, bool>(0))?;
            Ok((look(&view)?, has_ended))
        })?;
        if has_ended && let Err(error) = self.write(namespace, |_| Ok(())) {
            tracing::warn!(%error, "what is past its time stays in the store");
        }
        Ok(found)
    }

    /// Changes a namespace, exclusively among all processes, after the removal of expired keys.
    fn write<T>(
        &self,
        namespace: &Namespace,
        change: impl FnOnce(&View<'_>) -> Answer<T>,
    ) -> Result<T, StoreError> {
        self.database.transaction(Immediate, |rows| {
            let view = View { rows, space: &namespace.name(), quota: self.quota, now: self.now() };
            let sweep = "DELETE FROM entry WHERE namespace = ?1 AND expires <= ?2";
            if rows.execute(sweep, params![view.space, view.now])? > 0 {
                view.remove_empty_namespace()?;
            }
            change(&view)
        })
    }
}

impl KeyStore for SqliteStore {
    fn get(&self, namespace: &Namespace, key: &str) -> Result<Option<Entry>, StoreError> {
        check(key)?;
        self.read(namespace, |view| {
            view.find(key, |data, version| Entry { data: data.to_owned(), version })
        })
    }

    fn set(
        &self,
        namespace: &Namespace,
        key: &str,
        data: &[u8],
        ttl: Option<Duration>,
    ) -> Result<u64, StoreError> {
        check(key)?;
        self.write(namespace, |view| view.put(key, data, ttl))
    }

    fn delete(&self, namespace: &Namespace, key: &str) -> Result<bool, StoreError> {
        check(key)?;
        self.write(namespace, |view| {
            let delete = "DELETE FROM entry WHERE namespace = ?1 AND key = ?2";
            let deleted = view.rows.execute(delete, params![view.space, key.as_bytes()])?;
            view.remove_empty_namespace()?;
            Ok(deleted > 0)
        })
    }

    fn compare_and_swap(
        &self,
        namespace: &Namespace,
        key: &str,
        expected: Option<u64>,
        data: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Option<u64>, StoreError> {
        check(key)?;
        self.write(namespace, |view| {
            let is_expected = view.find(key, |_, version| version)? == expected;
            is_expected.then(|| view.put(key, data, ttl)).transpose()
        })
    }

    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Option<&str>,
        most: usize,
    ) -> Result<Page, StoreError> {
        let after = cursor.map(decode_cursor).transpose()?.unwrap_or_default();
        if prefix.len() > MAX_KEY || cursor.is_some() && !after.starts_with(prefix) {
            return Err(StoreError::InvalidKey);
        }
        let most = most.clamp(1, MAX_KEYS_LISTED);
        let mut keys = self.read(namespace, |view| {
            let page = "SELECT key FROM entry WHERE namespace = ?1 AND key >= ?2 AND key > ?3
                 AND substr(key, 1, length(?2)) = ?2 AND (expires IS NULL OR expires > ?4)
                 ORDER BY key LIMIT ?5";
            let mut query = view.rows.prepare(page)?;
            let most = i64::try_from(most + 1).unwrap_or(i64::MAX);
            let sought = params![view.space, prefix.as_bytes(), after.as_bytes(), view.now, most];
            let keys = query.query_map(sought, |row| row.get::<_, Vec<u8>>(0))?;
            keys.map(|key| Ok(String::from_utf8(key?).map_err(|_| damaged())?))
                .collect::<Answer<Vec<_>>>()
        })?;
        let is_more = keys.len() > most;
        keys.truncate(most);
        let cursor = keys.last().filter(|_| is_more).map(|key| URL_SAFE_NO_PAD.encode(key));
        Ok(Page { keys, cursor })
    }
}

/// One namespace in a transaction.
struct View<'a> {
    rows: &'a Connection,
    space: &'a [u8],
    quota: Quota,
    now: i64,
}

impl View<'_> {
    /// Finds a key. Returns the result of `read` for its value and version.
    fn find<T>(&self, key: &str, read: impl FnOnce(&[u8], u64) -> T) -> Answer<Option<T>> {
        let query =
            "SELECT value, version, expires, sum FROM entry WHERE namespace = ?1 AND key = ?2";
        let mut query = self.rows.prepare(query)?;
        let mut found = query.query(params![self.space, key.as_bytes()])?;
        let Some(row) = found.next()? else { return Ok(None) };
        let value = row.get_ref(0)?.as_blob();
        let (Ok(value), Ok(version), Ok(expires), Ok(kept)) =
            (value, row.get(1), row.get(2), row.get::<_, i64>(3))
        else {
            return Err(damaged().into());
        };
        if kept != checksum(self.space, key, value, version, expires) {
            return Err(damaged().into());
        }
        let is_kept = expires.is_none_or(|end| end > self.now);
        Ok(is_kept.then(|| read(value, version.cast_unsigned())))
    }

    /// Removes the row of a namespace without keys, and keeps its version under the empty name.
    fn remove_empty_namespace(&self) -> rusqlite::Result<()> {
        let forget = "DELETE FROM last WHERE namespace = ?1 AND NOT EXISTS (SELECT 1 FROM entry WHERE namespace = ?1)
                      RETURNING version";
        let gone =
            self.rows.query_row(forget, [self.space], |row| row.get::<_, i64>(0)).optional()?;
        if let Some(version) = gone {
            let keep = "INSERT INTO last VALUES (x'', ?1)
                        ON CONFLICT DO UPDATE SET version = max(version, excluded.version)";
            self.rows.execute(keep, [version])?;
        }
        Ok(())
    }

    /// Stores a value and replaces an earlier one, if there is room.
    fn put(&self, key: &str, data: &[u8], ttl: Option<Duration>) -> Answer<u64> {
        self.check_room(key, data.len() as u64)?;
        let next = "INSERT INTO last VALUES (?1, 1 + ifnull((SELECT version FROM last WHERE namespace = x''), 0))
                    ON CONFLICT DO UPDATE SET version = version + 1 RETURNING version";
        let version = self.rows.query_row(next, [self.space], |row| row.get::<_, i64>(0))?;
        // Rounded up, so that no key expires early.
        let milliseconds =
            |ttl: Duration| i64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
        let expires =
            ttl.map(|ttl| self.now.saturating_add(milliseconds(ttl))).filter(|end| *end < i64::MAX);
        let sum = checksum(self.space, key, data, version, expires);
        let put = "REPLACE INTO entry (namespace, key, value, version, expires, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.rows.execute(put, params![self.space, key.as_bytes(), data, version, expires, sum])?;
        Ok(version.cast_unsigned())
    }

    /// Checks that a value of this size fits. A value that takes no more bytes than the one it
    /// replaces always fits, even if the quota was lowered below the current usage.
    fn check_room(&self, key: &str, size: u64) -> Answer<()> {
        let Quota { bytes: most_bytes, keys: most_keys, value } = self.quota;
        let over = |problem| Err(StoreError::OverQuota(problem).into());
        if size > bound!(ValueBytes, value) {
            return over(format!("a value of {size} bytes exceeds the limit of {value} bytes"));
        }
        let held =
            "SELECT length(key) + length(value) FROM entry WHERE namespace = ?1 AND key = ?2";
        let parameters = params![self.space, key.as_bytes()];
        let held = self.rows.query_row(held, parameters, |row| row.get::<_, i64>(0)).optional()?;
        let (held, new) = (held.map(i64::cast_unsigned), key.len() as u64 + size);
        if held.is_some_and(|held| new <= held) {
            return Ok(());
        }
        // An index covers this query.
        let sums = "SELECT count(*), ifnull(sum(length(key) + length(value)), 0) FROM entry WHERE namespace = ?1";
        let (keys, bytes): (i64, i64) =
            self.rows.query_row(sums, [self.space], |row| row.try_into())?;
        let keys = keys.cast_unsigned() + u64::from(held.is_none());
        let bytes = (bytes.cast_unsigned() + new).saturating_sub(held.unwrap_or(0));
        let full = |what| over(format!("the store would {what}: delete some keys first"));
        if keys > bound!(StoredKeys, most_keys) && held.is_none() {
            return full(format!("have {keys} keys, and the limit is {most_keys}"));
        }
        if bytes > bound!(StoredBytes, most_bytes) {
            return full(format!("hold {bytes} bytes, and the limit is {most_bytes}"));
        }
        Ok(())
    }
}

/// Returns the checksum of an entry, which detects changes from outside: SQLite itself has
/// checksums only for its log.
fn checksum(space: &[u8], key: &str, value: &[u8], version: i64, expires: Option<i64>) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for part in [
        space,
        key.as_bytes(),
        value,
        &version.to_le_bytes(),
        &expires.unwrap_or(i64::MAX).to_le_bytes(),
    ] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().as_bytes().first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
}

fn check(key: &str) -> Result<(), StoreError> {
    let is_valid = (1..=bound!(KeyBytes, MAX_KEY)).contains(&key.len());
    if is_valid { Ok(()) } else { Err(StoreError::InvalidKey) }
}

/// Decodes the key at which a page ended. A forged cursor is at most a position in the list that
/// the caller may read anyway.
fn decode_cursor(cursor: &str) -> Result<String, StoreError> {
    let key = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|key| String::from_utf8(key).ok());
    key.filter(|key| check(key).is_ok()).ok_or(StoreError::InvalidKey)
}

fn damaged() -> StoreError {
    let problem = "a row is damaged: restore the store from a copy, or move it away";
    StoreError::Unavailable(problem.to_owned())
}
