//! Replaces a file atomically: a reader sees the old text or the new one, never a part.
//!
//! Writing the lock file (approvals), approved versions and restored components creates a
//! [`PendingFile`] with the new content. `new` writes it to a temporary file beside its place and
//! syncs it to disk; `put` renames it into place, so a caller can prepare several files before it
//! replaces any. A file that is not renamed into place is removed. If the process was killed, the
//! next write removes it; such a file is recognised by its name, and because no running process
//! holds the `flock` on it. A writer that first compares the file with what it read takes a
//! [`turn`], so that no other one replaces the file in between.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

/// Attempts at creating a file. Another process may remove each as abandoned before it is locked.
const ATTEMPTS: usize = 100;
/// The longest wait for other processes that replace files in the same directory.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);

/// A text that is synced to disk, but not renamed into place yet.
#[derive(Debug)]
pub(crate) struct PendingFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl PendingFile {
    /// Writes it to a temporary file beside its place, with these permissions, less the umask.
    pub(crate) fn new(path: &Path, content: impl AsRef<[u8]>, mode: u32) -> io::Result<Self> {
        let dir = directory_of(path);
        let prefix = format!(".{}.new-", path.file_name().unwrap_or_default().to_string_lossy());
        collect(dir, &prefix);
        let mut file = locked(dir, &prefix, mode)?;
        file.write_all(content.as_ref())?;
        file.as_file().sync_all()?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Renames it into place atomically.
    pub(crate) fn put(self) -> io::Result<()> {
        self.file.persist(&self.path).map_err(|failed| failed.error)?;
        // Syncs the directory, so that the name survives a power loss where the filesystem supports
        // it.
        let _ = File::open(directory_of(&self.path)).and_then(|dir| dir.sync_all());
        Ok(())
    }
}

/// Returns the directory that a path is in.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Waits until no other process that calls this replaces files in the directory of `path`. The turn
/// ends when the value is dropped. `None` where directories cannot be locked, and if another
/// process, which may be anyone that can read the directory, keeps it locked for too long.
pub(crate) fn turn(path: &Path) -> Option<File> {
    let dir = File::open(directory_of(path)).ok()?;
    let since = Instant::now();
    loop {
        match dir.try_lock() {
            Ok(()) => return Some(dir),
            Err(TryLockError::WouldBlock) if since.elapsed() < TURN_TIMEOUT => {
                std::thread::sleep(TURN_TIMEOUT / 200);
            }
            Err(_) => return None,
        }
    }
}

/// Creates a file and locks it, which marks it as in use by this process.
fn locked(dir: &Path, prefix: &str, mode: u32) -> io::Result<NamedTempFile> {
    for _ in 0..ATTEMPTS {
        let mut builder = tempfile::Builder::new();
        let file =
            builder.prefix(prefix).permissions(Permissions::from_mode(mode)).tempfile_in(dir)?;
        // Where locks are not supported, nothing is collected.
        let is_met = matches!(file.as_file().try_lock(), Err(TryLockError::WouldBlock));
        if !is_met && file.as_file().metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Removes the files that killed processes left.
fn collect(dir: &Path, prefix: &str) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(prefix);
        if !is_ours || !entry.metadata().is_ok_and(|found| found.is_file()) {
            continue;
        }
        // Removed while locked, so that its creator notices.
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_removed_unless_their_writer_lives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.lock");
        fs::write(dir.path().join(".a.lock.new-dead"), "half").unwrap();
        fs::write(dir.path().join(".b.lock.new-else"), "another").unwrap();
        let living = PendingFile::new(&path, "one", 0o644).unwrap();
        PendingFile::new(&path, "two", 0o644).unwrap().put().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        living.put().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".b.lock.new-else", "a.lock"]);
    }

    #[test]
    fn turn_keeps_others_out_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let other = File::open(dir.path()).unwrap();
        let first = turn(&dir.path().join("a.lock")).expect("a turn");
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(first);
        other.try_lock().expect("the turn has ended");
    }
}
