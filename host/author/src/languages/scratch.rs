//! A temporary folder for the files that a compiler reads and writes.
//!
//! The builds of C and Python create a [`Scratch`] at their start, write the SDK's files into it,
//! and let the compiler write its output there. Only this user can read the folder. It is removed
//! when the value is dropped. It is in the process's directory for temporary files, which a command
//! that a signal ends removes too.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Error, Result};

/// A folder that only this user can read, and that is removed on drop. It is in the process's
/// directory for temporary files, so that a command that a signal ends removes it too.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    /// Creates a folder. Its name contains `purpose`.
    pub(crate) fn new(purpose: &str) -> Result<Self> {
        let made = tempfile::Builder::new().prefix(&format!("toolcell-{purpose}-")).tempdir();
        made.map(Self).map_err(Error::file("make a folder in", &tempfile::env::temp_dir()))
    }

    /// Returns a path in the folder.
    pub(crate) fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(path)
    }

    /// Writes a file at a path below the folder. Returns the file's path.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.join(path);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).map_err(Error::file("make the folder", folder))?;
        fs::write(&path, content).map_err(Error::file("write", &path))?;
        Ok(path)
    }
}
