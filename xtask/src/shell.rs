//! Runs commands in the repository; the only place that prints.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Returns the root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Returns the workspaces of guests, which are not part of the main one.
pub(crate) fn guest_workspaces() -> [PathBuf; 2] {
    [root().join("example-tools"), root().join("tests/guests/rust")]
}

/// Runs cargo in a folder with its output shown, and fails if it fails.
pub(crate) fn cargo(folder: &Path, arguments: &[&str]) -> Result<()> {
    print(&format!("$ cargo {}\n", arguments.join(" ")));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Variables of the outer cargo about this package: dependencies that read them would be rebuilt
    // at each `cargo test` after `cargo xtask test`.
    let own =
        |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|own| name.starts_with(own));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
        cargo.env_remove(name);
    }
    let status =
        cargo.current_dir(folder).args(arguments).status().context("cargo does not run")?;
    ensure!(
        status.success(),
        "`cargo {}` in {} ended with {status}",
        arguments.join(" "),
        folder.display()
    );
    Ok(())
}

/// Prints and flushes at once, so that the text stands before the output of the next child.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // If the reader is gone, the work goes on, as with any command whose output is closed.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints to standard error.
pub(crate) fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
