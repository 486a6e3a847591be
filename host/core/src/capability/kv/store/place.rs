//! Creates the file of a database if it is missing, and checks that only this user can access it.
//!
//! `Database::file` calls [`secure`] with a directory and a function that fills a new file. It
//! returns the path of the file without links, or an error that says which file or directory is
//! unfit. A new file is filled under a temporary name and then renamed, so no process sees a
//! partial file, even if its creator is killed. If two processes create it at once, the first file
//! is used.
//! A file that another user could have read or written is never used. An existing file is checked
//! but not opened here: closing it would release every lock that this process has on it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use toolcell_contract::error::Error;

use super::failure::DAMAGED;
use crate::os::private::{self, NotPrivate};

/// The file's name.
pub(crate) const FILE: &str = "store.db";
const OTHER_DIRECTORY: &str = "use a directory that you own and that no other user can write to";
const DOUBTFUL: &str =
    "see who wrote it; make it yours with mode 600 if you trust it, or move it away";

/// Ensures that there is a file that only this user can access. A new file gets its content from
/// `fill`, and then its name.
pub(super) fn secure(
    dir: &Path,
    fill: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let failed = |error: io::Error| {
        let problem = format!("{}: no file can be made: {error}", dir.display());
        Error::store(problem, OTHER_DIRECTORY).with_source(error)
    };
    private::directory(dir).map_err(|unfit| place_error(dir, unfit, OTHER_DIRECTORY))?;
    let dir = &dir.canonicalize().map_err(failed)?;
    let path = dir.join(FILE);
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        // Closed before the database opens it, and never opened here again.
        let new = private::temporary_file(dir).map_err(failed)?.into_temp_path();
        fill(&new)?;
        private::publish(new, &path).map_err(failed)?;
        // Flushes the name as well, so that it survives a loss of power.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    }
    // A new file has content before it has its name, so an empty file has lost its content.
    let found = private::check_closed(&path);
    if found.map_err(|unfit| place_error(&path, unfit, DOUBTFUL))?.len() == 0 {
        return Err(Error::store(format!("{} is empty", path.display()), DAMAGED));
    }
    Ok(path)
}

fn place_error(path: &Path, unfit: NotPrivate, hint: &'static str) -> Error {
    Error::store(format!("{} {unfit}", path.display()), hint).with_source(unfit)
}
