//! Finds the program `toolcell` that was built with the same profile as the benchmark.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

/// Returns the path of the program.
///
/// # Errors
/// Fails if it was not built.
pub fn program() -> Result<PathBuf> {
    // A benchmark is in `deps`, beside the program.
    let own = std::env::current_exe()?;
    let program = own.ancestors().nth(2).context("no folder")?.join("toolcell");
    let hint = "`cargo build --workspace --bin toolcell` with this profile makes it";
    ensure!(program.exists(), "there is no {}: {hint}", program.display());
    Ok(program)
}
