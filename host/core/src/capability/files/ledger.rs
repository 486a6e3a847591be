//! Ledger: counts the bytes and files of a writable directory, and refuses changes that exceed its
//! quota.
//!
//! A ledger is the count of one directory: the content is counted in full when the first component
//! that was granted it is loaded, and then adjusted by each change of a tool. All components of
//! this process share the ledger of a directory. An [`Area`] is a ledger with the quota of one
//! grant.
//! The code that changes files (`work`) takes the lock of the directory, checks for room, makes the
//! change and reports it, all under that lock. The lock excludes other cells (running calls), and
//! also other processes if they share the count. A change that does not fit fails with `ENOSPC`.
//! A deleted file that a cell still has open counts until its last handle is closed, in any
//! process. To make this visible, each cell that opens a file in a writable directory holds a
//! shared `flock` on it, which the kernel releases with the handle or the process.

mod shared;

use std::collections::{HashMap, VecDeque};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use toolcell_contract::controls::bound;
use toolcell_contract::grants::DirectoryQuota;

use super::tree::{self, Inode, inode};
use shared::{Shared, Sum};

/// Files without a name that each turn checks for being closed.
const MAX_CHECKED: usize = 16;

/// The ledgers in use. Components that were granted the same directory share its count.
static LEDGERS: LazyLock<Mutex<HashMap<Key, Weak<Ledger>>>> = LazyLock::new(Mutex::default);

/// A directory, and the path under which other processes find its count.
type Key = (Inode, Option<PathBuf>);

/// The count of one directory.
#[derive(Default)]
pub(super) struct Ledger {
    turn: Mutex<()>,
    used: Mutex<Usage>,
    /// The count shared with other processes, if the directory may be shared.
    shared: Option<Shared>,
}

#[derive(Default)]
struct Usage {
    sum: Sum,
    /// Files that lost their last name in this process while some handle was open.
    unlinked: VecDeque<File>,
    closed: bool,
}

/// A ledger and its quota.
pub(crate) struct Area {
    quota: DirectoryQuota,
    ledger: Arc<Ledger>,
}

/// The exclusive right to change a directory, until it is dropped.
pub(super) struct ChangeLock<'a> {
    ledger: &'a Ledger,
    _alone: MutexGuard<'a, ()>,
}

/// A file that a cell has open.
pub(crate) struct OpenMark {
    pub(super) area: Arc<Area>,
}

/// The file or directory that an operation found under a name.
pub(super) struct NamedEntry {
    pub(super) inode: Inode,
    pub(super) links: u64,
    /// `None` for a directory.
    pub(super) bytes: Option<u64>,
    /// A handle of the file, to check if it is open elsewhere after it has lost its last name.
    pub(super) probe: Option<File>,
}

impl Ledger {
    /// Returns the ledger of a directory. Counts the content unless the directory has a ledger
    /// already. With `place`, all processes that name the same place share the count.
    pub(super) fn of(dir: &File, place: Option<&Path>) -> io::Result<Arc<Self>> {
        let inode = inode(dir)?;
        let key = (inode, place.map(Path::to_owned));
        if let Some(known) = LEDGERS.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let mut used = Usage::default();
        let shared = match place {
            Some(place) => Some(Shared::join(place, dir, inode)?),
            None => {
                (used.sum.bytes, used.sum.files) = tree::count(dir)?;
                None
            }
        };
        let mut ledgers = LEDGERS.lock();
        ledgers.retain(|_, ledger| ledger.strong_count() > 0);
        if let Some(known) = ledgers.get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let ledger = Arc::new(Self { used: Mutex::new(used), shared, ..Self::default() });
        ledgers.insert(key, Arc::downgrade(&ledger));
        Ok(ledger)
    }

    /// Returns the ledger as another process has it.
    #[cfg(test)]
    pub(super) fn of_other_process(dir: &File, place: &Path) -> Self {
        Self {
            shared: Some(Shared::join(place, dir, inode(dir).unwrap()).unwrap()),
            ..Self::default()
        }
    }

    /// Subtracts the bytes of files without a name that are no longer open anywhere. Checks at most
    /// `most` of them.
    fn reclaim(&self, most: usize) {
        let mut used = self.used.lock();
        for _ in 0..most.min(used.unlinked.len()) {
            let Some(file) = used.unlinked.pop_front() else { return };
            if is_open(&file) {
                used.unlinked.push_back(file);
                continue;
            }
            let bytes = size(&file);
            used.sum.bytes = used.sum.bytes.saturating_sub(bytes);
            used.sum.unlinked = used.sum.unlinked.saturating_sub(bytes);
        }
    }

