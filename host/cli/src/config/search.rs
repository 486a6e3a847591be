//! Where a configuration is found that was not named.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::NAME;
use crate::env;
use crate::failure::Failure;

/// The nearest file of that name, from here upwards.
pub(super) fn nearest() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    let path = here.ancestors().map(|dir| dir.join(NAME)).find(|path| path.is_file())?;
    Some(path.strip_prefix(&here).map(Path::to_owned).unwrap_or(path))
}

/// Why a file that is another user's is no configuration.
pub(super) fn not_used(foreign: &Path) -> Failure {
    let message = format!("`{}` was found here and is not used: it belongs to another user", foreign.display());
    Failure::file(anyhow!(message), "name a configuration of your own with `--config FILE`")
}

/// Whether both are paths of one file.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => false,
    }
}
