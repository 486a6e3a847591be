//! The key-value stores of tools: one for each configuration, in the user's state directory.
//!
//! An engine gets the [`store`] of its configuration. It is opened when a tool reads or writes a
//! key, so a command whose tools do not use keys creates none. Tools of one configuration neither
//! see nor wait for the keys of another.
//!
//! Layout: `projects/NAME-HASH/store.db` below the state directory, with the name of the
//! configuration's folder and a hash of its path. Calls without a configuration use
//! `projects/none`.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use toolcell::kv::SqliteStore;

/// The directory below the state directory.
const DIRECTORY: &str = "projects";
/// The store of calls without a configuration.
const NONE: &str = "none";
/// Characters of a folder's name in the name of its store.
const MAX_NAME_CHARS: usize = 32;
/// Hex digits of the hash of the path.
const HASH: usize = 16;

/// Returns the store of this configuration below this state directory.
pub(crate) fn store(state: &Path, config: Option<&Path>) -> SqliteStore {
    let project = config.map_or_else(|| NONE.to_owned(), project);
    SqliteStore::open_later(state.join(DIRECTORY).join(project))
}

/// Returns the unique and readable directory name of a configuration, below a directory that all
/// configurations share.
pub(crate) fn project(config: &Path) -> String {
    let folder = config.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let shown = folder
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c))
        .take(MAX_NAME_CHARS)
        .collect::<String>();
    let hash = format!("{:x}", Sha256::digest(config.as_os_str().as_bytes()));
    format!("{shown}-{}", &hash[..HASH])
}
