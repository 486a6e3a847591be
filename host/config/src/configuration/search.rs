//! Finds the configuration if the command line names none: the nearest `toolcell.toml`, from the
//! working directory upwards.
//!
//! `Configuration::find` calls [`nearest`], which returns the path of the first file that this user
//! controls. A file of another user is skipped with a warning, because its owner could grant access
//! to tools; it does not hide a file above it. The skipped file is remembered, so that a command
//! without any other configuration reports it with [`not_used`].

use std::path::PathBuf;

use crate::ReadOptions;
use crate::error::Error;
use crate::paths::files::{self, ForeignFile};
use crate::schema::NAME;

/// A file that is not read, because another user controls its content.
#[derive(Debug)]
pub(super) struct Ignored {
    file: PathBuf,
    reason: ForeignFile,
}

/// Searches upwards from the current directory. A file of another user is skipped, so that it does
/// not hide a file above it. Returns the nearest other file, and the nearest skipped one before it.
pub(super) fn nearest(options: &ReadOptions) -> (Option<PathBuf>, Option<Ignored>) {
    let Some(here) = options.current_dir.clone() else { return (None, None) };
    let is_here = !options.is_elsewhere;
    let shown = |path: PathBuf| match path.strip_prefix(&here) {
        Ok(short) if is_here => short.to_owned(),
        Ok(_) | Err(_) => path,
    };
    let mut foreign = None;
    for path in here.ancestors().map(|dir| dir.join(NAME)).filter(|path| path.is_file()) {
        let Some(why) = files::foreign(&path) else {
            return (Some(shown(path)), foreign);
        };
        let owner = why.owner;
        tracing::warn!(file = %path.display(), owner, "ignored a configuration that belongs to another user");
        foreign.get_or_insert_with(|| Ignored { reason: why, file: shown(path) });
    }
    (None, foreign)
}

/// Returns the error of a command that needs the ignored file.
pub(super) fn not_used(Ignored { file, reason: why }: &Ignored) -> Error {
    // The file is named once, unless the owner is that of a link's target or of the directory.
    let message = match why.path.ends_with(file) {
        true => format!("`{}` is ignored: {}", file.display(), why.of("it")),
        false => format!("`{}` is ignored: {why}", file.display()),
    };
    Error::file(message, "name a configuration of your own with `--config FILE`")
}
