//! Temporary directories that later processes can remove if their owner was killed.
//!
//! [`TemporaryDirectory::new`] creates a directory for this user only, with a known prefix, and
//! holds a `flock` on it. The kernel releases the lock when the process ends.
//! [`TemporaryDirectory::collect`], which programs call at their start, removes the directories of
//! this user that no process has locked; it stops after about a second. [`remove_tree`] removes one
//! directory tree of any depth. Scratch directories, the input files of calls, and worker processes
//! use these directories.
//! A directory is removed only under its lock and the locks of such directories in it, so a
//! directory of a living process, or one that contains it, stays. A process whose new directory was
//! removed before it was locked notices this and creates another one. On a filesystem without locks
//! nothing is collected.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::CWD;

use super::tree;
use crate::os::private;

/// Prefix of the directories' names.
const PREFIX: &str = "toolcell-own-";
/// Attempts to create a directory. A collector may remove each in the instant before it is locked.
const ATTEMPTS: usize = 100;
/// Entries among the temporary files that a collection inspects.
const MAX_INSPECTED: usize = 20_000;
/// Time for one collection. The next process continues with the rest.
const COLLECTING: Duration = Duration::from_secs(1);

/// Removes a directory tree of any depth with few file descriptors, following no link. Use it for
/// directories that tools have written to, for instance the temporary directory of a killed worker
/// of a [`WorkerProcess`](crate::process::WorkerProcess).
///
/// # Errors
/// The error of the operating system, for instance if a process still writes to the directory.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    tree::clear(&tree::open_dir(CWD, path)?)?;
    fs::remove_dir(path)
}

/// A temporary directory for this process and its children. Only this user can read it. Dropping it
/// does not remove it: call [`remove_tree`]. [`collect`](Self::collect) removes the directories of
/// processes that were killed.
#[derive(Debug)]
pub struct TemporaryDirectory {
    path: PathBuf,
    /// Locked while this value lives, if [`new`](Self::new) created it.
    dir: File,
}

impl TemporaryDirectory {
    /// Creates a directory in the system's directory for temporary files.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&tempfile::env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let mut builder = tempfile::Builder::new();
            builder.prefix(PREFIX).permissions(Permissions::from_mode(0o700));
            let made = builder.tempdir_in(parent)?.keep();
            let Ok(dir) = tree::open_dir(CWD, &made) else { continue };
            // On a filesystem without locks there is no lock, and nothing is ever collected.
            let is_met = matches!(dir.try_lock(), Err(TryLockError::WouldBlock));
            if !is_met && private::has_path(&dir, &made) {
                return Ok(Self { path: made, dir });
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a directory inside of this one, which is as safe from collection as this one.
    pub(super) fn new_inside(&self) -> io::Result<Self> {
        let made = tempfile::Builder::new().tempdir_in(&self.path)?;
        let dir = tree::open_dir(CWD, made.path())?;
        // From here on `tree::clear` removes it: a tool may make it deeper than a recursive removal
        // can handle.
        Ok(Self { path: made.keep(), dir })
    }

    /// Opens a directory that another process keeps locked.
    pub(super) fn of_other_process(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), dir: tree::open_dir(CWD, path)? })
    }

    pub(super) fn handle(&self) -> &File {
        &self.dir
    }

    /// Removes it with all its content.
    pub(super) fn remove(&self) -> io::Result<()> {
        tree::clear(&self.dir)?;
        match fs::remove_dir(&self.path) {
            // It was removed together with its parent.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Removes the temporary directories of this user's processes that have ended. Call it when a
    /// process starts; several processes can call it at the same time. It stops after about a
    /// second.
    pub fn collect() {
        collect_in(&tempfile::env::temp_dir());
    }
}

fn collect_in(parent: &Path) {
    let until = Instant::now() + COLLECTING;
    for path in owned(parent) {
        // Locked until it is removed.
        if let Some(_locks) = lock_abandoned(&path)
            && let Err(error) = remove_tree(&path)
        {
            tracing::debug!(%error, path = %path.display(), "temporary files of an ended process could not be removed");
        }
        if Instant::now() >= until {
            return;
        }
    }
}

/// Returns the directories of this user whose names have the prefix.
fn owned(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let me = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(parent).into_iter().flatten().take(MAX_INSPECTED).flatten();
    let is_ours = move |entry: &fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == me)
    };
    entries.filter(is_ours).map(|entry| entry.path())
}

/// Returns locks on a directory and on those in it, or `None` if a living process holds one of
/// them.
fn lock_abandoned(path: &Path) -> Option<Vec<File>> {
    let lock = |path: &Path| {
        let dir = tree::open_dir(CWD, path).ok()?;
        dir.try_lock().ok().map(|()| dir)
    };
    let mut locks = vec![lock(path)?];
    // A child that outlives its parent for a moment has a directory of its own in it.
    for below in owned(path) {
        locks.push(lock(&below)?);
    }
    Some(locks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_dead_processes_are_collected() {
        let parent = tempfile::tempdir().unwrap();
        let make = || TemporaryDirectory::new_in(parent.path()).unwrap();
        let (living, dead) = (make(), make());
        let outer = make();
        let inner = TemporaryDirectory::new_in(outer.path()).unwrap();
        fs::create_dir(dead.path().join("full")).unwrap();
        fs::write(dead.path().join("full/file"), "x").unwrap();
        fs::create_dir(parent.path().join("toolcell-else")).unwrap();
        let unlocked = |made: TemporaryDirectory| made.path;
        let (dead, outer) = (unlocked(dead), unlocked(outer));
        collect_in(parent.path());
        assert!(!dead.exists() && living.path().exists());
        assert!(outer.exists(), "a directory of a living process is in it");
        assert!(inner.path().exists());
        assert!(parent.path().join("toolcell-else").exists(), "it has no name of ours");
        drop(inner);
        collect_in(parent.path());
        assert!(!outer.exists());
    }

    /// Processes that create and collect at the same time: a directory stays until its lock ends.
    #[test]
    fn directories_of_live_processes_are_kept() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let made = TemporaryDirectory::new_in(parent.path()).unwrap();
                        fs::write(made.path().join("file"), "x").unwrap();
                        collect_in(parent.path());
                        assert!(made.path().join("file").exists());
                    }
                });
            }
        });
        collect_in(parent.path());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
