//! A temporary folder for what a compiler reads and writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Error;

/// A folder that only this user can read, and that is removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new folder. Its name contains `purpose`.
    pub(crate) fn new(purpose: &str) -> Result<Self, Error> {
        use std::os::unix::fs::DirBuilderExt as _;
        let base = std::env::temp_dir();
        for number in 0..u32::MAX {
            let path = base.join(format!("toolcell-{purpose}-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::file("make the folder", &path, &error)),
            }
        }
        Err(Error::internal("no name for a temporary folder is free"))
    }

    /// The path of something in the folder.
    pub(crate) fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    /// Writes a file, whose path is below the folder. Returns the file's path.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.join(path);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).map_err(|error| Error::file("make the folder", folder, &error))?;
        fs::write(&path, text).map_err(|error| Error::file("write", &path, &error))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
