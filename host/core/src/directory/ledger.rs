//! How much is in a directory: counted once, then kept as its cells change it.
//!
//! Invariants: what changes a directory does so in its turn, one after the other, in this process
//! and in all that share the count, so that what is counted before is true after; a file without a
//! name counts until its last handle is closed, whichever process has it. Whether a file is open is
//! asked of the kernel: who opens one in a directory that can be written to holds a shared lock on
//! it (`flock`), which ends with the handle or its process.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use super::shared::{Shared, Sum};
use super::tree;
use crate::defence::{Defence, stands};
use crate::grants::Room;

/// A file or directory of the host: its device and its number there.
pub(super) type Inode = (u64, u64);

/// Files without a name that a turn looks at: whether they are still open.
const LOOKED_AT: usize = 16;

/// The ledgers in use: components that were granted the same directory share its count.
static LEDGERS: LazyLock<Mutex<HashMap<Key, Weak<Ledger>>>> = LazyLock::new(Mutex::default);

/// A directory, and where other processes find its count.
type Key = (Inode, Option<PathBuf>);

/// What is in one directory.
#[derive(Default)]
pub(super) struct Ledger {
    turn: Mutex<()>,
    used: Mutex<Used>,
    /// Where other processes may use it too.
    shared: Option<Shared>,
}

#[derive(Default)]
struct Used {
    sum: Sum,
    /// Files that lost their last name in this process while they were open somewhere.
    nameless: VecDeque<File>,
    closed: bool,
}

/// A ledger and how much it may come to.
pub(crate) struct Area {
    room: Room,
    ledger: Arc<Ledger>,
}

/// A turn at changing a directory.
pub(super) struct Turn<'a> {
    ledger: &'a Ledger,
    _alone: MutexGuard<'a, ()>,
}

/// A file that a cell has open.
pub(crate) struct Hold {
    pub(super) area: Arc<Area>,
}

/// What an operation found under a name.
pub(super) struct Named {
    pub(super) inode: Inode,
    pub(super) links: u64,
    /// None for a directory.
    pub(super) bytes: Option<u64>,
    /// The file, to see whether it is open elsewhere when it has lost its last name.
    pub(super) probe: Option<File>,
}

impl Ledger {
    /// That of a directory. Its content is counted unless it has a count already. With a place it
    /// is shared by all processes that name the same.
    pub(super) fn of(dir: &File, place: Option<&Path>) -> io::Result<Arc<Self>> {
        let inode = inode(dir)?;
        let key = (inode, place.map(Path::to_owned));
        if let Some(known) = LEDGERS.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let mut used = Used::default();
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

    /// As another process has it.
    #[cfg(test)]
    pub(super) fn apart(dir: &File, place: &Path) -> Self {
        Self {
            shared: Some(Shared::join(place, dir, inode(dir).unwrap()).unwrap()),
            ..Self::default()
        }
    }

    /// Gives back the bytes of files without a name that are no longer open anywhere. Looks at
    /// `most` of them.
    fn reclaim(&self, most: usize) {
        let mut used = self.used.lock();
        for _ in 0..most.min(used.nameless.len()) {
            let Some(file) = used.nameless.pop_front() else { return };
            if is_open(&file) {
                used.nameless.push_back(file);
                continue;
            }
            let bytes = file.metadata().map_or(0, |found| found.len());
            used.sum.bytes = used.sum.bytes.saturating_sub(bytes);
            used.sum.nameless = used.sum.nameless.saturating_sub(bytes);
        }
    }

    /// Counts anew where no other process uses the directory, and one that did may have died with
    /// files without a name.
    fn recount(&self) {
        let Some(shared) = &self.shared else { return };
        let mut used = self.used.lock();
        let known = used
            .nameless
            .iter()
            .filter_map(|file| file.metadata().ok())
            .map(|found| found.len())
            .sum::<u64>();
        if used.sum.nameless == known {
            // Nothing is left of a process that died.
            return;
        }
        match shared.counted_alone(|| shared.nameless_here()) {
            Ok(Some(sum)) => used.sum = sum,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "the contents of a granted directory could not be counted again")
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(shared) = &self.ledger.shared {
            shared.end(self.ledger.used.lock().sum);
        }
    }
}

impl Area {
    pub(super) fn new(room: Room, ledger: Arc<Ledger>) -> Self {
        Self { room, ledger }
    }

