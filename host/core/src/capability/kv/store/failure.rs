//! Converts errors of SQLite to errors of the store, with hints for the operator.
//!
//! `failed` is used for an operation of a running store: it distinguishes a busy store, a full
//! disk, a damaged file and everything else. `open_error` is used while a store is opened, and adds
//! a hint: restore a copy if the file is damaged, otherwise free the disk or the lock. The texts
//! contain the path of the file, so they are for the operator and not for a tool.

use std::path::Path;

use rusqlite::ErrorCode;
use toolcell_contract::error::Error;

use crate::capability::kv::StoreError;

pub(super) const DAMAGED: &str = "restore the store from a copy, or move it away to begin with an empty store; the file was not changed";
pub(super) const OTHER_VERSION: &str = "use the version of toolcell that wrote the store, or move it away to begin with an empty one; the file was not changed";
const UNUSABLE: &str = "make room on the disk, correct its permissions, or end the process that keeps the file locked, and try \
                        again; the data stored before is intact";
/// SQLite's code for a failed extension of its shared memory, which means that there is no room for
/// it. Source: SQLite, `sqlite3.h`.
const NO_ROOM_TO_SHARE: i32 = 4874;

/// Returns the error of an operation that waited too long for other processes.
pub(super) fn busy_error(file: &Path) -> StoreError {
    StoreError::Busy(format!("{} is in use by other processes", file.display()))
}

/// Returns the error of an operation that failed.
pub(super) fn failed(file: &Path, error: &rusqlite::Error) -> StoreError {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    let place = file.display();
    let extended = error.sqlite_error().map(|error| error.extended_code);
    StoreError::Unavailable(match error.sqlite_error_code() {
        Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed) => return busy_error(file),
        code if code == Some(ErrorCode::DiskFull) || extended == Some(NO_ROOM_TO_SHARE) => {
            return StoreError::Full(format!("the disk of {place} is full"));
        }
        Some(ErrorCode::NotADatabase) => {
            format!("{place} is damaged, or is not a toolcell store")
        }
        Some(ErrorCode::DatabaseCorrupt) => format!("{place} is damaged"),
        Some(_) | None => format!("{place} cannot be read or written: {error}"),
    })
}

/// Returns the error of a database that cannot be opened.
pub(super) fn open_error(file: &Path, error: &rusqlite::Error) -> Error {
    let is_damaged = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    );
    Error::store(failed(file, error).to_string(), if is_damaged { DAMAGED } else { UNUSABLE })
}
