//! Finds the configuration when the command line names none: the nearest `toolcell.toml`, from the
//! working directory up.

use std::fs;
use std::path::{Path, PathBuf};

use crate::NAME;
use crate::error::Error;
use crate::files::Foreign;
use crate::{ReadOptions, files};

/// What was found.
#[derive(Default)]
pub(crate) struct Nearest {
    /// The nearest file that is not another user's.
    pub(crate) own: Option<PathBuf>,
    /// A nearer file that is another user's.
    pub(crate) foreign: Option<Ignored>,
}

/// A file that is not read, because another user decides what it says.
#[derive(Debug)]
pub(crate) struct Ignored {
    file: PathBuf,
    why: Foreign,
}

/// Searches from here upwards. A file of another user is skipped, so that it hides no file above
/// it.
pub(crate) fn nearest(options: &ReadOptions) -> Nearest {
    let Some(here) = options.current_dir.clone() else { return Nearest::default() };
    let is_here = !options.is_elsewhere;
    let shown = |path: PathBuf| match path.strip_prefix(&here) {
        Ok(short) if is_here => short.to_owned(),
        Ok(_) | Err(_) => path,
    };
    let mut foreign = None;
    for path in here.ancestors().map(|dir| dir.join(NAME)).filter(|path| path.is_file()) {
        let Some(why) = files::foreign(&path) else {
            return Nearest { own: Some(shown(path)), foreign };
        };
        let owner = why.owner;
        tracing::warn!(file = %path.display(), owner, "ignored a configuration that belongs to another user");
        foreign.get_or_insert_with(|| Ignored { why, file: shown(path) });
    }
    Nearest { own: None, foreign }
}

/// The error of a command that would need it.
pub(crate) fn not_used(Ignored { file, why }: &Ignored) -> Error {
    // Named once, unless it is a link's target or the directory.
    let message = match why.path.ends_with(file) {
        true => format!("`{}` is ignored: {}", file.display(), why.of("it")),
        false => format!("`{}` is ignored: {why}", file.display()),
    };
    Error::file(message, "name a configuration of your own with `--config FILE`")
}

/// Whether both are paths of one file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => false,
    }
}
