//! A file that is replaced as a whole.
//!
//! Invariants: whoever reads it finds the old text or the new one, never a part; what is not put into its place leaves
//! nothing behind.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A text that is on the disk, but not in its place yet.
#[derive(Debug)]
pub(crate) struct Written {
    file: NamedTempFile,
    path: PathBuf,
}

impl Written {
    /// Writes it beside its place, with these permissions as far as the user's mask leaves them.
    pub(crate) fn new(path: &Path, text: &str, mode: u32) -> io::Result<Self> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(mode)).tempfile_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Puts it into its place in one step.
    pub(crate) fn put(self) -> io::Result<()> {
        self.file.persist(&self.path).map(drop).map_err(|failed| failed.error)
    }
}
