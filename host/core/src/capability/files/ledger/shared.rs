//! Count of a directory that several processes share, stored in a locked file.
//!
//! The ledger of a directory, which is the count of its content against its quota, uses a `Shared`
//! if the embedder (the program that uses this library) names a directory for such counts.
//! [`Shared::begin`] waits for the exclusive right to change the directory (at most 10 seconds) and
//! returns the sum of its content; [`Shared::end`] stores the new sum and gives the right back.
//! This pair is called a turn. It costs five system calls.
//! Invariants: the sum is true whenever a turn begins. If a process dies in its turn, the next turn
//! counts the directory again. The first process that uses the directory counts it as well, so no
//! count has to survive a loss of power, and nothing is flushed.
//! Layout: `DEVICE-INODE.count` holds the state and the sum, and is locked with `flock` for a turn.
//! `DEVICE-INODE.users` is locked, shared, by each process that uses the directory. The kernel
//! releases the locks of a process that ends.
//!
//! The sum is not in the database of `kv`, because two processes that change a file at the same
//! time could both compute the difference from its old size. The directory must be locked for each
//! change anyway, so the locked file holds the sum. A transaction would add the database's own
//! lock, on which changes of all directories would wait.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::Inode;
use crate::capability::files::tree;
use crate::os::private;

/// First word of a count file: `CLEAN` if no change was in progress when it was written, `BUSY` if
/// one was.
const CLEAN: u64 = u64::from_le_bytes(*b"tc-clean");
const BUSY: u64 = u64::from_le_bytes(*b"tc-busy.");

/// The content of a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) files: u64,
    /// Bytes of files without a name that some process has open. They are part of `bytes`.
    pub(super) unlinked: u64,
}

/// Longest wait for a turn. A turn takes microseconds, or as long as counting the directory takes.
/// A process that is stopped in its turn keeps it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The first and the longest pause between two attempts to begin a turn.
const PAUSES: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(5)];

/// The count of one directory, in use by this process.
pub(super) struct Shared {
    count: File,
    users: File,
    dir: File,
}

impl Shared {
    /// Joins the processes that use the directory. The first of them counts it. Waits for a turn.
    ///
    /// # Errors
    /// An error of kind `ResourceBusy` if no turn began in time, and any error of the files.
    pub(crate) fn join(place: &Path, dir: &File, (device, inode): Inode) -> io::Result<Self> {
        private::directory(place)?;
        let file = |ending: &str| {
            let path = place.join(format!("{device:x}-{inode:x}.{ending}"));
            let file = private::open_or_create(&path)?;
            private::alone(&file)?;
            Ok::<_, io::Error>(file)
        };
        let shared =
            Self { count: file("count")?, users: file("users")?, dir: tree::open_dir(dir, c".")? };
        lock(&shared.count, LOCK_TIMEOUT)?;
        let joined = shared
            .counted_alone(|| Ok(0))
            .and_then(|counted| counted.map_or(Ok(()), |sum| shared.write(CLEAN, sum)));
        let left = shared.count.unlock();
        joined.and(left).map(|()| shared)
    }

    /// Begins a turn. Returns the content of the directory.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub(super) fn begin(&self) -> io::Result<Sum> {
        lock(&self.count, LOCK_TIMEOUT)?;
        let begun = self.read().and_then(|(state, mut sum)| {
            if state != CLEAN {
                tracing::info!("a process died while it changed a granted directory: its contents are counted again");
                let (bytes, files) = tree::count(&self.dir)?;
                sum = Sum { bytes: bytes.saturating_add(sum.unlinked), files, ..sum };
            }
            self.write(BUSY, sum).map(|()| sum)
        });
        begun.inspect_err(|_| drop(self.count.unlock()))
    }

    /// Ends a turn and stores the sum.
    pub(super) fn end(&self, sum: Sum) {
        // If the write fails, the file still says `BUSY`, and the next turn counts again.
        if let Err(error) = self.write(CLEAN, sum).and_then(|()| self.count.unlock()) {
            tracing::error!(%error, "the count of a granted directory could not be saved");
        }
    }

    /// Counts the directory if no other process uses it, and returns `None` otherwise. Call it in a
    /// turn. `nameless` returns the bytes of this process's files without a name. The new sum drops
    /// bytes that dead processes left in it.
    pub(super) fn counted_alone(
        &self,
        nameless: impl FnOnce() -> io::Result<u64>,
    ) -> io::Result<Option<Sum>> {
        // This process's shared lock is lost for a moment. No other process notices, because each
        // checks these locks only in its turn.
        let is_alone = match self.users.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        let count = || {
            let ((bytes, files), unlinked) = (tree::count(&self.dir)?, nameless()?);
            Ok(Sum { bytes: bytes.saturating_add(unlinked), files, unlinked })
        };
        let counted = if is_alone { count().map(Some) } else { Ok(None) };
        self.users.lock_shared()?;
        counted
    }

    /// Returns the bytes of the files without a name that this process has open on the directory's
    /// filesystem. Files that are not a tool's are included: the count errs on the high side.
    pub(super) fn unlinked_bytes(&self) -> io::Result<u64> {
        let device = self.dir.metadata()?.dev();
        let mut seen = HashMap::new();
        for entry in fs::read_dir("/proc/self/fd")? {
            // An entry that was closed in the meantime has no metadata.
            let Ok(found) = fs::metadata(entry?.path()) else { continue };
            if found.is_file() && found.nlink() == 0 && found.dev() == device {
                seen.insert(found.ino(), found.len());
            }
        }
        Ok(seen.values().sum())
    }

    /// Reads the last state and sum that were written.
    fn read(&self) -> io::Result<(u64, Sum)> {
        let mut words = [[0; 8]; 4];
        self.count.read_exact_at(words.as_flattened_mut(), 0)?;
        let [state, bytes, files, unlinked] = words.map(u64::from_le_bytes);
        Ok((state, Sum { bytes, files, unlinked }))
    }

    fn write(&self, state: u64, Sum { bytes, files, unlinked }: Sum) -> io::Result<()> {
        let words = [state, bytes, files, unlinked].map(u64::to_le_bytes).concat();
        self.count.write_all_at(&words, 0)
    }
}

/// Locks the file. Waits for at most `patience`.
fn lock(file: &File, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    let [mut pause, longest] = PAUSES;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                tracing::warn!(
                    "a write of a tool failed: another toolcell process holds the lock on the file that counts the bytes and \
                     files of a granted directory, and did not release it within {} s; check whether a toolcell process is \
                     stopped",
                    patience.as_secs()
                );
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            Err(TryLockError::WouldBlock) => thread::sleep(pause),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        pause = longest.min(pause * 2);
    }
}

#[cfg(test)]
mod tests;
