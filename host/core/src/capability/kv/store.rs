//! Opens an SQLite database, on disk or in memory, and runs transactions in it.
//!
//! `sqlite` is the only user. [`Database::new`] takes a directory; the first use creates the file
//! if needed, and verifies all of it. [`Database::transaction`] takes a closure of statements; a
//! write excludes writers of all processes and waits for at most 30 seconds. An error of the
//! closure changes nothing.
//! Invariants, on disk: a change is flushed before `transaction` returns, so it survives the death
//! of the process and a loss of power. A process that is killed leaves the state before or after
//! its last change. Only this user can access the file, and a file that another user could have
//! read or written is never used. Several processes can use it at the same time.
//! Layout: the file `store.db` in WAL mode (a write-ahead log), with `store.db-wal` and
//! `store.db-shm` while it is in use. The header has this crate's application id, and
//! `user_version` is the version of the schema.
//! The texts of errors contain the file's path, so they are for the operator and not for a tool.
//! Not here: the meaning of the tables (`kv/sqlite.rs`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use toolcell_contract::error::Error;

use super::StoreError;
use crate::os::private::{self, Inode, NotPrivate};

/// The file's name.
pub(crate) const FILE: &str = "store.db";
const OTHER_DIRECTORY: &str = "use a directory that you own and that no other user can write to";
const DOUBTFUL: &str =
    "see who wrote it; make it yours with mode 600 if you trust it, or move it away";
const DAMAGED: &str = "restore the store from a copy, or move it away to begin with an empty store; the file was not changed";
const OTHER_VERSION: &str = "use the version of toolcell that wrote the store, or move it away to begin with an empty one; the file was not changed";
const UNUSABLE: &str = "make room on the disk, correct its permissions, or end the process that keeps the file locked, and try \
                        again; the data stored before is intact";
/// SQLite's code for a failed extension of its shared memory, which means that there is no room for
/// it. Source: SQLite, `sqlite3.h`.
const NO_ROOM_TO_SHARE: i32 = 4874;

/// The result of statements. An error undoes them.
pub(crate) type Answer<T> = Result<T, Undone>;