    /// Waits for its turn to change the directory. What is done with paths and sizes is done while
    /// it is held.
    pub(super) fn turn(&self) -> io::Result<Turn<'_>> {
        let ledger = &*self.ledger;
        let alone = ledger.turn.lock();
        if ledger.used.lock().closed {
            return Err(Errno::NOENT.into());
        }
        if let Some(shared) = &ledger.shared {
            ledger.used.lock().sum = shared.begin()?;
        }
        let turn = Turn { ledger, _alone: alone };
        ledger.reclaim(LOOKED_AT);
        Ok(turn)
    }

    /// No more changes: the directory goes.
    pub(super) fn close(&self) {
        let _turn = self.ledger.turn.lock();
        self.ledger.used.lock().closed = true;
    }

    /// Whether no cell is changing the directory and it holds no more than this.
    pub(super) fn is_quiet(&self, files: u64) -> bool {
        !self.ledger.turn.is_locked() && self.ledger.used.lock().sum.files <= files
    }

    /// Bytes and files now.
    #[cfg(test)]
    pub(super) fn used(&self) -> (u64, u64) {
        drop(self.turn().unwrap());
        let used = self.ledger.used.lock();
        (used.sum.bytes, used.sum.files)
    }

    /// In a turn: whether there is room for this much more.
    pub(super) fn has_room(&self, bytes: u64, files: u64) -> io::Result<()> {
        let fits = || {
            let Sum { bytes: used_bytes, files: used_files, .. } = self.ledger.used.lock().sum;
            let within = |used: u64, more: u64, room: u64| {
                more == 0 || used.checked_add(more).is_some_and(|sum| sum <= room)
            };
            let bytes_fit =
                within(used_bytes, bytes, self.room.bytes) || !stands(Defence::DirectoryBytes);
            let files_fit =
                within(used_files, files, self.room.files) || !stands(Defence::DirectoryFiles);
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

    /// A name was added, with so many bytes of its own.
    pub(super) fn named(&self, bytes: u64) {
        let mut used = self.ledger.used.lock();
        used.sum.files += 1;
        used.sum.bytes = used.sum.bytes.saturating_add(bytes);
    }

    /// A name was taken away.
    pub(super) fn unnamed(&self, was: Named) {
        let mut used = self.ledger.used.lock();
        used.sum.files = used.sum.files.saturating_sub(1);
        let Some(bytes) = was.bytes.filter(|_| was.links <= 1) else { return };
        match was.probe.filter(is_open) {
            Some(file) => {
                used.sum.nameless = used.sum.nameless.saturating_add(bytes);
                used.nameless.push_back(file);
            }
            None => used.sum.bytes = used.sum.bytes.saturating_sub(bytes),
        }
    }

    /// A file has another size.
    pub(super) fn resized(&self, before: u64, after: u64, has_name: bool) {
        let mut used = self.ledger.used.lock();
        used.sum.bytes = used.sum.bytes.saturating_add(after).saturating_sub(before);
        if !has_name {
            used.sum.nameless = used.sum.nameless.saturating_add(after).saturating_sub(before);
        }
    }

    /// A cell has it open, opened in a turn.
    pub(super) fn hold(self: &Arc<Self>, file: &File) -> Hold {
        // Not had where the filesystem has no locks: then a file without a name does not count.
        let _ = file.try_lock_shared();
        Hold { area: Arc::clone(self) }
    }
}

/// Whether some cell has the file open, through any other handle than this one.
fn is_open(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Which file of the host it is.
pub(super) fn inode(file: &File) -> io::Result<Inode> {
    file.metadata().map(|found| (found.dev(), found.ino()))
}
