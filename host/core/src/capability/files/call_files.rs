//! Private directory with the input files of one call, which its tool reads under `/input`.
//!
//! The caller of a tool creates a [`CallFiles`], adds named contents to it, and passes it with the
//! call. `add` returns the path as the tool sees it. The engine gives the directory to that call
//! only, and read-only. The directory is removed when the last owner of the value is dropped. A
//! worker process, which runs calls for another process, opens the directory by its path and does
//! not remove it.
//! A name is one path component of 1 to 128 safe characters, so no file can lie outside of the
//! directory. A name that exists already is an error, so each file is written once.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use toolcell_contract::controls::enforced;
use toolcell_contract::grants::DirectoryQuota;

use super::Root;
use super::ledger::{Area, Ledger};
use super::temporary::TemporaryDirectory;

/// Bytes. The longest name of a file.
const MAX_NAME: usize = 128;

/// Files of one call. If the call's tool is a component, it can read them in the directory
/// [`CallFiles::DIRECTORY`]. It cannot change them, and no other call sees them. The files are
/// removed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct CallFiles(Arc<Private>);

#[derive(Debug)]
struct Private {
    /// Its lock keeps other processes from collecting the files as those of a killed process.
    dir: TemporaryDirectory,
    /// False if the directory belongs to another process.
    is_own: bool,
}

impl CallFiles {
    /// The directory's path as tools see it: `/input`.
    pub const DIRECTORY: &str = "/input";

    /// Creates an empty private directory among the temporary files.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Private { dir: TemporaryDirectory::new()?, is_own: true })))
    }

    /// Opens the files of a call that another process keeps.
    pub(crate) fn open_existing(path: &Path) -> io::Result<Self> {
        let dir = TemporaryDirectory::of_other_process(path)?;
        Ok(Self(Arc::new(Private { dir, is_own: false })))
    }

    /// Adds a file. Returns its path as the tool sees it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a name that [`is_name`](Self::is_name) rejects,
    /// [`io::ErrorKind::AlreadyExists`] for a name that is taken, or the error of the operating
    /// system.
    pub fn add(&self, name: &str, mut content: impl Read) -> io::Result<String> {
        if !Self::is_name(name) && enforced!(CallFileNames) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a safe file name"));
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.0.dir.handle(), name, flags, Mode::RUSR | Mode::WUSR)?;
        io::copy(&mut content, &mut File::from(file))?;
        Ok(format!("{}/{name}", Self::DIRECTORY))
    }

    /// Returns true if a file can have this name: 1 to 128 of the characters `A-Z a-z 0-9 . _ -`,
    /// the first of them a letter, a digit or `_`.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(is_allowed)
            && !name.starts_with(['.', '-'])
    }

    /// The directory on the host.
    pub(crate) fn path(&self) -> &Path {
        self.0.dir.path()
    }

    /// Returns the directory as its call gets it.
    pub(crate) fn root(&self) -> io::Result<Root> {
        let writable =
            || Arc::new(Area::new(DirectoryQuota::default(), Arc::new(Ledger::default())));
        let area = if enforced!(CallFilesReadOnly) { None } else { Some(writable()) };
        Ok(Root { name: Self::DIRECTORY.to_owned(), dir: self.0.dir.handle().try_clone()?, area })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if self.is_own
            && let Err(error) = self.dir.remove()
        {
            tracing::warn!(%error, "the files of a call could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::CallFiles;

    #[test]
    fn call_file_cannot_escape_and_is_deleted_on_drop() {
        let files = CallFiles::new().unwrap();
        let escape = format!("../toolcell-escape-{}", std::process::id());
        let refused = files.add(&escape, &b"out"[..]);
        let _ = std::fs::remove_file(files.path().join(&escape));
        assert!(refused.is_err());
        let names = rows::<&str>("capability/files/call_files", "names");
        for name in names.into_iter().chain([&*"x".repeat(129)]) {
            assert!(files.add(name, &b""[..]).is_err(), "{name:?}");
        }
        assert_eq!(files.add("a.csv", &b"1,2"[..]).unwrap(), "/input/a.csv");
        assert!(files.add("a.csv", &b"3"[..]).is_err());
        let path = files.path().to_owned();
        assert_eq!(std::fs::read(path.join("a.csv")).unwrap(), b"1,2");
        drop(files);
        assert!(!path.exists());
    }
}
