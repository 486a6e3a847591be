//! Checks formatting, lints, documentation, packages and dependencies.

use std::process::Command;

use anyhow::Result;
use xtask::guests::{BARE_TARGET, COMPONENT_TARGET, ensure_target};

use crate::build::package;
use crate::shell::{cargo, guest_workspaces, root};

/// Runs all checks.
pub(crate) fn run() -> Result<()> {
    ensure_target(COMPONENT_TARGET)?;
    ensure_target(BARE_TARGET)?;
    for folder in [root().to_owned()].into_iter().chain(guest_workspaces()) {
        cargo(&folder, &["fmt", "--check"])?;
    }
    if Command::new("cargo-deny").arg("--version").output().is_err() {
        // Runs for a few seconds only: so it is built without optimisation, in a fraction of the
        // time.
        cargo(root(), &["install", "cargo-deny", "--version", "^0.20", "--locked", "--debug"])?;
    }
    cargo(root(), &["deny", "check", "bans", "licenses", "sources"])?;
    cargo(root(), &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    // The crates must also build without their default features.
    cargo(
        root(),
        &["clippy", "--workspace", "--no-default-features", "--locked", "--", "-D", "warnings"],
    )?;
    // Warnings are errors here too, by the workspace's lints. This takes seconds, because clippy
    // has checked the dependencies already.
    cargo(root(), &["doc", "--workspace", "--no-deps", "--locked"])?;
    // Runs after clippy, which has checked the dependencies already.
    package::run()?;
    for folder in guest_workspaces() {
        cargo(&folder, &["clippy", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    }
    Ok(())
}
