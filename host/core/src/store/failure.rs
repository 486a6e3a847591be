//! What an operation of the database failed of, and what to do about it.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::Error;

pub(super) const DAMAGED: &str =
    "restore the store from a copy, or move it away to begin with an empty store; the file was not changed";
pub(super) const NEWER: &str =
    "use the version of toolcell that wrote the store, or another directory; the file was not changed";
const FULL: &str = "make room on the disk; the data stored before is intact";
const UNUSABLE: &str = "correct the cause, for example the disk or its permissions; the data stored before is intact";
const BUSY: &str = "try again; if that fails, find the process that keeps the store locked, and end it";
/// What SQLite calls a failed extension of its shared memory: there is no room for it. Source: SQLite, `sqlite3.h`.
const NO_ROOM_TO_SHARE: i32 = 4874;

/// Why an operation did nothing. The texts may name a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Other processes had it for longer than there was patience.
    Busy(String),
    /// The disk has no room.
    Full(String),
    /// Anything else.
    Unavailable(String),
}

impl Failed {
    pub(super) fn of(file: &Path, error: &rusqlite::Error) -> Self {
        let place = file.display();
        match kind(error) {
            Kind::Busy => Self::Busy(format!("{place} is in use by other processes")),
            Kind::Full => Self::Full(format!("the disk of {place} is full")),
            Kind::Foreign | Kind::Damaged => Self::Unavailable(format!("{place} is damaged: {DAMAGED}")),
            Kind::Other => Self::Unavailable(format!("{place}: {error}")),
        }
    }

    pub(super) fn damaged() -> Self {
        Self::Unavailable("a row is damaged: restore the store from a copy, or move it away".into())
    }
}

enum Kind {
    Busy,
    Full,
    /// No database at all.
    Foreign,
    Damaged,
    Other,
}

fn kind(error: &rusqlite::Error) -> Kind {
    match (error.sqlite_error_code(), error.sqlite_error().map(|error| error.extended_code)) {
        (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed), _) => {
            Kind::Busy
        }
        (Some(ErrorCode::DiskFull), _) | (_, Some(NO_ROOM_TO_SHARE)) => Kind::Full,
        (Some(ErrorCode::NotADatabase), _) => Kind::Foreign,
        (Some(ErrorCode::DatabaseCorrupt), _) => Kind::Damaged,
        (Some(_) | None, _) => Kind::Other,
    }
}

/// A database that cannot be opened.
pub(super) fn refused(file: &Path, error: &rusqlite::Error) -> Error {
    let place = file.display();
    let (problem, hint) = match kind(error) {
        Kind::Busy => (format!("{place} is in use by other processes"), BUSY),
        Kind::Full => (format!("the disk of {place} is full"), FULL),
        Kind::Foreign => (format!("{place} is not a toolcell store"), DAMAGED),
        Kind::Damaged => (format!("{place} is damaged"), DAMAGED),
        Kind::Other => (format!("{place} cannot be read or written: {error}"), UNUSABLE),
    };
    Error::store(problem, hint)
}
