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
//! shared `flock` on it, which the kernel releases with the handle or the process. The ledger has a
//! handle of its own of each such file, which needs a permit of the bound on open files.

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

use super::tree::{self, inode};
use crate::os::private::Inode;
use crate::tenant::share::Reservation;
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
    /// Locked for each change of the directory.
    used: Mutex<Usage>,
    /// The count shared with other processes, if the directory may be shared.
    shared: Option<Shared>,
}

#[derive(Default)]
struct Usage {
    sum: Sum,
    /// Files that lost their last name in this process while some handle was open.
    unlinked: VecDeque<(Inode, Probe)>,
    /// Bytes of such files that were closed after the last turn. They are still in `sum`.
    closed_bytes: u64,
    closed: bool,
}

/// A ledger and its quota.
pub(crate) struct Area {
    quota: DirectoryQuota,
    ledger: Arc<Ledger>,
}

/// The exclusive right to change a directory, until it is dropped.
pub(super) struct ChangeLock<'a> {
    area: &'a Area,
    used: MutexGuard<'a, Usage>,
}

/// A file that a cell has open.
pub(crate) struct OpenMark {
    pub(super) area: Arc<Area>,
    inode: Option<Inode>,
}

/// A handle of a file that some cell has open, to check later if it still is.
pub(super) struct Probe {
    file: File,
    /// The permit of the handle in the bound on open files.
    _permit: Arc<Reservation>,
}

/// The file or directory that an operation found under a name.
pub(super) struct NamedEntry {
    pub(super) inode: Inode,
    pub(super) links: u64,
    /// `None` for a directory.
    pub(super) bytes: Option<u64>,
    /// `None` for a directory, and for a file that has other names or is not open in a cell.
    pub(super) probe: Option<Probe>,
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
        let ledger = Arc::new(Self { used: Mutex::new(used), shared });
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
}

impl Probe {
    /// Returns the handle if some cell has the file open, and `None` otherwise.
    ///
    /// # Errors
    /// `EMFILE` if it is open and there is no permit for one more handle.
    pub(super) fn of(file: File, permit: Option<Arc<Reservation>>) -> io::Result<Option<Self>> {
        if !is_open(&file) {
            return Ok(None);
        }
        let permit = permit.ok_or(Errno::MFILE)?;
        Ok(Some(Self { file, _permit: permit }))
    }
}

impl Drop for OpenMark {
    /// Closes the ledger's handle if the file was deleted and no cell has it open any more: until
    /// the next turn, which may never come, it would keep its permit and its room on the disk.
    fn drop(&mut self) {
        // Never waits for a change that is in progress: the next turn closes the handle then.
        let Some(mut used) = self.area.ledger.used.try_lock() else { return };
        let Usage { unlinked, closed_bytes, .. } = &mut *used;
        if let Some(at) = unlinked.iter().position(|(inode, _)| Some(*inode) == self.inode)
            && !is_open(&unlinked[at].1.file)
            && let Some((_, probe)) = unlinked.remove(at)
        {
            *closed_bytes = closed_bytes.saturating_add(size(&probe.file));
        }
    }
}

impl Drop for ChangeLock<'_> {
    fn drop(&mut self) {
        if let Some(shared) = &self.area.ledger.shared {
            shared.end(self.used.sum);
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
        let mut used = self.ledger.used.lock();
        if used.closed {
            return Err(Errno::NOENT.into());
        }
        if let Some(shared) = &self.ledger.shared {
            used.sum = shared.begin()?;
        }
        let mut turn = ChangeLock { area: self, used };
        turn.reclaim(MAX_CHECKED);
        Ok(turn)
    }

    /// Refuses all further changes, because the directory will be removed.
    pub(super) fn close(&self) {
        self.ledger.used.lock().closed = true;
    }

    /// Returns true if no cell is changing the directory and it holds at most this many files.
    pub(super) fn is_quiet(&self, files: u64) -> bool {
        self.ledger.used.try_lock().is_some_and(|used| used.sum.files <= files)
    }

    /// Returns the bytes and files now.
    #[cfg(test)]
    pub(super) fn used(&self) -> (u64, u64) {
        let turn = self.lock_changes().unwrap();
        (turn.used.sum.bytes, turn.used.sum.files)
    }

    /// Marks a file as open in a cell. Call it in the turn in which the file was opened.
    pub(super) fn mark_open(self: &Arc<Self>, file: &File) -> OpenMark {
        // Fails where the filesystem has no locks: then a file without a name does not count.
        let _ = file.try_lock_shared();
        OpenMark { area: Arc::clone(self), inode: inode(file).ok() }
    }
}

