//! The file of a store, and its directory.
//!
//! In: a directory. Out: the path of the file, which is made when it is not there.
//! Invariants: never a file that another user could have read or written; no process sees a file half made, also when the
//! one that makes it is killed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::grants::Access;
use crate::private::{self, Unfit};

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
    private::directory(dir).map_err(|unfit| of(dir, unfit, OTHER_DIRECTORY))?;
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let new = private::nameless(dir).map_err(|error| failed("no file can be made", error))?;
        fill(new.path(), new.reopen().map_err(|error| failed("no file can be made", error))?)?;
        private::publish(new, &path).map_err(|error| failed("no file can be made", error))?;
        // The name, too, is to outlive the machine's next stop.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| failed("no file can be made", error))?;
    }
    check(&path)?;
    Ok(path)
}

fn check(path: &Path) -> Result<(), Error> {
    let doubtful = |unfit| of(path, unfit, DOUBTFUL);
    let file = private::open(path, Access::Write).map_err(doubtful)?;
    // A new one has content before it has its name: this one has lost it.
    if private::alone(&file).map_err(doubtful)?.len() == 0 {
        return Err(Error::store(format!("{} is empty", path.display()), DOUBTFUL));
    }
    Ok(())
}

fn of(path: &Path, unfit: Unfit, hint: &'static str) -> Error {
    Error::store(format!("{} {unfit}", path.display()), hint).with_source(unfit)
}

/// Opens the file.
pub(super) fn open(path: &Path) -> io::Result<File> {
    private::open(path, Access::Write).map_err(io::Error::from)
}