/// The reason why statements changed nothing.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum Undone {
    Failed(#[from] rusqlite::Error),
    Refused(#[from] StoreError),
}

/// Longest wait for other processes: longer than most calls may take, so that a call's own deadline
/// ends its wait.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// Application id in the file's header: `tcel`.
const APPLICATION: i64 = 0x7463_656c;
/// The version of the schema that this code reads and writes.
const SCHEMA: i64 = 2;
/// Connections that are kept open: as many as threads usually read at once.
const MAX_IDLE: usize = 4;
/// KiB. The page cache of a connection.
const CACHE: i64 = 4096;
/// Bytes of the log that stay on the disk after its content was moved into the database.
const LOG: i64 = 4 << 20;

/// The tables. `last` has the last version of each namespace that has keys, and, under the empty
/// name, the highest version of the namespaces that had keys. `sum` is the checksum of the rest of
/// a row.
const TABLES: &str = "
    CREATE TABLE entry (
        namespace BLOB NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL, expires INTEGER,
        sum INTEGER NOT NULL, PRIMARY KEY (namespace, key)) STRICT;
    CREATE INDEX room ON entry (namespace, length(key) + length(value));
    CREATE INDEX ends ON entry (namespace, expires) WHERE expires IS NOT NULL;
    CREATE TABLE last (namespace BLOB PRIMARY KEY NOT NULL, version INTEGER NOT NULL) STRICT;";

/// A database. A database on disk can be open in several processes and any number of threads.
#[derive(Debug)]
pub(crate) struct Database {
    /// `None`: the database is in memory, in its one connection.
    dir: Option<PathBuf>,
    /// The file in the directory and its inode, once it was checked.
    file: OnceLock<(PathBuf, Inode)>,
    /// [`BUSY_TIMEOUT`], except in tests.
    pub(crate) patience: Duration,
    idle: Mutex<Vec<Connection>>,
    /// Serialises the writers of this process, so that they do not poll the file's lock, and the
    /// first uses, so that one thread checks the file.
    writing: Mutex<()>,
}

impl Database {
    /// Returns a database in this directory, which is opened at the first use, or one in memory.
    pub(crate) fn new(dir: Option<PathBuf>) -> Self {
        Self {
            dir,
            file: OnceLock::new(),
            patience: BUSY_TIMEOUT,
            idle: Mutex::default(),
            writing: Mutex::default(),
        }
    }

    /// Returns the file, which is created or checked at the first use. The whole database is read,
    /// so that damage is found here. A failure is not cached: the next use tries again. `None` for
    /// a database in memory.
    ///
    /// # Errors
    /// [`Error::is_environment`] for a directory or file that others can write, a file that is not
    /// a store, is damaged or has another version, or a full disk.
    pub(super) fn file(&self) -> Result<Option<&Path>, Error> {
        let Some(dir) = &self.dir else { return Ok(None) };
        if let Some((file, _)) = self.file.get() {
            return Ok(Some(file));
        }
        let _one = self.writing.lock();
        if let Some((file, _)) = self.file.get() {
            return Ok(Some(file));
        }
        let file = secured(dir)?;
        let connection = opened(&file).map_err(|error| open_error(&file, &error))?;
        verified(&connection, &file)?;
        // Not before: some filesystems give a file another inode when it is first opened to write.
        let found = private::check_closed(&file);
        let found = found.map_err(|unfit| place_error(&file, unfit, DOUBTFUL))?;
        self.idle.lock().push(connection);
        Ok(Some(&self.file.get_or_init(|| (file, private::inode(&found))).0))
    }

    /// Fails if the file was moved or replaced after it was opened: no other process, and no later
    /// one, would see what is written to it.
    fn check_place(&self) -> Result<(), StoreError> {
        let Some((file, opened)) = self.file.get() else { return Ok(()) };
        match fs::symlink_metadata(file) {
            Ok(found) if private::inode(&found) == *opened => Ok(()),
            Ok(_) | Err(_) => Err(StoreError::Unavailable(format!(
                "{} was moved or replaced while it was in use: restart toolcell",
                file.display()
            ))),
        }
    }

    /// Reads one state of all rows (`Deferred`), or changes rows, exclusively among all processes
    /// (`Immediate`). After an error, nothing has changed.
    ///
    /// # Errors
    /// Those of `work`, and those of the database. After [`StoreError::Unavailable`] from the flush
    /// itself, a change may or may not be stored.
    pub(crate) fn transaction<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Connection) -> Answer<T>,
    ) -> Result<T, StoreError> {
        let opened = self
            .file()
            .map_err(|error| StoreError::Unavailable(format!("{error}; hint: {}", error.hint())))?;
        self.check_place()?;
        let file = opened.unwrap_or(Path::new(":memory:"));
        let is_alone = matches!(behavior, TransactionBehavior::Immediate) || opened.is_none();
        let turn = is_alone
            .then(|| self.writing.try_lock_for(self.patience).ok_or_else(|| busy_error(file)));
        let _turn = turn.transpose()?;
        let idle = self.idle.lock().pop();
        let connection =
            idle.map_or_else(|| connect(opened), Ok).map_err(|error| failed(file, &error))?;
        // Returns the connection also if `work` panics.
        let mut connection = scopeguard::guard(connection, |connection| {
            let mut idle = self.idle.lock();
            if idle.len() < MAX_IDLE {
                idle.push(connection);
            }
        });
        let run = || -> Answer<T> {
            connection.busy_timeout(self.patience)?;
            let transaction = connection.transaction_with_behavior(behavior)?;
            // A transaction that is dropped without a commit changes nothing.
            let worked = work(&transaction)?;
            transaction.commit()?;
            Ok(worked)
        };
        run().map_err(|undone| match undone {
            Undone::Failed(error) => failed(file, &error),
            Undone::Refused(error) => error,
        })
    }
}

/// Ensures that there is a file that only this user can access, and returns its path without links.
/// A new file is filled under a temporary name and then renamed, so no process sees a partial file,
/// even if its creator is killed. If two processes create it at once, the first file is used. An
/// existing file is checked but not opened: closing it would release every lock that this process
/// has on it.
fn secured(dir: &Path) -> Result<PathBuf, Error> {
    let failed = |error: io::Error| {
        let problem = format!("{}: no file can be made: {error}", dir.display());
        Error::store(problem, OTHER_DIRECTORY).with_source(error)
    };
    private::directory(dir).map_err(|unfit| place_error(dir, unfit, OTHER_DIRECTORY))?;
    let dir = &dir.canonicalize().map_err(failed)?;
    let path = dir.join(FILE);
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        // Closed before the database opens it, and never opened here again.
        let new = private::temporary_file(dir).map_err(failed)?.into_temp_path();
        initialise(&new).map_err(|error| open_error(&new, &error))?;
        private::publish(new, &path).map_err(failed)?;
        // Flushes the name as well, so that it survives a loss of power.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    }
    // A new file has content before it has its name, so an empty file has lost its content.
    let found = private::check_closed(&path);
    if found.map_err(|unfit| place_error(&path, unfit, DOUBTFUL))?.len() == 0 {
        return Err(Error::store(format!("{} is empty", path.display()), DAMAGED));
    }
    Ok(path)
}

