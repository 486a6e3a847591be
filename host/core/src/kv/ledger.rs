//! What a store does, whatever it keeps its rows in: quotas, times to live, versions, lists.
//!
//! In: transactions over rows in the order of their bytes ([`Backend`]). Out: [`KeyStore`].
//! Invariants: in every state that is kept, usage is the sum of the entries, and each entry that ends has one row in the
//! order of ends; what was seen to have ended is removed, so a clock that goes back brings nothing back; a namespace without
//! keys has no row; a value is copied only where it is asked for.
//! Rows: `u` usage and the last version of a namespace, `k` entries by key, `e` keys by the end of their time, `v` the
//! highest version of all namespaces that went.

#[cfg(test)]
mod audit;

use std::ops::ControlFlow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

#[cfg(test)]
pub(super) use audit::audit;

use super::{Entry, KeyStore, MAX_KEY, MAX_KEYS_LISTED, Namespace, Page, Quota, StoreError, Terms};

use crate::defence::{Defence, stands};

const USAGE: u8 = b'u';
const ENTRY: u8 = b'k';
const END: u8 = b'e';
const GONE: &[u8] = b"v";
/// The end of an entry that has none.
const NEVER: u64 = u64::MAX;
/// Entries past their time that one write removes on its way, so that it takes a bounded time.
const SWEPT: usize = 64;

/// Looks at rows one by one, until it has seen enough.
pub(super) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<Result<(), StoreError>>;

/// Rows as one transaction sees them.
pub(super) trait Rows {
    fn get(&self, row: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
    /// The rows from this one on, in order.
    fn visit(&self, from: &[u8], each: Visit<'_>) -> Result<(), StoreError>;
}

/// Rows in a transaction that writes.
pub(super) trait RowsMut: Rows {
    fn put(&mut self, row: &[u8], content: &[u8]) -> Result<(), StoreError>;
    fn remove(&mut self, row: &[u8]) -> Result<(), StoreError>;
}

/// Keeps rows.
pub(super) trait Backend: Send + Sync + 'static {
    fn terms(&self) -> &Terms;
    /// One state of all rows.
    fn read<T>(&self, look: impl FnOnce(&dyn Rows) -> Result<T, StoreError>) -> Result<T, StoreError>;
    /// One change of all rows, alone. It is kept before this returns. After an error it is gone, or kept up to that step: so
    /// a caller that gives one up leaves everything in accord.
    fn write<T>(&self, change: impl FnOnce(&mut dyn RowsMut) -> Result<T, StoreError>) -> Result<T, StoreError>;
}

impl<B: Backend> KeyStore for B {
    fn get(&self, namespace: &Namespace, key: &str) -> Result<Option<Entry>, StoreError> {
        check(key)?;
        let now = now(self.terms());
        let row = namespace.row(ENTRY, key.as_bytes());
        let Some(mut content) = self.read(|rows| rows.get(&row))? else {
            return Ok(None);
        };
        let head = Head::parse(&content)?;
        if head.end <= now {
            forget(self, namespace, &[key.to_owned()], now);
            return Ok(None);
        }
        content.drain(..HEAD);
        Ok(Some(Entry { data: content, version: head.version }))
    }

    fn set(&self, namespace: &Namespace, key: &str, data: &[u8], ttl: Option<Duration>) -> Result<u64, StoreError> {
        check(key)?;
        self.write(|rows| Ledger::open(rows, namespace, self.terms())?.keep(key, data, ttl))
    }

