//! Development mode: decides which components need no approval.
//!
//! An author rebuilds a component often, so `[dev]` of the configuration can list folders whose
//! components are used without approval. Reading a configuration calls [`folders`] with that
//! section. `development` then returns, for a component's path, the reason why it needs no
//! approval, which is printed as a warning at each use. [`Development::CommandLine`] is the other
//! reason: grants that were entered on the command line with `--grant`.
//!
//! Only a configuration that the user named can do this. One that was found in a folder never
//! waives an approval, even if this user approved it: the folder may be another person's, and its
//! files could change afterwards. A folder of `[dev]` that others can write to is an error, too.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use toolcell::controls::enforced;
use toolcell::grants::Access;

use super::trust::FoundConfiguration;
use crate::paths::files;
use crate::paths::roots::Guarded;
use crate::problem::Problems;
use crate::schema;

/// The hint for a folder that cannot be used.
const BUILDS: &str =
    "name the folder that your builds are written to, for instance `target/wasm32-wasip2/release`";

/// The reason why a component needs no approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Development {
    /// It is in this folder of `[dev]`.
    Directory(PathBuf),
    /// Its grants were given on the command line: `--grant`.
    CommandLine,
}

impl fmt::Display for Development {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(folder) => {
                write!(f, "because it lies in `{}`, a directory of [dev]", folder.display())
            }
            Self::CommandLine => f.write_str("with the grants of `--grant`"),
        }
    }
}

/// Returns the folders of a named file, with links resolved. Returns none for one that was found.
pub(crate) fn folders(
    problems: &mut Problems<'_>,
    said: &schema::Dev,
    base: &Path,
    guarded: &Guarded,
    found: Option<&FoundConfiguration>,
) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for folder in &said.directories {
        if found.is_some() && enforced!(FoundDevelopment) {
            let message = "[dev] is not used: this file was found, not named";
            problems.warning(
                &folder.span,
                message,
                "to use [dev], name the file with `--config FILE`",
            );
            continue;
        }
        // The folder does not exist before the first build.
        if fs::symlink_metadata(base.join(&folder.value)).is_err() {
            continue;
        }
        match guarded.resolve(base, &folder.value, Access::Read) {
            Ok(led) => match files::own_directory(&led, BUILDS) {
                Ok(()) => folders.push(led),
                Err(failure) => problems.error(&folder.span, failure.to_string(), failure.hint()),
            },
            Err((problem, _)) => problems.error(&folder.span, problem, BUILDS),
        }
    }
    folders
}

/// Returns [`Development::Directory`] if one of the folders contains the component, with links
/// resolved.
pub(crate) fn development(folders: &[PathBuf], component: &Path) -> Option<Development> {
    let path = fs::canonicalize(component).ok()?;
    let folder = folders.iter().find(|folder| path.starts_with(folder))?;
    Some(Development::Directory(folder.clone()))
}
