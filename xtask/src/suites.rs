//! Public test suites from a folder: how much of them is answered as they say.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell::{cargo, root};

/// Runs them. The arguments are the folder, and `--verbose` to print each case that is not right.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    ensure!(!arguments.is_empty(), "name the folder of the suites: cargo xtask suites DIR");
    cargo(root(), &["build", "--workspace", "--locked", "--example", "suites"])?;
    let own = std::env::current_exe().context("where am I?")?;
    let program = own
        .with_file_name("examples")
        .join("suites")
        .with_extension(std::env::consts::EXE_EXTENSION);
    let status = Command::new(program).args(arguments).status().context("the suites do not run")?;
    ensure!(status.success(), "the suites ended with {status}");
    Ok(())
}