    fn delete(&self, namespace: &Namespace, key: &str) -> Result<bool, StoreError> {
        check(key)?;
        self.write(|rows| {
            let mut ledger = Ledger::open(rows, namespace, self.terms())?;
            let Some(found) = ledger.find(key)? else {
                return Ok(false);
            };
            ledger.remove(key, Some(&found))?;
            ledger.save()?;
            Ok(found.end > ledger.now)
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
        self.write(|rows| {
            let mut ledger = Ledger::open(rows, namespace, self.terms())?;
            let now = ledger.now;
            let found = ledger.find(key)?.filter(|head| head.end > now).map(|head| head.version);
            if found == expected { ledger.keep(key, data, ttl).map(Some) } else { Ok(None) }
        })
    }

    fn list(&self, namespace: &Namespace, prefix: &str, cursor: Option<&str>, most: usize) -> Result<Page, StoreError> {
        let after = cursor.map(place).transpose()?;
        if prefix.len() > MAX_KEY || after.as_ref().is_some_and(|after| !after.starts_with(prefix)) {
            return Err(StoreError::InvalidKey);
        }
        let most = most.clamp(1, MAX_KEYS_LISTED);
        let now = now(self.terms());
        let (mut keys, mut ended, mut is_more) = (Vec::new(), Vec::new(), false);
        let begin = namespace.row(ENTRY, b"").len();
        let prefix = namespace.row(ENTRY, prefix.as_bytes());
        let from = after.as_ref().map_or_else(|| prefix.clone(), |after| namespace.row(ENTRY, after.as_bytes()));
        self.read(|rows| {
            rows.visit(&from, &mut |row, content| {
                if !row.starts_with(&prefix) {
                    return ControlFlow::Break(Ok(()));
                }
                let (key, head) = match (text(row, begin), Head::parse(content)) {
                    (Ok(key), Ok(head)) => (key, head),
                    (Err(error), _) | (_, Err(error)) => return ControlFlow::Break(Err(error)),
                };
                if head.end <= now {
                    ended.push(key);
                } else if keys.len() == most {
                    is_more = true;
                    return ControlFlow::Break(Ok(()));
                } else if after.as_ref() != Some(&key) {
                    keys.push(key);
                }
                ControlFlow::Continue(())
            })
        })?;
        if !ended.is_empty() {
            forget(self, namespace, &ended, now);
        }
        let cursor = keys.last().filter(|_| is_more).map(|key| URL_SAFE_NO_PAD.encode(key));
        Ok(Page { keys, cursor })
    }
}

/// Removes what was seen to have ended. What reads found stands, whether this works or not.
fn forget<B: Backend>(store: &B, namespace: &Namespace, keys: &[String], now: u64) {
    let removed = store.write(|rows| {
        let mut ledger = Ledger::open(rows, namespace, store.terms())?;
        for key in keys {
            // Another caller may have written it since.
            if let Some(head) = ledger.find(key)?.filter(|head| head.end <= now) {
                ledger.remove(key, Some(&head))?;
            }
        }
        ledger.save()
    });
    if let Err(error) = removed {
        tracing::warn!(%error, "what is past its time stays in the store");
    }
}

/// One namespace in a transaction that writes.
struct Ledger<'a> {
    rows: &'a mut dyn RowsMut,
    namespace: &'a Namespace,
    quota: Quota,
    now: u64,
    usage: Usage,
}

impl<'a> Ledger<'a> {
    fn open(rows: &'a mut dyn RowsMut, namespace: &'a Namespace, terms: &Terms) -> Result<Self, StoreError> {
        let usage = match rows.get(&namespace.row(USAGE, b""))? {
            Some(content) => Usage::parse(&content)?,
            // It may have been there before, and no version comes again.
            None => Usage { version: gone(rows)?, ..Usage::default() },
        };
        Ok(Self { rows, namespace, quota: terms.quota, now: now(terms), usage })
    }

    fn find(&self, key: &str) -> Result<Option<Head>, StoreError> {
        let (wanted, mut found) = (self.namespace.row(ENTRY, key.as_bytes()), Ok(None));
        self.rows.visit(&wanted, &mut |row, content| {
            if row == wanted {
                found = Head::parse(content).map(Some);
            }
            ControlFlow::Break(Ok(()))
        })?;
        found
    }

    /// Puts a value in place of what is there, if there is room.
    fn keep(&mut self, key: &str, data: &[u8], ttl: Option<Duration>) -> Result<u64, StoreError> {
        let size = data.len() as u64;
        if size > self.quota.value && stands(Defence::ValueBytes) {
            return Err(over(format!("a value of {size} bytes exceeds the limit of {} bytes", self.quota.value)));
        }
        let mut swept = self.sweep()?;
        let found = loop {
            let found = self.find(key)?;
            match self.room(key, size, found.as_ref()) {
                Ok(()) => break found,
                Err(_) if swept == SWEPT => swept = self.sweep()?,
                Err(error) => return Err(error),
            }
        };
        self.remove(key, found.as_ref())?;
        let end = ttl.map_or(NEVER, |ttl| self.now.saturating_add(milliseconds(ttl)));
        self.usage.version = self.usage.version.checked_add(1).ok_or_else(damaged)?;
        self.usage.keys += 1;
        self.usage.bytes += key.len() as u64 + size;
        let record = [&self.usage.version.to_be_bytes(), &end.to_be_bytes(), data].concat();
        self.rows.put(&self.namespace.row(ENTRY, key.as_bytes()), &record)?;
        if end != NEVER {
            self.rows.put(&self.end_row(key, end), b"")?;
        }
        self.save()?;
        Ok(self.usage.version)
    }

    /// Whether a value of this size fits. One that takes no more than what it replaces does, also when the quota has become
    /// smaller than what there is.
    fn room(&self, key: &str, size: u64, found: Option<&Head>) -> Result<(), StoreError> {
        let (keys, bytes) = found.map_or((0, 0), |head| (1, head.size(key)));
        let keys = (self.usage.keys + 1).saturating_sub(keys);
        let bytes = (self.usage.bytes + key.len() as u64 + size).saturating_sub(bytes);
        let Quota { keys: most_keys, bytes: most_bytes, .. } = self.quota;
        if keys > most_keys && keys > self.usage.keys && stands(Defence::StoredKeys) {
            return Err(over(format!(
                "the store would have {keys} keys, and the limit is {most_keys}: delete some keys first"
            )));
        }
        if bytes > most_bytes && bytes > self.usage.bytes && stands(Defence::StoredBytes) {
            return Err(over(format!(
                "the store would hold {bytes} bytes, and the limit is {most_bytes}: delete some keys first"
            )));
        }
        Ok(())
    }

