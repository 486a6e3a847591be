//! Formatting, lints, documentation, packages, dependencies.

use std::process::Command;

use anyhow::Result;
use xtask::guests::{BARE_TARGET, COMPONENT_TARGET, ensure_target};

use crate::package;
use crate::shell::{cargo, guest_workspaces, root};

/// Checks them all.
pub(crate) fn run() -> Result<()> {
    ensure_target(COMPONENT_TARGET)?;
    ensure_target(BARE_TARGET)?;
    for folder in [root().to_owned()].into_iter().chain(guest_workspaces()) {
        cargo(&folder, &["fmt", "--check"])?;
    }
    if Command::new("cargo-deny").arg("--version").output().is_err() {
        // Used for a few seconds: built without optimisation, which takes a fraction of the time.
        cargo(root(), &["install", "cargo-deny", "--version", "^0.20", "--locked", "--debug"])?;
    }
    cargo(root(), &["deny", "check", "bans", "licenses", "sources"])?;
    cargo(root(), &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    // The crates also build without what an embedder can leave out.
    cargo(
        root(),
        &["clippy", "--workspace", "--no-default-features", "--locked", "--", "-D", "warnings"],
    )?;
    // Warnings are errors here too, by the workspace's lints. Clippy has looked at the dependencies
    // already: it takes seconds.
    cargo(root(), &["doc", "--workspace", "--no-deps", "--locked"])?;
    // After clippy, which has checked the dependencies already.
    package::run()?;
    for folder in guest_workspaces() {
        cargo(&folder, &["clippy", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    }
    Ok(())
}
