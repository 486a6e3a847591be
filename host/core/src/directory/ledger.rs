//! How much is in a directory: counted once, then kept as its cells change it.
//!
//! Invariants: what changes a directory does so in its turn, one after the other, so that what is counted before is true
//! after; a file without a name counts until its last handle is closed; nothing here waits for a disk but [`Ledger::of`].

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use super::tree;
use crate::defence::{Defence, stands};
use crate::grants::Room;

/// A file or directory of the host: its device and its number there.
pub(super) type Inode = (u64, u64);

/// The ledgers in use: components that were granted the same directory share its count.
static LEDGERS: LazyLock<Mutex<HashMap<Inode, Weak<Ledger>>>> = LazyLock::new(Mutex::default);

/// What is in one directory.
#[derive(Default)]
pub(super) struct Ledger {
    turn: Mutex<()>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    bytes: u64,
    files: u64,
    held: HashMap<Inode, Held>,
    closed: bool,
}

/// A file that cells have open.
#[derive(Default)]
struct Held {
    handles: usize,
    /// Bytes of a file that has no name any more.
    nameless: Option<u64>,
}

/// A ledger and how much it may come to.
pub(crate) struct Area {
    room: Room,
    ledger: Arc<Ledger>,
}

/// A file that a cell has open.
pub(crate) struct Hold {
    pub(super) area: Arc<Area>,
    pub(super) inode: Inode,
}

/// What an operation found under a name.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) inode: Inode,
    pub(super) links: u64,
    /// None for a directory.
    pub(super) bytes: Option<u64>,
}

impl Ledger {
    /// That of a directory, whose content is counted where nobody else does.
    pub(super) fn of(dir: &File) -> io::Result<Arc<Self>> {
        let key = inode(dir)?;
        if let Some(known) = LEDGERS.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let (bytes, files) = tree::count(dir)?;
        let mut ledgers = LEDGERS.lock();
        ledgers.retain(|_, ledger| ledger.strong_count() > 0);
        if let Some(known) = ledgers.get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let ledger = Arc::new(Self { used: Mutex::new(Used { bytes, files, ..Used::default() }), ..Self::default() });
        ledgers.insert(key, Arc::downgrade(&ledger));
        Ok(ledger)
    }
}

impl Area {
    pub(super) fn new(room: Room, ledger: Arc<Ledger>) -> Self {
        Self { room, ledger }
    }

    /// Waits for its turn to change the directory. What is done with paths and sizes is done while it is held.
    pub(super) fn turn(&self) -> io::Result<MutexGuard<'_, ()>> {
        let turn = self.ledger.turn.lock();
        if self.ledger.used.lock().closed { Err(Errno::NOENT.into()) } else { Ok(turn) }
    }

    /// No more changes: the directory goes.
    pub(super) fn close(&self) {
        let _turn = self.ledger.turn.lock();
        self.ledger.used.lock().closed = true;
    }

    /// Whether nobody is changing the directory and it holds no more than this.
    pub(super) fn is_quiet(&self, files: u64) -> bool {
        !self.ledger.turn.is_locked() && self.ledger.used.lock().files <= files
    }

    /// Bytes and files now.
    #[cfg(test)]
    pub(super) fn used(&self) -> (u64, u64) {
        let used = self.ledger.used.lock();
        (used.bytes, used.files)
    }

    /// Whether there is room for this much more.
    pub(super) fn has_room(&self, bytes: u64, files: u64) -> io::Result<()> {
        let used = self.ledger.used.lock();
        let within =
            |used: u64, more: u64, room: u64| more == 0 || used.checked_add(more).is_some_and(|sum| sum <= room);
        let bytes_fit = within(used.bytes, bytes, self.room.bytes) || !stands(Defence::DirectoryBytes);
        let files_fit = within(used.files, files, self.room.files) || !stands(Defence::DirectoryFiles);
        if bytes_fit && files_fit { Ok(()) } else { Err(Errno::NOSPC.into()) }
    }

    /// A name was added, with so many bytes of its own.
    pub(super) fn named(&self, bytes: u64) {
        let mut used = self.ledger.used.lock();
        used.files += 1;
        used.bytes = used.bytes.saturating_add(bytes);
    }

    /// A name was taken away.
    pub(super) fn unnamed(&self, was: Named) {
        let mut used = self.ledger.used.lock();
        used.files = used.files.saturating_sub(1);
        let Some(bytes) = was.bytes.filter(|_| was.links <= 1) else { return };
        match used.held.get_mut(&was.inode) {
            Some(held) => held.nameless = Some(bytes),
            None => used.bytes = used.bytes.saturating_sub(bytes),
        }
    }

    /// A file has another size.
    pub(super) fn resized(&self, inode: Inode, before: u64, after: u64) {
        let mut used = self.ledger.used.lock();
        used.bytes = used.bytes.saturating_add(after).saturating_sub(before);
        if let Some(Held { nameless: Some(bytes), .. }) = used.held.get_mut(&inode) {
            *bytes = after;
        }
    }

    /// A cell has it open.
    pub(super) fn hold(self: &Arc<Self>, inode: Inode) -> Hold {
        self.ledger.used.lock().held.entry(inode).or_default().handles += 1;
        Hold { area: Arc::clone(self), inode }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut used = self.area.ledger.used.lock();
        let Entry::Occupied(mut held) = used.held.entry(self.inode) else { return };
        held.get_mut().handles -= 1;
        if held.get().handles == 0 {
            let bytes = held.remove().nameless.unwrap_or_default();
            used.bytes = used.bytes.saturating_sub(bytes);
        }
    }
}

/// Which file of the host it is.
pub(super) fn inode(file: &File) -> io::Result<Inode> {
    file.metadata().map(|found| (found.dev(), found.ino()))
}
