//! Builds a Rust project with the cargo that is installed on the machine.
//!
//! [`build`] takes the folder of a crate, runs `cargo build --release --target wasm32-wasip2`, and
//! returns the bytes of the component that cargo made. Before that it checks that the toolchain has
//! the target's standard library and, if the crate uses the guest SDK, that rustc is new enough;
//! each error has a hint with the command that helps. The compiler's messages go straight to
//! standard error. A crate that is not a `cdylib` makes no component, which is an error.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{fs, io};

use serde::Deserialize;

use super::native;
use crate::{Error, Result};

const TARGET: &str = "wasm32-wasip2";
/// The name of the guest SDK's crate.
const GUEST: &str = "toolcell-guest";
/// The minimum Rust version of the guest SDK, which is that of this crate.
const NEEDED: &str = env!("CARGO_PKG_RUST_VERSION");

/// The members of cargo's messages that are used.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// Builds the crate in this folder, and returns its component.
pub(crate) fn build(folder: &Path) -> Result<Vec<u8>> {
    is_new_enough(folder)?;
    has_target(folder)?;
    let mut cargo = native::command("cargo");
    cargo.current_dir(folder).args(["build", "--release", "--target", TARGET]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    // cargo's diagnostics go to its standard error, which is inherited.
    let done = cargo
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| missing(&error))?;
    if !done.status.success() {
        let hint = "correct what cargo reports above";
        return Err(Error::source("cargo could not build the crate", hint));
    }
    let messages = String::from_utf8_lossy(&done.stdout);
    let files = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let mut artifacts = files
        .filter(|message| message.reason == "compiler-artifact")
        .flat_map(|message| message.filenames);
    let Some(component) = artifacts.rfind(|path| path.extension() == Some(OsStr::new("wasm")))
    else {
        let hint = "add `[lib]` with `crate-type = [\"cdylib\"]` to its `Cargo.toml`";
        return Err(Error::source("the crate has no component: it is not a `cdylib`", hint));
    };
    fs::read(&component).map_err(Error::file("read", &component))
}

/// Returns the standard output of rustc. It runs in the folder, whose `rust-toolchain.toml` can
/// select another toolchain.
fn rustc(folder: &Path, arguments: &[&str]) -> Result<String> {
    let answer = native::command("rustc").current_dir(folder).args(arguments).output();
    let answer = answer.map_err(|error| missing(&error))?;
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
}

/// Returns an error if the crate uses the guest SDK and rustc is too old for it.
fn is_new_enough(folder: &Path) -> Result<()> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    if !manifest.contains(GUEST) {
        return Ok(());
    }
    let answer = rustc(folder, &["--version"])?;
    let Some(version) =
        answer.strip_prefix("rustc ").and_then(|rest| rest.split_whitespace().next())
    else {
        return Ok(());
    };
    match (release(version), release(NEEDED)) {
        (Some(found), Some(needed)) if found < needed => {
            let message =
                format!("rustc {version} is installed, and {GUEST} needs {NEEDED} or later");
            let hint = "update it with `rustup update`, unless a `rust-toolchain.toml` of the project names this version";
            Err(Error::toolchain(message, hint))
        }
        _ => Ok(()),
    }
}

/// Returns the first two numbers of a version.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Returns an error if rustc cannot build for the target.
fn has_target(folder: &Path) -> Result<()> {
    let sysroot = rustc(folder, &["--print", "sysroot"])?;
    if Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("lib").is_dir() {
        return Ok(());
    }
    let message = format!("the Rust toolchain has no standard library for {TARGET}");
    Err(Error::toolchain(message, format!("install it with `rustup target add {TARGET}`")))
}

fn missing(error: &io::Error) -> Error {
    let hint = "install Rust with rustup (https://rustup.rs), or make a JavaScript tool, which needs no toolchain";
    Error::toolchain(format!("cargo or rustc cannot be started: {error}"), hint)
}
