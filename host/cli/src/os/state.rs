//! Finds the state directory, which a user's commands share, and the key in it that seals states.
//!
//! A tool that asks a question leaves a state, which the host seals (encrypts and authenticates)
//! for the caller. A later command must open it with the same key. [`sealer`] returns the
//! [`Sealer`] of this user, and creates its key if there is none. The directory is the one of
//! `--state-dir`, or the user's own ([`dir`]); without either, sealing is an error with a hint.
//! [`create_state_dir`] creates the directory and checks that it can be written to.
//!
//! Not here: the protection of the key file, in [`Sealer::from_directory`].

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use rustix::fs::{Access, access};
use toolcell::Sealer;

use super::env;
use crate::print::{Failure, Result};

/// Returns the state directory: the typed one, or the user's own.
pub(crate) fn dir(typed: Option<&Path>) -> Option<PathBuf> {
    typed.map(Path::to_owned).or_else(env::state_dir)
}

/// Creates the state directory if it is missing, and checks that files can be written there.
///
/// # Errors
/// It cannot be created, is not a directory, or cannot be written to.
pub(crate) fn create_state_dir(dir: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    let writable = made.and_then(|()| Ok(access(dir, Access::WRITE_OK | Access::EXEC_OK)?));
    writable.map_err(|error| {
        let error = anyhow!(error)
            .context(format!("the state directory `{}` cannot be used", dir.display()));
        Failure::file(error, "name a directory that you can write to: `--state-dir DIR`")
    })
}

/// Returns the user's sealer; creates its key if there is none.
pub(crate) fn sealer(typed: Option<&Path>) -> Result<Sealer> {
    let Some(dir) = dir(typed) else {
        let message =
            "no place for the key that seals questions: neither `XDG_STATE_HOME` nor `HOME` is set";
        return Err(Failure::file(anyhow!(message), "name a directory with `--state-dir DIR`"));
    };
    Sealer::from_directory(dir).map_err(Failure::from)
}
