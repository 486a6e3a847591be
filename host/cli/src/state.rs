//! What the commands of a user share: the key that seals states between the call that asks and the
//! call that answers, and the counts of granted directories.
//!
//! In: `--state-dir`, or what the environment says. Out: a [`Sealer`], the same for every call of
//! this user; a place.
//! Not here: how the key is kept safe ([`Sealer::kept_in`]).

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use rustix::fs::{Access, access};
use toolcell::Sealer;

use crate::args::Global;
use crate::env;
use crate::failure::Failure;

/// The state directory: what was typed, or the user's own.
pub(crate) fn dir(global: &Global) -> Option<PathBuf> {
    global.state_dir.clone().or_else(env::state_dir)
}

/// Where commands share the counts of granted directories; none without a state directory.
pub(crate) fn counts(global: &Global) -> Option<PathBuf> {
    dir(global).map(|state| state.join(toolcell_config::COUNTS))
}

/// Makes the state directory if it is missing, and sees to it that files can be written there.
///
/// # Errors
/// It cannot be made, is no directory, or cannot be written to.
pub(crate) fn usable(dir: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    let writable = made.and_then(|()| Ok(access(dir, Access::WRITE_OK | Access::EXEC_OK)?));
    writable.map_err(|error| {
        let error = anyhow!(error)
            .context(format!("the state directory `{}` cannot be used", dir.display()));
        Failure::file(error, "name a directory that you can write to: `--state-dir DIR`")
    })
}

/// The user's sealer, with its key made when there is none.
pub(crate) fn sealer(dir: Option<&Path>) -> Result<Sealer, Failure> {
    let Some(dir) = dir.map(Path::to_owned).or_else(env::state_dir) else {
        return Err(Failure::file(
            anyhow!(
                "no place for the key that seals questions: neither `XDG_STATE_HOME` nor `HOME` is set"
            ),
            "name a directory with `--state-dir DIR`",
        ));
    };
    Sealer::kept_in(dir).map_err(Failure::from)
}
