//! An embedded database (SQLite in WAL mode) that several processes use at once.
//!
//! In: a directory. Out: a [`Database`]: transactions over one table of rows, bytes to bytes, in the order of their bytes.
//! Invariants: a change is on the disk, flushed, before [`Database::write`] returns: it survives the death of the process
//! and a loss of power; a process that is killed leaves the state before its last change or after it; a row that was
//! altered from outside is an error and never a value; the file is this user's alone.
//! Layout: the file `store.db`, beside it `store.db-wal` and `store.db-shm` while it is in use. The header has our
//! application id, `user_version` is the version of the schema.
//! Not here: what rows mean (`kv`), and the count of a granted directory, which changes with every write of a tool
//! (`directory::shared`).

mod failure;
mod place;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

use crate::error::Error;
pub(crate) use failure::Failed;
use failure::{DAMAGED, NEWER, refused};
#[cfg(test)]
pub(crate) use place::FILE;
pub(crate) use place::refuse_old;

/// How long an operation waits for other processes, unless told otherwise: longer than most calls may take, so that a
/// call's own deadline is what ends its wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Marks the file as ours: `tcel`.
const APPLICATION: i64 = 0x7463_656c;
/// The version of the schema that is read and written here. A later version migrates an older file when it opens it.
const SCHEMA: i64 = 1;
/// Connections that are kept open: as many as threads usually read at once.
const KEPT: usize = 4;
/// KiB of pages that a connection keeps in memory.
const CACHE: i64 = 4096;
/// Bytes of the log that stay on the disk after its content was moved into the database.
const LOG: i64 = 4 << 20;

/// A database in a directory. Several processes, and any number of threads, may have it open.
pub(crate) struct Database {
    file: PathBuf,
    patience: Duration,
    idle: Mutex<Vec<Connection>>,
    /// Writers of this process wait here for each other, and not by asking the file again and again.
    writing: Mutex<()>,
    /// Pages that the file may have; 0 for as many as there can be. Tests make a disk small with it.
    pages: AtomicU32,
    /// Removed with it. Such a database is not flushed.
    #[cfg(test)]
    scratch: Option<tempfile::TempDir>,
}

/// Rows in a transaction.
pub(crate) struct Table<'a>(&'a Transaction<'a>);

impl Database {
    /// Opens the database of a directory. Both are made where they are not there, for this user alone. Reads all of it, so
    /// that damage is found here and not by a call.
    ///
    /// # Errors
    /// [`Error::is_environment`] for a directory or file that others can write, a file that is no store, is damaged or of
    /// a later version, a disk that is full.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let file = place::secure(dir, |new| made(new).map_err(|error| refused(new, &error)))?;
        let database = Self {
            file,
            patience: PATIENCE,
            idle: Mutex::default(),
            writing: Mutex::default(),
            pages: AtomicU32::new(0),
            #[cfg(test)]
            scratch: None,
        };
        let connection = database.connect().map_err(|error| refused(&database.file, &error))?;
        verified(&connection, &database.file)?;
        database.idle.lock().push(connection);
        Ok(database)
    }

    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
        self.idle.get_mut().clear();
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// One state of all rows.
    ///
    /// # Errors
    /// Those of `look`, and [`Failed`] as its errors.
    pub(crate) fn read<T, E: From<Failed>>(&self, look: impl FnOnce(&Table<'_>) -> Result<T, E>) -> Result<T, E> {
        self.transaction(TransactionBehavior::Deferred, |transaction| look(&Table(transaction)))
    }

    /// One change of all rows, alone among all processes. After an error nothing has changed.
    ///
    /// # Errors
    /// Those of `change`, and [`Failed`] as its errors. After [`Failed::Unavailable`] from the flush itself the change may
    /// or may not be there.
    pub(crate) fn write<T, E: From<Failed>>(&self, change: impl FnOnce(&Table<'_>) -> Result<T, E>) -> Result<T, E> {
        let busy = || Failed::Busy(format!("{} is in use", self.file.display()));
        let _alone = self.writing.try_lock_for(self.patience).ok_or_else(busy)?;
        self.transaction(TransactionBehavior::Immediate, |transaction| change(&Table(transaction)))
    }

    fn transaction<T, E: From<Failed>>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let failed = |error| E::from(Failed::of(&self.file, &error));
        let idle = self.idle.lock().pop();
        let mut connection = idle.map_or_else(|| self.connect(), Ok).map_err(failed)?;
        let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
        let worked = work(&transaction);
        let ended = if worked.is_ok() { transaction.commit() } else { transaction.rollback() };
        // A connection that met an error of its own is closed, and the next operation begins with a new one.
        let mut idle = self.idle.lock();
        if ended.is_ok() && idle.len() < KEPT {
            idle.push(connection);
        }
        worked.and_then(|value| ended.map(|()| value).map_err(failed))
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        // Without links on the way: the directory is resolved, and only its owner can open it. Threads take turns here, not there.
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&self.file, flags)?;
        set(&connection, self.patience)?;
        #[cfg(test)]
        if self.scratch.is_some() {
            connection.pragma_update(None, "synchronous", "OFF")?;
        }
        let pages = self.pages.load(Ordering::SeqCst);
        if pages > 0 {
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        Ok(connection)
    }

    /// One that nothing waits for, and that is gone with it.
    #[cfg(test)]
    pub(crate) fn unflushed() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let mut database = Self::open(scratch.path()).unwrap();
        database.scratch = Some(scratch);
        database.idle.get_mut().clear();
        database
    }

    /// From now on the file may have this many pages of 4 KiB.
    #[cfg(test)]
    pub(crate) fn with_pages(&self, pages: u32) {
        self.pages.store(pages, Ordering::SeqCst);
        self.idle.lock().clear();
    }
}

