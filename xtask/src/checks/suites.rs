//! Runs public test suites from a folder, and shows the part of them that is answered as they
//! expect.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell::{cargo, root};

/// Runs the suites. The arguments are the folder, and `--verbose` to print each case that fails.
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
