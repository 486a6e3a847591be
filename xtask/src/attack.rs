//! Runs the attack campaign, after building the whole workspace.

use std::process::Command;

use anyhow::{Context as _, Result};
use xtask::guests::{BARE_TARGET, COMPONENT_TARGET, ensure_target};

use crate::shell::{cargo, root};

/// Runs the campaign with these arguments, and returns its exit code.
pub(crate) fn run(arguments: &[&str]) -> Result<u8> {
    ensure_target(COMPONENT_TARGET)?;
    ensure_target(BARE_TARGET)?;
    cargo(root(), &["build", "--workspace", "--locked", "--bin", "attack"])?;
    let own = std::env::current_exe().context("where am I?")?;
    let program = own.with_file_name("attack").with_extension(std::env::consts::EXE_EXTENSION);
    let status =
        Command::new(program).args(arguments).status().context("the campaign does not run")?;
    // Without a code it was killed by a signal.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
