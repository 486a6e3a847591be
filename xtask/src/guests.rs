//! Builds Rust guests: runs cargo inside of cargo.
//!
//! In: a workspace of guests. Out: the paths of its components.
//! Invariants: no environment variable of the outer cargo reaches the inner one, whose target and
//! flags are its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// The target whose output is a component.
pub const COMPONENT_TARGET: &str = "wasm32-wasip2";
/// The target whose output is a core module without imports, to be wrapped.
pub const BARE_TARGET: &str = "wasm32-unknown-unknown";

/// Returns the folder of the compiler's own libraries, `lib/rustlib` of its toolchain.
///
/// # Errors
/// Fails if the compiler does not run.
pub fn rustlib() -> Result<PathBuf> {
    let sysroot = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .context("rustc does not run")?;
    let sysroot = String::from_utf8(sysroot.stdout).context("rustc's sysroot")?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib"))
}

/// Installs the standard library for `target` with rustup if it is missing.
///
/// # Errors
/// Fails if that fails, with the command that a person can run.
pub fn ensure_target(target: &str) -> Result<()> {
    if rustlib()?.join(target).join("lib").is_dir() {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", target]).status();
    ensure!(
        added.is_ok_and(|status| status.success()),
        "hint: install the target: rustup target add {target}"
    );
    Ok(())
}

/// Builds packages of a workspace in release mode, all if none is named, into the workspace's own
/// `target` directory, where a build by hand puts them too. Progress goes to standard error.
///
/// # Errors
/// Fails if cargo fails.
pub fn build(workspace: &Path, packages: &[&str], target: &str) -> Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_outer_cargo(name)) {
        cargo.env_remove(name);
    }
    cargo
        .current_dir(workspace)
        .args(["build", "--release", "--locked", "--target", target, "--target-dir", "target"])
        .args(packages.iter().flat_map(|package| ["-p", package]));
    let status =
        cargo.status().with_context(|| format!("cargo does not run in {}", workspace.display()))?;
    if !status.success() {
        bail!("the guests in {} do not build: {status}", workspace.display());
    }
    Ok(())
}

/// Returns every `.wasm` file of the release directory, sorted by name.
///
/// # Errors
/// Fails if the directory cannot be read.
pub fn built(workspace: &Path, target: &str) -> Result<Vec<PathBuf>> {
    let release = workspace.join("target").join(target).join("release");
    let entries = std::fs::read_dir(&release)
        .with_context(|| format!("nothing was built in {}", release.display()))?;
    let mut components: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension() == Some(OsStr::new("wasm")))
        .collect();
    components.sort();
    Ok(components)
}

/// Returns true for variables by which an outer cargo would influence an inner one.
fn is_of_outer_cargo(name: &OsStr) -> bool {
    const EXACT: [&str; 14] = [
        "RUSTC",
        "RUSTDOC",
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_LINKER",
        "TARGET",
        "HOST",
        "OUT_DIR",
        "NUM_JOBS",
        "OPT_LEVEL",
        "PROFILE",
        "DEBUG",
    ];
    let Some(name) = name.to_str() else { return false };
    let is_cargo = name.starts_with("CARGO_") && name != "CARGO_HOME";
    is_cargo || name.starts_with("DEP_") || EXACT.contains(&name)
}
