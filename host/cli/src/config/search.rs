//! Where a configuration is found that was not named.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::NAME;
use crate::failure::Failure;
use crate::{env, files};

/// What is found from the working directory upwards.
#[derive(Default)]
pub(super) struct Nearest {
    /// The nearest file of that name that does not belong to another user.
    pub(super) own: Option<PathBuf>,
    /// A nearer one that does.
    pub(super) foreign: Option<PathBuf>,
}

/// Looks from here upwards. Goes on past a file of another user's, so that it hides none above it.
pub(super) fn nearest() -> Nearest {
    let Some(here) = env::current_dir().ok() else { return Nearest::default() };
    let shown = |path: PathBuf| path.strip_prefix(&here).map(Path::to_owned).unwrap_or(path);
    let mut foreign = None;
    for path in here.ancestors().map(|dir| dir.join(NAME)).filter(|path| path.is_file()) {
        if !files::is_foreign(&path) {
            return Nearest { own: Some(shown(path)), foreign };
        }
        tracing::warn!(file = %path.display(), "ignored a configuration that belongs to another user");
        foreign.get_or_insert_with(|| shown(path));
    }
    Nearest { own: None, foreign }
}

/// Why a file that is another user's is no configuration.
pub(super) fn not_used(foreign: &Path) -> Failure {
    let message = format!("`{}` is ignored: it belongs to another user", foreign.display());
    Failure::file(anyhow!(message), "name a configuration of your own with `--config FILE`")
}

/// Whether both are paths of one file.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => false,
    }
}
