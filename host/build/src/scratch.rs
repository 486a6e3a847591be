//! A temporary folder for what a compiler reads and writes.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;

/// A folder that only this user can read, and that is removed at the end. It is where the process
/// has its temporary files, so that a command which is ended by a signal removes it too.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    /// Makes a new folder. Its name contains `purpose`.
    pub(crate) fn new(purpose: &str) -> Result<Self, Error> {
        let made = tempfile::Builder::new().prefix(&format!("toolcell-{purpose}-")).tempdir();
        made.map(Self)
            .map_err(|error| Error::file("make a folder in", &tempfile::env::temp_dir(), &error))
    }

    /// The path of something in the folder.
    pub(crate) fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(path)
    }

    /// Writes a file, whose path is below the folder. Returns the file's path.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, Error> {
        let path = self.join(path);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder)
            .map_err(|error| Error::file("make the folder", folder, &error))?;
        fs::write(&path, content).map_err(|error| Error::file("write", &path, &error))?;
        Ok(path)
    }
}