    /// Removes some of what is past its time, first what ended first. The result is how many.
    fn sweep(&mut self) -> Result<usize, StoreError> {
        let prefix = self.namespace.row(END, b"");
        let mut ended = Vec::new();
        let now = self.now;
        self.rows.visit(&prefix, &mut |row, _| {
            let Some((end, _)) = row.strip_prefix(&*prefix).and_then(|rest| rest.split_first_chunk()) else {
                return ControlFlow::Break(Ok(()));
            };
            if u64::from_be_bytes(*end) > now || ended.len() == SWEPT {
                return ControlFlow::Break(Ok(()));
            }
            match text(row, prefix.len() + size_of::<u64>()) {
                Ok(key) => ended.push(key),
                Err(error) => return ControlFlow::Break(Err(error)),
            }
            ControlFlow::Continue(())
        })?;
        for key in &ended {
            let found = self.find(key)?;
            self.remove(key, found.as_ref())?;
        }
        if !ended.is_empty() {
            self.save()?;
        }
        Ok(ended.len())
    }

    /// Removes an entry as it was found, but does not save the usage yet.
    fn remove(&mut self, key: &str, found: Option<&Head>) -> Result<(), StoreError> {
        let Some(head) = found else {
            return Ok(());
        };
        self.rows.remove(&self.namespace.row(ENTRY, key.as_bytes()))?;
        if head.end != NEVER {
            self.rows.remove(&self.end_row(key, head.end))?;
        }
        self.usage.keys = self.usage.keys.saturating_sub(1);
        self.usage.bytes = self.usage.bytes.saturating_sub(head.size(key));
        Ok(())
    }

    fn save(&mut self) -> Result<(), StoreError> {
        let row = self.namespace.row(USAGE, b"");
        if self.usage.keys > 0 {
            return self.rows.put(&row, &self.usage.content());
        }
        if self.usage.version > gone(self.rows)? {
            self.rows.put(GONE, &self.usage.version.to_be_bytes())?;
        }
        self.rows.remove(&row)
    }

    fn end_row(&self, key: &str, end: u64) -> Vec<u8> {
        self.namespace.row(END, &[&end.to_be_bytes(), key.as_bytes()].concat())
    }
}

/// What a namespace holds, and its last version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    bytes: u64,
    keys: u64,
    version: u64,
}

impl Usage {
    fn parse(content: &[u8]) -> Result<Self, StoreError> {
        match content.as_chunks() {
            ([bytes, keys, version], []) => {
                let [bytes, keys, version] = [bytes, keys, version].map(|number| u64::from_be_bytes(*number));
                Ok(Self { bytes, keys, version })
            }
            _ => Err(damaged()),
        }
    }

    fn content(self) -> Vec<u8> {
        [self.bytes, self.keys, self.version].map(u64::to_be_bytes).concat()
    }
}

/// What an entry begins with as it is kept: version, end in milliseconds since 1970. Its value follows.
#[derive(Debug)]
struct Head {
    version: u64,
    end: u64,
    /// Of the value.
    bytes: u64,
}

/// Bytes of a head.
const HEAD: usize = 2 * size_of::<u64>();

impl Head {
    fn parse(content: &[u8]) -> Result<Self, StoreError> {
        let (version, rest) = content.split_first_chunk().ok_or_else(damaged)?;
        let (end, data) = rest.split_first_chunk().ok_or_else(damaged)?;
        let [version, end] = [version, end].map(|number| u64::from_be_bytes(*number));
        Ok(Self { version, end, bytes: data.len() as u64 })
    }

    /// What it counts for.
    fn size(&self, key: &str) -> u64 {
        key.len() as u64 + self.bytes
    }
}

/// The highest version of all namespaces that went.
fn gone(rows: &dyn RowsMut) -> Result<u64, StoreError> {
    let content = rows.get(GONE)?.map(|content| content.try_into().map_err(|_| damaged()));
    content.transpose().map(|version| version.map_or(0, u64::from_be_bytes))
}

fn check(key: &str) -> Result<(), StoreError> {
    if (1..=MAX_KEY).contains(&key.len()) || !stands(Defence::KeyBytes) { Ok(()) } else { Err(StoreError::InvalidKey) }
}

/// The key at which a page ended. A cursor that a caller made up is at most a place in the list that this caller may read.
fn place(cursor: &str) -> Result<String, StoreError> {
    let key = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|key| String::from_utf8(key).ok());
    key.filter(|key| check(key).is_ok()).ok_or(StoreError::InvalidKey)
}

/// The key in a row.
fn text(row: &[u8], begin: usize) -> Result<String, StoreError> {
    row.get(begin..).and_then(|key| std::str::from_utf8(key).ok()).map(str::to_owned).ok_or_else(damaged)
}

/// In milliseconds since 1970; a clock before that tells 1970.
fn now(terms: &Terms) -> u64 {
    let now: SystemTime = (terms.clock)();
    now.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(NEVER - 1))
}

/// Rounded up: nothing ends before its time.
fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(NEVER)
}

fn over(problem: String) -> StoreError {
    StoreError::OverQuota(problem)
}

fn damaged() -> StoreError {
    StoreError::Unavailable("a row is damaged: restore the store from a copy, or move it away".into())
}
