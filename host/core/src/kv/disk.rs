//! A store on disk.
//!
//! In: a directory. Out: a store that outlives the process, also one that is killed.
//! Invariants: a write is on the disk before it is acknowledged; one process at a time has the store open; what is damaged,
//! not ours, or newer than we are is not written to.
//! Layout: the file `keys.redb`, with one table of rows and one that says which layout they have.

mod place;

use std::fmt;
use std::io::ErrorKind;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use parking_lot::RwLock;
use redb::backends::FileBackend;
use redb::{
    Builder, Database, DatabaseError, Durability, ReadableDatabase as _, ReadableTable, StorageError, Table,
    TableDefinition, TableHandle as _,
};

use super::ledger::{Backend, Rows, RowsMut, Visit};
use super::{Quota, StoreError, Terms};
use crate::error::Error;

type Bytes = &'static [u8];

const ROWS: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new("toolcell.rows");
const LAYOUT: TableDefinition<'static, (), u64> = TableDefinition::new("toolcell.layout");
/// The layout of rows that this version writes and reads.
const OUR_LAYOUT: u64 = 1;
/// Bytes of the file that are kept in memory: one namespace of the default size.
const CACHE: usize = 16 << 20;

const DAMAGED: &str = "restore it from a copy, or move it away and begin with an empty one; it was left as it is";
const NEWER: &str = "use the version of toolcell that wrote it, or another directory; it was left as it is";
const NO_DISK: &str = "see the cause, and whether the disk is full; what was written before is still there";

/// A store in a directory, for one process at a time.
///
/// When the disk is full or fails, writes are refused and nothing that was acknowledged is lost; each later operation tries
/// anew.
pub struct DiskStore {
    terms: Terms,
    /// For people.
    file: PathBuf,
    open: Box<Open>,
    database: RwLock<Option<Database>>,
    /// The database has met an error, after which it does nothing more until it is opened again.
    has_failed: AtomicBool,
}

type Open = dyn Fn(&Builder) -> Result<Database, DatabaseError> + Send + Sync;

impl DiskStore {
    /// Opens the store of a directory. Both are made where they are not there, for this user alone. Reads all of the store,
    /// so that damage is found now and not in a call.
    ///
    /// # Errors
    /// [`Error::is_environment`] for a directory or a file that others can write, a file that is no store or is damaged, a
    /// store of a newer version or one that another process has open, a disk that is full.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let file = place::secure(dir, |new, file| {
            let database = FileBackend::new(file).and_then(|backend| builder().create_with_backend(backend));
            prepare(&database.map_err(|error| refused(new, error))?, new)
        })?;
        let path = file.clone();
        Self::on(file, move |builder| builder.create_with_backend(FileBackend::new(place::open(&path)?)?))
    }

    fn on(
        file: PathBuf,
        open: impl Fn(&Builder) -> Result<Database, DatabaseError> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let database = open(builder().set_check_integrity_on_open(true)).map_err(|error| refused(&file, error))?;
        prepare(&database, &file)?;
        Ok(Self {
            terms: Terms::default(),
            file,
            open: Box::new(open),
            database: RwLock::new(Some(database)),
            has_failed: AtomicBool::new(false),
        })
    }

    /// With this much room for each namespace.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.terms.quota = quota;
        self
    }

    /// With another clock than the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.terms.clock = Arc::new(clock);
        self
    }

    fn on_database<T>(&self, work: impl FnOnce(&Database) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.has_failed.load(Ordering::Acquire) {
            self.open_again()?;
        }
        let database = self.database.read();
        let result = database.as_ref().ok_or_else(|| StoreError::Unavailable("it is closed".into())).and_then(work);
        match result {
            Err(StoreError::Unavailable(problem)) => {
                self.has_failed.store(true, Ordering::Release);
                Err(StoreError::Unavailable(format!("{}: {problem}", self.file.display())))
            }
            other => other,
        }
    }

    fn open_again(&self) -> Result<(), StoreError> {
        let mut database = self.database.write();
        // Somebody else may have done it meanwhile.
        if self.has_failed.load(Ordering::Acquire) {
            // Closed first: it is locked while it is open.
            *database = None;
            let opened = (self.open)(&builder()).map_err(|error| {
                let refused = refused(&self.file, error);
                StoreError::Unavailable(format!("{refused}: {}", refused.hint()))
            })?;
            *database = Some(opened);
            self.has_failed.store(false, Ordering::Release);
        }
        Ok(())
    }
}

