//! Single-flight across processes: one process makes a cache entry; the others wait and use it.
//!
//! In: the path of a lock's file. Out: an [`Alone`], while it lives.
//! Invariants: the lock (`flock`) ends with its process, and the next one has it; a file that was
//! locked and has lost its name meanwhile is no lock; where no lock can be had, the caller goes on
//! without one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

/// How often it is asked whether the other process is done.
const PAUSE: Duration = Duration::from_millis(10);

/// Keeps other processes from the name.
#[derive(Debug)]
pub(in crate::engine) struct Alone {
    path: PathBuf,
    _file: File,
}

impl Drop for Alone {
    fn drop(&mut self) {
        // Before it is unlocked: who waits for it finds that it has no name, and makes another.
        let _ = fs::remove_file(&self.path);
    }
}

/// Waits for other processes for as long as `goes_on` says. None when it says no, or where there
/// are no locks.
pub(in crate::engine) fn wait(path: &Path, mut goes_on: impl FnMut() -> bool) -> Option<Alone> {
    loop {
        let file = open(path)
            .inspect_err(|error| tracing::debug!(%error, "a cache lock cannot be opened"))
            .ok()?;
        match file.try_lock() {
            Ok(()) if has_name(&file, path) => {
                return Some(Alone { path: path.to_owned(), _file: file });
            }
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if goes_on() => std::thread::sleep(PAUSE),
            Err(_) => return None,
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
}

fn has_name(file: &File, path: &Path) -> bool {
    let found = (file.metadata(), fs::symlink_metadata(path));
    matches!(found, (Ok(open), Ok(named)) if (open.dev(), open.ino()) == (named.dev(), named.ino()))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A process that has locked the file.
    fn other(path: &Path) -> Child {
        let script = "set -e; exec 9>\"$0\"; flock -x 9; echo locked; exec sleep 1000";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut line)
            .unwrap();
        assert_eq!(line, "locked\n");
        child
    }

    /// Seen to hang with a lock that is a file's being there.
    #[test]
    fn a_process_that_dies_leaves_the_name_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("name.lock");
        let mut child = other(&path);
        assert!(wait(&path, || false).is_none(), "another process has it");
        let mut asked = 0;
        let alone = wait(&path, || {
            asked += 1;
            child.kill().unwrap();
            child.wait().unwrap();
            true
        });
        assert!(alone.is_some() && asked > 0);
        drop(alone);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left there");
        assert!(
            wait(&dir.path().join("missing/name.lock"), || panic!("it does not wait")).is_none()
        );
    }

    #[test]
    fn one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let (path, inside) = (dir.path().join("name.lock"), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let alone = wait(&path, || true);
                        assert!(alone.is_some());
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
