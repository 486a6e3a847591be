//! Lock by which one load at a time compiles a cache entry, while others, of this process or
//! another, wait and use its result.
//!
//! A load that finds no entry calls [`wait`] with the path of a lock file. It returns an
//! [`EntryLock`], or `None` if the caller's closure ends the wait or locks are not available; then
//! the load goes on without a lock.
//! The lock is a `flock`, so it ends with its process, and the next process gets it. The file is
//! removed before it is unlocked. A process that locked a file which has lost its name meanwhile
//! tries again with a new one.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::os::private;

/// The interval between two attempts to lock.
const PAUSE: Duration = Duration::from_millis(10);

/// The lock for one name. No other load can take it while this exists.
#[derive(Debug)]
pub(in crate::engine) struct EntryLock {
    path: PathBuf,
    _file: File,
}

impl Drop for EntryLock {
    fn drop(&mut self) {
        // Before it is unlocked: a process that waits for this file then finds that it has no name,
        // and creates another.
        let _ = fs::remove_file(&self.path);
    }
}

/// Locks the file. While another load holds the lock, tries again for as long as `goes_on`
/// returns true. Returns `None` if it returns false, or where locks are not available.
pub(in crate::engine) fn wait(path: &Path, mut goes_on: impl FnMut() -> bool) -> Option<EntryLock> {
    loop {
        let file = private::open_or_create(path)
            .inspect_err(|error| tracing::debug!(%error, "a cache lock cannot be opened"))
            .ok()?;
        match file.try_lock() {
            Ok(()) if private::has_path(&file, path) => {
                return Some(EntryLock { path: path.to_owned(), _file: file });
            }
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if goes_on() => std::thread::sleep(PAUSE),
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Starts a process that holds the lock.
    fn other(path: &Path) -> Child {
        let script = "set -e; exec 9>\"$0\"; flock -x 9; echo locked; exec sleep 1000";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(path).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = io::BufReader::new(child.stdout.take().unwrap());
        assert_eq!(io::BufRead::lines(lines).next().unwrap().unwrap(), "locked");
        child
    }

    /// Fails without: `flock` (it hangs if the existence of the file is the lock).
    #[test]
    fn dead_process_releases_its_lock() {
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
        let missing = dir.path().join("missing/name.lock");
        assert!(wait(&missing, || panic!("it does not wait")).is_none());
    }

    #[test]
    fn lock_has_one_holder_at_a_time() {
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
