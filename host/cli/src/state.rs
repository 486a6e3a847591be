//! What the commands of a user share: the key that seals states between the call that asks and the call that answers, and
//! the counts of granted directories.
//!
//! In: `--state-dir`, or what the environment says. Out: a [`Sealer`], the same for every call of this user; a place.
//! Not here: how the key is kept safe ([`Sealer::kept_in`]).

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use toolcell::Sealer;

use crate::env;
use crate::failure::Failure;

/// The directory below the state directory.
const COUNTS: &str = "directories";

/// Where commands share the counts of granted directories; none without a state directory.
pub(crate) fn counts(dir: Option<&Path>) -> Option<PathBuf> {
    dir.map(Path::to_owned).or_else(env::state_dir).map(|state| state.join(COUNTS))
}

/// The user's sealer, with its key made when there is none.
pub(crate) fn sealer(dir: Option<&Path>) -> Result<Sealer, Failure> {
    let Some(dir) = dir.map(Path::to_owned).or_else(env::state_dir) else {
        return Err(Failure::file(
            anyhow!("no place for the key that seals questions: neither `XDG_STATE_HOME` nor `HOME` is set"),
            "name a directory with `--state-dir DIR`",
        ));
    };
    Sealer::kept_in(dir).map_err(Failure::from)
}
