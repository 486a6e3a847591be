//! Stores keys and values between calls. All tools of a component share its keys; each tenant has
//! its own.
//!
//! ```
//! use toolcell_guest::{Failure, kv};
//!
//! /// Counts calls, also those that run at the same time.
//! fn count() -> Result<u64, Failure> {
//!     loop {
//!         let entry = kv::get("count")?;
//!         let next = 1 + entry.as_ref().map_or(Ok(0), kv::Entry::json::<u64>)?;
//!         let seen = entry.map(|entry| entry.version());
//!         if kv::compare_and_swap("count", seen, next.to_string())?.is_some() {
//!             return Ok(next);
//!         }
//!     }
//! }
//!
//! assert_eq!((count(), count()), (Ok(1), Ok(2)));
//! ```
//!
//! Needs the grant `kv`: `read PREFIX*` to get and to list, `write PREFIX*` for everything. In
//! native tests each thread has a store in memory. It is empty at first, and its values do not
//! expire.

use std::fmt;
use std::time::Duration;
use std::vec;

use serde::de::DeserializeOwned;

use super::imports;

/// Keys of one page of a listing: few pages, and each page is small.
const PAGE: u32 = 100;

/// A value and its version at the time of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub(crate) data: Vec<u8>,
    pub(crate) version: u64,
}

impl Entry {
    /// The value.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// The value as text.
    ///
    /// # Errors
    /// [`Error::Unexpected`] if it is not UTF-8.
    pub fn text(&self) -> Result<&str, Error> {
        str::from_utf8(&self.data).map_err(|error| Error::Unexpected(error.to_string()))
    }

    /// Deserializes the value from JSON.
    ///
    /// # Errors
    /// [`Error::Unexpected`] if it is not JSON of this shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.data).map_err(|error| Error::Unexpected(error.to_string()))
    }

    /// The version of the value. It changes with each write of the key, and a key never has the
    /// same version twice.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// The reason why an operation failed. It changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The tool does not have the grant. The text says what the operator can grant.
    Denied(String),
    /// The key is empty or longer than 1 KiB.
    InvalidKey(String),
    /// The value is too large, or would make the store too large.
    OverQuota(String),
    /// The store does not answer.
    Unavailable(String),
    /// The value does not have the shape of the requested type.
    Unexpected(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(sentence) => f.write_str(sentence),
            Self::InvalidKey(problem) => write!(f, "the key or the cursor is not valid: {problem}"),
            Self::OverQuota(problem) => write!(f, "the store cannot keep the value: {problem}"),
            Self::Unavailable(problem) => write!(f, "the store does not answer: {problem}"),
            Self::Unexpected(problem) => {
                write!(f, "the kept value has an unexpected shape: {problem}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Returns the value of a key, or `None` if there is no such key or its value has expired.
///
/// # Errors
/// [`Error`].
pub fn get(key: &str) -> Result<Option<Entry>, Error> {
    imports::get(key)
}

/// Sets a value that does not expire, and returns its version.
///
/// # Errors
/// [`Error`].
pub fn set(key: &str, value: impl AsRef<[u8]>) -> Result<u64, Error> {
    imports::set(key, value.as_ref(), None)
}

/// Sets a value that expires after this time, and returns its version.
///
/// # Units
/// Whole milliseconds, rounded up.
///
/// # Errors
/// [`Error`].
pub fn set_for(time: Duration, key: &str, value: impl AsRef<[u8]>) -> Result<u64, Error> {
    imports::set(key, value.as_ref(), Some(time))
}

/// Deletes a key. Returns true if it existed.
///
/// # Errors
/// [`Error`].
pub fn delete(key: &str) -> Result<bool, Error> {
    imports::delete(key)
}

/// Sets a value if its key still has the version `expected`; `None` means that the key does not
/// exist. Returns the new version, or `None` if the key has another version and nothing was set.
///
/// # Errors
/// [`Error`].
pub fn compare_and_swap(
    key: &str,
    expected: Option<u64>,
    value: impl AsRef<[u8]>,
) -> Result<Option<u64>, Error> {
    imports::compare_and_swap(key, expected, value.as_ref(), None)
}

/// Like [`compare_and_swap`], for a value that expires after this time.
///
/// # Units
/// Whole milliseconds, rounded up.
///
/// # Errors
/// [`Error`].
pub fn compare_and_swap_for(
    time: Duration,
    key: &str,
    expected: Option<u64>,
    value: impl AsRef<[u8]>,
) -> Result<Option<u64>, Error> {
    imports::compare_and_swap(key, expected, value.as_ref(), Some(time))
}

/// Returns the keys with this prefix, in ascending order of their bytes. The iterator requests them
/// from the host page by page.
pub fn list(prefix: impl Into<String>) -> Keys {
    Keys { prefix: prefix.into(), page: Vec::new().into_iter(), next: Next::Page(None) }
}

/// An iterator over keys, from [`list`]. It ends after the first error.
#[derive(Debug)]
pub struct Keys {
    prefix: String,
    page: vec::IntoIter<String>,
    next: Next,
}

/// The state after the current page.
#[derive(Debug)]
enum Next {
    /// The page at this cursor follows. `None`: the first page.
    Page(Option<String>),
    End,
}

impl Iterator for Keys {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(key) = self.page.next() {
                return Some(Ok(key));
            }
            let Next::Page(cursor) = std::mem::replace(&mut self.next, Next::End) else {
                return None;
            };
            match imports::list(&self.prefix, cursor.as_deref(), PAGE) {
                Ok((keys, cursor)) => {
                    self.page = keys.into_iter();
                    self.next = cursor.map_or(Next::End, |cursor| Next::Page(Some(cursor)));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