impl fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskStore").field("file", &self.file).field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl Backend for DiskStore {
    fn terms(&self) -> &Terms {
        &self.terms
    }

    fn read<T>(&self, look: impl FnOnce(&dyn Rows) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.on_database(|database| {
            let table = database.begin_read().map_err(failed)?.open_table(ROWS).map_err(failed)?;
            look(&Kept { table, is_changed: false })
        })
    }

    fn write<T>(&self, change: impl FnOnce(&mut dyn RowsMut) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.on_database(|database| {
            let mut transaction = database.begin_write().map_err(failed)?;
            transaction.set_durability(Durability::Immediate).map_err(failed)?;
            // Strangers choose what is written: with one phase, they could make up what passes for a whole commit.
            transaction.set_two_phase_commit(true);
            let (result, is_changed) = {
                let table = transaction.open_table(ROWS).map_err(failed)?;
                let mut rows = Kept { table, is_changed: false };
                (change(&mut rows), rows.is_changed)
            };
            match result {
                Ok(value) if is_changed => transaction.commit().map_err(failed).map(|()| value),
                Ok(value) => transaction.abort().map_err(failed).map(|()| value),
                Err(error) => {
                    let _ = transaction.abort();
                    Err(error)
                }
            }
        })
    }
}

/// A table in a transaction.
struct Kept<T> {
    table: T,
    is_changed: bool,
}

impl<T: ReadableTable<Bytes, Bytes>> Rows for Kept<T> {
    fn get(&self, row: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.table.get(row).map_err(failed)?.map(|content| content.value().to_owned()))
    }

    fn visit(&self, from: &[u8], each: Visit<'_>) -> Result<(), StoreError> {
        let bounds = (Bound::Included(from), Bound::Unbounded);
        for found in self.table.range::<&[u8]>(bounds).map_err(failed)? {
            let (row, content) = found.map_err(failed)?;
            if let ControlFlow::Break(end) = each(row.value(), content.value()) {
                return end;
            }
        }
        Ok(())
    }
}

impl RowsMut for Kept<Table<'_, Bytes, Bytes>> {
    fn put(&mut self, row: &[u8], content: &[u8]) -> Result<(), StoreError> {
        self.is_changed = true;
        self.table.insert(row, content).map(drop).map_err(failed)
    }

    fn remove(&mut self, row: &[u8]) -> Result<(), StoreError> {
        self.is_changed = true;
        self.table.remove(row).map(drop).map_err(failed)
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE);
    builder
}

/// Sees to it that the database is a store of our layout; an empty one becomes one.
fn prepare(database: &Database, file: &Path) -> Result<(), Error> {
    let place = file.display();
    match layout(database) {
        Ok(Some(OUR_LAYOUT)) => Ok(()),
        Ok(Some(newer)) if newer > OUR_LAYOUT => {
            let problem = format!("{place} has the layout {newer}, and this version knows those up to {OUR_LAYOUT}");
            Err(Error::store(problem, NEWER))
        }
        Ok(Some(_) | None) => Err(Error::store(format!("{place} is a database, but no store of ours"), DAMAGED)),
        Err(error) => Err(Error::store(format!("{place} does not work"), NO_DISK).with_source(error)),
    }
}

/// The layout of a database that has one. An empty one gets ours.
fn layout(database: &Database) -> Result<Option<u64>, redb::Error> {
    let transaction = database.begin_read()?;
    let tables: Vec<_> = transaction.list_tables()?.map(|table| table.name().to_owned()).collect();
    if tables.is_empty() && transaction.list_multimap_tables()?.next().is_none() {
        let transaction = database.begin_write()?;
        transaction.open_table(ROWS)?;
        transaction.open_table(LAYOUT)?.insert((), OUR_LAYOUT)?;
        transaction.commit()?;
        return Ok(Some(OUR_LAYOUT));
    }
    if !tables.iter().any(|table| table == LAYOUT.name()) {
        return Ok(None);
    }
    Ok(transaction.open_table(LAYOUT)?.get(())?.map(|layout| layout.value()))
}

/// A database that cannot be opened.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "another crate's open enum: whatever else it says is told in its words"
)]
fn refused(file: &Path, error: DatabaseError) -> Error {
    let place = file.display();
    let (problem, hint) = match &error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            return Error::store_in_use(file).with_source(error);
        }
        DatabaseError::UpgradeRequired(format) => {
            (format!("{place} has the database format {format}, which this version does not know"), NEWER)
        }
        DatabaseError::Storage(StorageError::Corrupted(_)) => (format!("{place} is damaged"), DAMAGED),
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
            (format!("{place} is no store"), DAMAGED)
        }
        other => (format!("{place} cannot be read or written: {other}"), NO_DISK),
    };
    Error::store(problem, hint).with_source(error)
}

/// An operation of the database that failed.
#[expect(clippy::wildcard_enum_match_arm, reason = "as above")]
fn failed(error: impl Into<redb::Error>) -> StoreError {
    StoreError::Unavailable(match error.into() {
        redb::Error::Io(error) if error.kind() == ErrorKind::StorageFull => format!("the disk is full: {error}"),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests;