impl ChangeLock<'_> {
    /// Checks that there is room for this much more.
    pub(super) fn has_room(&mut self, bytes: u64, files: u64) -> io::Result<()> {
        let fit = self.fits(bytes, files)
            || {
                self.reclaim(usize::MAX);
                self.fits(bytes, files)
            }
            || {
                self.recount();
                self.fits(bytes, files)
            };
        if fit { Ok(()) } else { Err(Errno::NOSPC.into()) }
    }

    fn fits(&self, bytes: u64, files: u64) -> bool {
        let (quota, sum) = (self.area.quota, self.used.sum);
        let within = |used: u64, more: u64, room: u64| {
            more == 0 || used.checked_add(more).is_some_and(|sum| sum <= room)
        };
        let bytes_fit = within(sum.bytes, bytes, bound!(DirectoryBytes, quota.bytes));
        let files_fit = within(sum.files, files, bound!(DirectoryFiles, quota.files));
        bytes_fit && files_fit
    }

    /// Subtracts the bytes of files without a name that are no longer open anywhere. Checks at most
    /// `most` of them.
    fn reclaim(&mut self, most: usize) {
        let Usage { sum, unlinked, closed_bytes, .. } = &mut *self.used;
        let mut freed = std::mem::take(closed_bytes);
        for _ in 0..most.min(unlinked.len()) {
            let Some((inode, probe)) = unlinked.pop_front() else { break };
            if is_open(&probe.file) {
                unlinked.push_back((inode, probe));
            } else {
                freed = freed.saturating_add(size(&probe.file));
            }
        }
        sum.bytes = sum.bytes.saturating_sub(freed);
        sum.unlinked = sum.unlinked.saturating_sub(freed);
    }

    /// Counts the directory again if no other process uses it and the sum holds bytes of nameless
    /// files that this process does not know: those of a process that may have died.
    fn recount(&mut self) {
        let Some(shared) = &self.area.ledger.shared else { return };
        let known = self.used.unlinked.iter().map(|(_, probe)| size(&probe.file));
        if self.used.sum.unlinked == known.sum::<u64>() {
            // No process that died left bytes in the sum.
            return;
        }
        match shared.counted_alone(|| shared.unlinked_bytes()) {
            Ok(Some(sum)) => self.used.sum = sum,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "the contents of a granted directory could not be counted again")
            }
        }
    }

    /// Counts a name that was added, with this many bytes of its own.
    pub(super) fn count_entry(&mut self, bytes: u64) {
        let sum = &mut self.used.sum;
        sum.files += 1;
        sum.bytes = sum.bytes.saturating_add(bytes);
    }

    /// Counts a name that was removed. The bytes of a file that is still open stay counted.
    pub(super) fn unnamed(&mut self, was: NamedEntry) {
        let Usage { sum, unlinked, .. } = &mut *self.used;
        sum.files = sum.files.saturating_sub(1);
        let Some(bytes) = was.bytes.filter(|_| was.links <= 1) else { return };
        match was.probe {
            Some(probe) => {
                sum.unlinked = sum.unlinked.saturating_add(bytes);
                unlinked.push_back((was.inode, probe));
            }
            None => sum.bytes = sum.bytes.saturating_sub(bytes),
        }
    }

    /// Counts a change of a file's size.
    pub(super) fn resized(&mut self, before: u64, after: u64, has_name: bool) {
        let sum = &mut self.used.sum;
        sum.bytes = sum.bytes.saturating_add(after).saturating_sub(before);
        if !has_name {
            sum.unlinked = sum.unlinked.saturating_add(after).saturating_sub(before);
        }
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
