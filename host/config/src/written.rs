//! A file that is replaced as a whole.
//!
//! Invariants: a reader finds the old text or the new one, never a part; what is not put into its
//! place leaves nothing behind, or, where the process was killed, a file that the next one removes:
//! it is known by its name, and that no living process has it locked.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Attempts at making a file, each of which another process may take for a dead one's.
const ATTEMPTS: usize = 100;

/// A text that is on the disk, but not in its place yet.
#[derive(Debug)]
pub(crate) struct Written {
    file: NamedTempFile,
    path: PathBuf,
}

impl Written {
    /// Writes it beside its place, with these permissions as far as the user's mask leaves them.
    pub(crate) fn new(path: &Path, content: impl AsRef<[u8]>, mode: u32) -> io::Result<Self> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = format!(".{}.new-", path.file_name().unwrap_or_default().to_string_lossy());
        collect(dir, &prefix);
        let mut file = locked(dir, &prefix, mode)?;
        file.write_all(content.as_ref())?;
        file.as_file().sync_all()?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Puts it into its place in one step.
    pub(crate) fn put(self) -> io::Result<()> {
        let dir = self
            .path
            .parent()
            .filter(|dir| !dir.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
            .to_owned();
        self.file.persist(&self.path).map_err(|failed| failed.error)?;
        // The name is to outlive a loss of power too, where the filesystem can promise it.
        let _ = File::open(dir).and_then(|dir| dir.sync_all());
        Ok(())
    }
}

/// A new file that is known to be this process's.
fn locked(dir: &Path, prefix: &str, mode: u32) -> io::Result<NamedTempFile> {
    for _ in 0..ATTEMPTS {
        let mut builder = tempfile::Builder::new();
        let file =
            builder.prefix(prefix).permissions(Permissions::from_mode(mode)).tempfile_in(dir)?;
        // Where there are no locks nothing is collected.
        let is_met = matches!(file.as_file().try_lock(), Err(TryLockError::WouldBlock));
        if !is_met && file.as_file().metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Removes what processes have left that were killed.
fn collect(dir: &Path, prefix: &str) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(prefix);
        if !is_ours || !entry.metadata().is_ok_and(|found| found.is_file()) {
            continue;
        }
        // Removed while it is locked, so that its maker notices.
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
    fn what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.lock");
        fs::write(dir.path().join(".a.lock.new-dead"), "half").unwrap();
        fs::write(dir.path().join(".b.lock.new-else"), "another").unwrap();
        let living = Written::new(&path, "one", 0o644).unwrap();
        Written::new(&path, "two", 0o644).unwrap().put().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        living.put().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".b.lock.new-else", "a.lock"]);
    }
}