/// How every connection is set.
fn set(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(patience)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // The log is flushed with each commit: `NORMAL` would lose the last ones with the power.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    connection.pragma_update(None, "journal_size_limit", LOG)?;
    Ok(())
}

/// Makes an empty file a database of ours.
fn made(file: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    set(&connection, PATIENCE)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         CREATE TABLE rows (name BLOB PRIMARY KEY NOT NULL, content BLOB NOT NULL, sum INTEGER NOT NULL) STRICT;
         PRAGMA application_id = {APPLICATION};
         PRAGMA user_version = {SCHEMA};
         COMMIT;"
    ))?;
    // With the last connection the log goes: all of it is in the file that gets its name then.
    connection.close().map_err(|(_, error)| error)
}

/// Sees to it that the file is whole, ours, and of a version that is known here.
fn verified(connection: &Connection, file: &Path) -> Result<(), Error> {
    let place = file.display();
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let head = number("application_id").and_then(|ours| Ok((ours, number("user_version")?)));
    let (application, schema) = head.map_err(|error| refused(file, &error))?;
    if application != APPLICATION || schema < 1 {
        return Err(Error::store(format!("{place} is a database that toolcell did not create"), DAMAGED));
    }
    if schema > SCHEMA {
        let problem = format!("{place} has layout {schema}; this version of toolcell reads layouts up to {SCHEMA}");
        return Err(Error::store(problem, NEWER));
    }
    let found = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match found.map_err(|error| refused(file, &error))?.as_str() {
        "ok" => Ok(()),
        problem => Err(Error::store(format!("{place} is damaged: {problem}"), DAMAGED)),
    }
}

/// What is kept beside a row, so that one which was altered is noticed: SQLite itself sums up its log alone.
fn sum(name: &[u8], content: &[u8]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(name.len() as u64).to_le_bytes()).update(name).update(content);
    hasher.finalize().as_bytes().first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
}

impl Table<'_> {
    /// The content of a row.
    pub(crate) fn get(&self, name: &[u8]) -> Result<Option<Vec<u8>>, Failed> {
        let mut found = None;
        self.each("SELECT name, content, sum FROM rows WHERE name = ?1", name, &mut |_, content| {
            found = Some(content.to_owned());
            false
        })?;
        Ok(found)
    }

    /// The rows from this one on, in order, for as long as `each` says so.
    pub(crate) fn visit(&self, from: &[u8], each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failed> {
        self.each("SELECT name, content, sum FROM rows WHERE name >= ?1 ORDER BY name", from, each)
    }

    fn each(&self, query: &str, name: &[u8], each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failed> {
        let failed = |error: rusqlite::Error| self.failed(&error);
        let mut statement = self.0.prepare(query).map_err(failed)?;
        let mut rows = statement.query([name]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let blob = |index| row.get_ref(index).map_err(failed)?.as_blob().map_err(|_| Failed::damaged());
            let (name, content) = (blob(0)?, blob(1)?);
            if row.get::<_, i64>(2).map_err(failed)? != sum(name, content) {
                return Err(Failed::damaged());
            }
            if !each(name, content) {
                break;
            }
        }
        Ok(())
    }

    /// Keeps a row in place of the one before.
    pub(crate) fn put(&self, name: &[u8], content: &[u8]) -> Result<(), Failed> {
        let put = "INSERT INTO rows (name, content, sum) VALUES (?1, ?2, ?3)
                   ON CONFLICT (name) DO UPDATE SET content = excluded.content, sum = excluded.sum";
        let done = self.0.execute(put, params![name, content, sum(name, content)]);
        done.map(drop).map_err(|error| self.failed(&error))
    }

    /// Removes a row if it is there.
    pub(crate) fn remove(&self, name: &[u8]) -> Result<(), Failed> {
        let done = self.0.execute("DELETE FROM rows WHERE name = ?1", [name]);
        done.map(drop).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &rusqlite::Error) -> Failed {
        Failed::of(Path::new(self.0.path().unwrap_or_default()), error)
    }
}
