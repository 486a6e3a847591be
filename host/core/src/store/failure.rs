//! What an operation of the database failed of, and what to do about it.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::Error;
use crate::kv::StoreError;

pub(super) const DAMAGED: &str =
    "restore the store from a copy, or move it away to begin with an empty store; the file was not changed";
pub(super) const NEWER: &str =
    "use the version of toolcell that wrote the store, or another directory; the file was not changed";
pub(super) const OLDER: &str =
    "to begin with an empty store, move it away; the version of toolcell that wrote it can still read it";
const FULL: &str = "make room on the disk; the data stored before is intact";
const UNUSABLE: &str = "correct the cause, for example the disk or its permissions; the data stored before is intact";
const BUSY: &str = "try again; if that fails, find the process that keeps the store locked, and end it";
/// What SQLite calls a failed extension of its shared memory: there is no room for it. Source: SQLite, `sqlite3.h`.
const NO_ROOM_TO_SHARE: i32 = 4874;

/// An operation that others held up for longer than there was patience.
pub(super) fn busy(file: &Path) -> StoreError {
    StoreError::Busy(format!("{} is in use by other processes", file.display()))
}

/// An operation that failed.
pub(super) fn failed(file: &Path, error: &rusqlite::Error) -> StoreError {
    let place = file.display();
    match (error.sqlite_error_code(), error.sqlite_error().map(|error| error.extended_code)) {
        (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed), _) => {
            busy(file)
        }
        (Some(ErrorCode::DiskFull), _) | (_, Some(NO_ROOM_TO_SHARE)) => {
            StoreError::Full(format!("the disk of {place} is full"))
        }
        (Some(ErrorCode::NotADatabase), _) => {
            StoreError::Unavailable(format!("{place} is damaged, or is not a toolcell store"))
        }
        (Some(ErrorCode::DatabaseCorrupt), _) => StoreError::Unavailable(format!("{place} is damaged")),
        (Some(_) | None, _) => StoreError::Unavailable(format!("{place} cannot be read or written: {error}")),
    }
}

/// A database that cannot be opened.
pub(super) fn refused(file: &Path, error: &rusqlite::Error) -> Error {
    let is_damaged = matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt));
    match failed(file, error) {
        StoreError::Busy(problem) => Error::store(problem, BUSY),
        StoreError::Full(problem) => Error::store(problem, FULL),
        StoreError::Unavailable(problem) if is_damaged => Error::store(problem, DAMAGED),
        other @ (StoreError::InvalidKey | StoreError::OverQuota(_) | StoreError::Unavailable(_)) => {
            Error::store(other.to_string(), UNUSABLE)
        }
    }
}