fn place_error(path: &Path, unfit: NotPrivate, hint: &'static str) -> Error {
    Error::store(format!("{} {unfit}", path.display()), hint).with_source(unfit)
}

/// Opens a connection to this file, or to an empty database in memory.
fn connect(file: Option<&Path>) -> rusqlite::Result<Connection> {
    if let Some(file) = file {
        return opened(file);
    }
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    Ok(connection)
}

/// Opens a connection to a file.
fn opened(file: &Path) -> rusqlite::Result<Connection> {
    // No link is followed: the directory is resolved, and only its owner can open it. `NO_MUTEX`:
    // this module ensures that one thread at a time uses a connection.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Flushes the log with each commit: `NORMAL` would lose the last commits at a loss of power.
    connection.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{CACHE}; PRAGMA journal_size_limit = {LOG};"
    ))?;
    Ok(connection)
}

/// Initialises an empty file as a database.
fn initialise(file: &Path) -> rusqlite::Result<()> {
    let connection = opened(file)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         {TABLES}
         PRAGMA application_id = {APPLICATION};
         PRAGMA user_version = {SCHEMA};
         COMMIT;"
    ))?;
    // Closing the last connection moves the log into the file, which then gets its name.
    connection.close().map_err(|(_, error)| error)
}

/// Checks that the file is undamaged, was created by toolcell and has a known version.
fn verified(connection: &Connection, file: &Path) -> Result<(), Error> {
    let place = file.display();
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let head = number("application_id").and_then(|ours| Ok((ours, number("user_version")?)));
    let (application, schema) = head.map_err(|error| open_error(file, &error))?;
    if application != APPLICATION || schema < 1 {
        let problem = format!("{place} is a database that toolcell did not create");
        return Err(Error::store(problem, DAMAGED));
    }
    if schema != SCHEMA {
        let problem = format!(
            "{place} has layout {schema}, and this version of toolcell reads layout {SCHEMA} only"
        );
        return Err(Error::store(problem, OTHER_VERSION));
    }
    let found =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match found.map_err(|error| open_error(file, &error))?.as_str() {
        "ok" => Ok(()),
        problem => Err(Error::store(format!("{place} is damaged: {problem}"), DAMAGED)),
    }
}

/// Returns the error of an operation that waited too long for other processes.
fn busy_error(file: &Path) -> StoreError {
    StoreError::Busy(format!("{} is in use by other processes", file.display()))
}

/// Returns the error of an operation that failed.
fn failed(file: &Path, error: &rusqlite::Error) -> StoreError {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    let place = file.display();
    let extended = error.sqlite_error().map(|error| error.extended_code);
    let problem = match error.sqlite_error_code() {
        Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed) => return busy_error(file),
        code if code == Some(ErrorCode::DiskFull) || extended == Some(NO_ROOM_TO_SHARE) => {
            return StoreError::Full(format!("the disk of {place} is full"));
        }
        Some(ErrorCode::NotADatabase) => {
            format!("{place} is damaged, or is not a toolcell store")
        }
        Some(ErrorCode::DatabaseCorrupt) => format!("{place} is damaged"),
        Some(_) | None => format!("{place} cannot be read or written: {error}"),
    };
    StoreError::Unavailable(problem)
}

/// Returns the error of a database that cannot be opened.
fn open_error(file: &Path, error: &rusqlite::Error) -> Error {
    let is_damaged = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    );
    Error::store(failed(file, error).to_string(), if is_damaged { DAMAGED } else { UNUSABLE })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Database {
        /// Creates a database in this directory whose first connections do not flush, for tests of
        /// many writes.
        pub(crate) fn unflushed(dir: &Path) -> Self {
            let database = Self::new(Some(dir.to_owned()));
            database.file().unwrap();
            database
                .idle
                .lock()
                .resize_with(MAX_IDLE, || connect(database.file().unwrap()).unwrap());
            for connection in &*database.idle.lock() {
                connection.pragma_update(None, "synchronous", "OFF").unwrap();
            }
            database
        }
    }
}
