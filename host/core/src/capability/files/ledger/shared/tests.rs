//! Tests of a directory's count that two processes share. Each process is represented by a ledger
//! (the count of a directory) of its own with its own locks, in one test process.

use std::fs;
use std::sync::Arc;

use tempfile::TempDir;
use toolcell_contract::grants::DirectoryQuota;

use super::*;
use crate::capability::files::ledger::Ledger;
use crate::capability::files::work::{OpenSettings, Opened, WritePosition, open};
use crate::capability::files::{Area, OpenMark, is_exhausted};
use crate::tenant::share::{Reservation, Share, ShareRule};
use crate::tenant::state::TenantState;

struct SharedDirectory {
    granted: TempDir,
    counts: TempDir,
    dir: File,
}

impl SharedDirectory {
    fn new() -> Self {
        let (granted, counts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = File::open(granted.path()).unwrap();
        Self { granted, counts, dir }
    }

    /// The directory as a process has it, with room for 1000 bytes and 10 files.
    fn process(&self) -> Arc<Area> {
        let room = DirectoryQuota { bytes: 1000, files: 10 };
        let ledger = Ledger::of_other_process(&self.dir, self.counts.path());
        Arc::new(Area::new(room, Arc::new(ledger)))
    }

    fn file(&self, area: &Arc<Area>, name: &str) -> (File, OpenMark) {
        let opening =
            OpenSettings { read: true, write: true, create: true, ..OpenSettings::default() };
        match open(Some(area), &self.dir, name, opening).unwrap() {
            Opened::File(file, Some(hold)) => (file, hold),
            Opened::File(_, None) | Opened::Directory(_) => panic!("it is no file that is held"),
        }
    }
}

/// The only permit of this bound on open files.
fn permit(bound: &Arc<Share>) -> Option<Arc<Reservation>> {
    bound.take(&TenantState::of(None), 1, ShareRule::All).ok().map(Arc::new)
}

/// Fails without: one count for all processes.
#[test]
fn processes_share_one_directory_quota() {
    let scene = SharedDirectory::new();
    fs::write(scene.granted.path().join("old"), [0; 100]).unwrap();
    let (one, two) = (scene.process(), scene.process());
    let ((a, one_hold), (b, two_hold)) = (scene.file(&one, "a"), scene.file(&two, "b"));
    one_hold.write(&a, &[1; 500], WritePosition::End).unwrap();
    assert!(two_hold.write(&b, &[2; 401], WritePosition::End).is_err());
    two_hold.write(&b, &[2; 400], WritePosition::End).unwrap();
    assert!(one_hold.write(&a, &[1; 1], WritePosition::End).is_err());
    assert_eq!((one.used(), two.used()), ((1000, 3), (1000, 3)));
    one_hold.set_size(&a, 0).unwrap();
    two.remove_file(&scene.dir, "old", None).unwrap();
    assert_eq!((one.used(), two.used()), ((400, 2), (400, 2)));
    two_hold.write(&b, &[2; 600], WritePosition::End).unwrap();
}

/// Fails without: counting a file's bytes after it lost its name.
#[test]
fn unlinked_file_counts_until_its_last_close() {
    let scene = SharedDirectory::new();
    let (one, two) = (scene.process(), scene.process());
    let (file, hold) = scene.file(&one, "a");
    hold.write(&file, &[1; 900], WritePosition::End).unwrap();
    two.remove_file(&scene.dir, "a", permit(&Share::new(1))).unwrap();
    let (other, other_hold) = scene.file(&two, "b");
    assert!(other_hold.write(&other, &[2; 101], WritePosition::End).is_err());
    // A file without a name can also grow and shrink.
    hold.write(&file, &[1; 50], WritePosition::End).unwrap();
    assert!(other_hold.write(&other, &[2; 51], WritePosition::End).is_err());
    drop((file, hold));
    other_hold.write(&other, &[2; 1000], WritePosition::End).unwrap();
    assert_eq!((one.used(), two.used()), ((1000, 1), (1000, 1)));
}

/// Fails without: a permit for the ledger's handle of a deleted file, or closing the handle with the
/// last one of a cell.
#[test]
fn deleted_open_file_needs_a_permit_until_its_last_close() {
    let (scene, bound) = (SharedDirectory::new(), Share::new(1));
    let area = scene.process();
    let (file, hold) = scene.file(&area, "a");
    let (other, other_hold) = scene.file(&area, "b");
    hold.write(&file, &[1; 100], WritePosition::End).unwrap();
    assert!(is_exhausted(&area.remove_file(&scene.dir, "a", None).unwrap_err()));
    let replaces = area.rename(&scene.dir, "b", &scene.dir, "a", None).unwrap_err();
    assert!(is_exhausted(&replaces));
    assert_eq!(area.used(), (100, 2), "nothing has changed");
    area.remove_file(&scene.dir, "a", permit(&bound)).unwrap();
    assert!(bound.is_full());
    drop((file, hold));
    assert!(!bound.is_full(), "without another turn");
    drop((other, other_hold));
    area.remove_file(&scene.dir, "b", None).unwrap();
    assert_eq!(area.used(), (0, 0));
}

/// The state after `kill -9` between a change and its end.
#[test]
fn interrupted_change_triggers_a_recount() {
    let scene = SharedDirectory::new();
    let (one, two) = (scene.process(), scene.process());
    let inode = crate::capability::files::tree::inode(&scene.dir).unwrap();
    let dead = Shared::join(scene.counts.path(), &scene.dir, inode).unwrap();
    dead.begin().unwrap();
    fs::write(scene.granted.path().join("more"), [0; 700]).unwrap();
    drop(dead);
    assert_eq!((one.used(), two.used()), ((700, 1), (700, 1)));
}

/// The bytes of nameless files of a dead process are freed when another process is the only one and
/// finds no room.
#[test]
fn usage_of_dead_process_is_released() {
    let scene = SharedDirectory::new();
    let (one, two) = (scene.process(), scene.process());
    let (file, hold) = scene.file(&two, "a");
    hold.write(&file, &[1; 900], WritePosition::End).unwrap();
    two.remove_file(&scene.dir, "a", permit(&Share::new(1))).unwrap();
    let (other, other_hold) = scene.file(&one, "b");
    assert!(other_hold.write(&other, &[2; 101], WritePosition::End).is_err());
    // The process dies with all that it holds.
    drop((file, hold, two));
    // Nameless files of other tests count as well, for as long as they are open.
    let until = Instant::now() + Duration::from_secs(20);
    while other_hold.write(&other, &[2; 1000], WritePosition::End).is_err() {
        assert!(Instant::now() < until, "{:?}", one.used());
        std::thread::yield_now();
    }
}

/// The first process counts changes that were made while no process used the directory.
#[test]
fn first_process_recounts_usage() {
    let scene = SharedDirectory::new();
    assert_eq!(scene.process().used(), (0, 0));
    fs::write(scene.granted.path().join("a"), [0; 10]).unwrap();
    let one = scene.process();
    assert_eq!(one.used(), (10, 1));
    fs::write(scene.granted.path().join("b"), [0; 10]).unwrap();
    let two = scene.process();
    // No process counts anew while another one counts.
    assert_eq!((one.used(), two.used()), ((10, 1), (10, 1)));
    drop((one, two));
    assert_eq!(scene.process().used(), (20, 2));
}

/// A process that is stopped in its turn. Fails without: a time limit on the lock.
#[test]
fn wait_for_the_count_lock_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    let count = || options.open(dir.path().join("count")).unwrap();
    let stopped = count();
    stopped.lock().unwrap();
    let waited = lock(&count(), Duration::from_millis(20));
    assert!(waited.is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy));
    stopped.unlock().unwrap();
    lock(&count(), Duration::ZERO).unwrap();
}