    /// Counts the directory again if no other process uses it and the sum holds bytes of nameless
    /// files that this process does not know: those of a process that may have died.
    fn recount(&self) {
        let Some(shared) = &self.shared else { return };
        let mut used = self.used.lock();
        if used.sum.unlinked == used.unlinked.iter().map(size).sum::<u64>() {
            // No process that died left bytes in the sum.
            return;
        }
        match shared.counted_alone(|| shared.unlinked_bytes()) {
            Ok(Some(sum)) => used.sum = sum,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "the contents of a granted directory could not be counted again")
            }
        }
    }
}

impl Drop for ChangeLock<'_> {
    fn drop(&mut self) {
        if let Some(shared) = &self.ledger.shared {
            shared.end(self.ledger.used.lock().sum);
        }
    }
}

impl Area {
    pub(super) fn new(quota: DirectoryQuota, ledger: Arc<Ledger>) -> Self {
        Self { quota, ledger }
    }

    /// Waits for the exclusive right to change the directory. All work on paths and sizes is done
    /// while it is held.
    pub(super) fn lock_changes(&self) -> io::Result<ChangeLock<'_>> {
        let ledger = &*self.ledger;
        let alone = ledger.turn.lock();
        if ledger.used.lock().closed {
            return Err(Errno::NOENT.into());
        }
        if let Some(shared) = &ledger.shared {
            ledger.used.lock().sum = shared.begin()?;
        }
        let turn = ChangeLock { ledger, _alone: alone };
        ledger.reclaim(MAX_CHECKED);
        Ok(turn)
    }

    /// Refuses all further changes, because the directory will be removed.
    pub(super) fn close(&self) {
        let _turn = self.ledger.turn.lock();
        self.ledger.used.lock().closed = true;
    }

    /// Returns true if no cell is changing the directory and it holds at most this many files.
    pub(super) fn is_quiet(&self, files: u64) -> bool {
        !self.ledger.turn.is_locked() && self.ledger.used.lock().sum.files <= files
    }

    /// Returns the bytes and files now.
    #[cfg(test)]
    pub(super) fn used(&self) -> (u64, u64) {
        drop(self.lock_changes().unwrap());
        let used = self.ledger.used.lock();
        (used.sum.bytes, used.sum.files)
    }

    /// Checks that there is room for this much more. Call it in a turn.
    pub(super) fn has_room(&self, bytes: u64, files: u64) -> io::Result<()> {
        let fits = || {
            let Sum { bytes: used_bytes, files: used_files, .. } = self.ledger.used.lock().sum;
            let within = |used: u64, more: u64, room: u64| {
                more == 0 || used.checked_add(more).is_some_and(|sum| sum <= room)
            };
            let bytes_fit = within(used_bytes, bytes, bound!(DirectoryBytes, self.quota.bytes));
            let files_fit = within(used_files, files, bound!(DirectoryFiles, self.quota.files));
            bytes_fit && files_fit
        };
        let fit = fits()
            || {
                self.ledger.reclaim(usize::MAX);
                fits()
            }
            || {
                self.ledger.recount();
                fits()
            };
        if fit { Ok(()) } else { Err(Errno::NOSPC.into()) }
    }

    /// Counts a name that was added, with this many bytes of its own.
    pub(super) fn count_entry(&self, bytes: u64) {
        let mut used = self.ledger.used.lock();
        used.sum.files += 1;
        used.sum.bytes = used.sum.bytes.saturating_add(bytes);
    }

    /// Counts a name that was removed. The bytes of a file that is still open stay counted.
    pub(super) fn unnamed(&self, was: NamedEntry) {
        let mut used = self.ledger.used.lock();
        used.sum.files = used.sum.files.saturating_sub(1);
        let Some(bytes) = was.bytes.filter(|_| was.links <= 1) else { return };
        match was.probe.filter(is_open) {
            Some(file) => {
                used.sum.unlinked = used.sum.unlinked.saturating_add(bytes);
                used.unlinked.push_back(file);
            }
            None => used.sum.bytes = used.sum.bytes.saturating_sub(bytes),
        }
    }

    /// Counts a change of a file's size.
    pub(super) fn resized(&self, before: u64, after: u64, has_name: bool) {
        let mut used = self.ledger.used.lock();
        used.sum.bytes = used.sum.bytes.saturating_add(after).saturating_sub(before);
        if !has_name {
            used.sum.unlinked = used.sum.unlinked.saturating_add(after).saturating_sub(before);
        }
    }

    /// Marks a file as open in a cell. Call it in the turn in which the file was opened.
    pub(super) fn mark_open(self: &Arc<Self>, file: &File) -> OpenMark {
        // Fails where the filesystem has no locks: then a file without a name does not count.
        let _ = file.try_lock_shared();
        OpenMark { area: Arc::clone(self) }
    }
}

/// Returns the bytes of a file, or 0 if they are unknown.
fn size(file: &File) -> u64 {
    file.metadata().map_or(0, |found| found.len())
}

/// Returns true if some cell has the file open through a handle other than this one.
fn is_open(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}
