//! The file of a store, and its directory.
//!
//! In: a directory. Out: the path of the file, which is made when it is not there.
//! Invariants: never a file that another user could have read or written; no process sees a file half made, also when the
//! one that makes it is killed.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::defence::{Defence, stands};
use crate::error::Error;

/// The file's name.
pub(super) const FILE: &str = "keys.redb";
const OTHER_DIRECTORY: &str = "use a directory that is yours and that nobody else can write";
const DOUBTFUL: &str = "see who wrote it; make it yours with mode 600 if you trust it, or move it away";

/// Sees to it that there is a file which is this user's alone. A new one gets its content from `fill`, and then its name.
pub(super) fn secure(dir: &Path, fill: impl FnOnce(&Path, File) -> Result<(), Error>) -> Result<PathBuf, Error> {
    let path = dir.join(FILE);
    let failed = |what: &str, error: io::Error| {
        Error::store(format!("{}: {what}: {error}", dir.display()), OTHER_DIRECTORY).with_source(error)
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| failed("the directory cannot be made", error))?;
    let found = fs::metadata(dir).map_err(|error| failed("the directory cannot be read", error))?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
        let problem = format!("{} belongs to another user, or others can write it", dir.display());
        return Err(Error::store(problem, OTHER_DIRECTORY));
    }
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let new = tempfile::Builder::new().prefix("new-").permissions(Permissions::from_mode(0o600)).tempfile_in(dir);
        let new = new.map_err(|error| failed("no file can be made", error))?;
        fill(new.path(), new.reopen().map_err(|error| failed("no file can be made", error))?)?;
        match new.persist_noclobber(&path) {
            Err(lost) if lost.error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("no file can be made", lost.error));
            }
            // Whoever comes first wins.
            Ok(_) | Err(_) => {}
        }
        // The name, too, is to outlive the machine's next stop.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| failed("no file can be made", error))?;
    }
    check(&path)?;
    Ok(path)
}

fn check(path: &Path) -> Result<(), Error> {
    let doubtful = |what: &str| Error::store(format!("{} {what}", path.display()), DOUBTFUL);
    let file = open(path).map_err(|error| doubtful("cannot be opened, or is a link").with_source(error))?;
    let found = file.metadata().map_err(|error| doubtful("cannot be read").with_source(error))?;
    if !found.is_file() {
        return Err(doubtful("is not a plain file"));
    }
    let is_ours = found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
    if !is_ours && stands(Defence::StoreFile) {
        return Err(doubtful("can be read or written by others"));
    }
    // A new one has content before it has its name: this one has lost it.
    if found.len() == 0 {
        return Err(doubtful("is empty"));
    }
    Ok(())
}

/// Opens the file: never through a link, never waiting for the other end of a pipe.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}
