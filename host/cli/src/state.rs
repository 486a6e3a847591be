//! What stays between the call that asks and the call that answers: the key that seals states.
//!
//! In: `--state-dir`, or what the environment says. Out: a [`Sealer`], the same for every call of this user.
//! Not here: how the key is kept safe ([`Sealer::kept_in`]).

use std::path::Path;

use anyhow::anyhow;
use toolcell::Sealer;

use crate::env;
use crate::failure::Failure;

/// The user's sealer, with its key made when there is none.
pub(crate) fn sealer(dir: Option<&Path>) -> Result<Sealer, Failure> {
    let Some(dir) = dir.map(Path::to_owned).or_else(env::state_dir) else {
        return Err(Failure::file(
            anyhow!("no place for the key that seals questions: neither `XDG_STATE_HOME` nor `HOME` is set"),
            "say where with `--state-dir DIR`",
        ));
    };
    Sealer::kept_in(dir).map_err(Failure::from)
}
