//! The virtual environment `.venv` of a project: paths in it, and the command that installs a
//! package into it.
//!
//! The builds of C and Python can use compilers that PyPI distributes as packages (Zig,
//! componentize-py). They first look for one at the path that [`program`] returns. If there is
//! none, they search `PATH`. If that has none either, the error's hint is made by [`hint`], with a
//! shell command that creates the environment and installs the package; folders are quoted for the
//! shell. An environment is suggested because pip refuses to install into a Python whose packages
//! the system manages.

use std::path::{Path, PathBuf};

/// Returns the path of one of its programs.
pub(crate) fn program(folder: &Path, name: &str) -> PathBuf {
    let folder = if folder == Path::new(".") { Path::new("") } else { folder };
    folder.join(".venv/bin").join(name)
}

/// Returns a shell command that creates it and installs a package into it.
pub(crate) fn install(folder: &Path, package: &str) -> String {
    let pip = program(folder, "pip");
    let place = pip.ancestors().nth(2).unwrap_or(folder);
    format!("python3 -m venv {} && {} install {package}", quoted(place), quoted(&pip))
}

/// Returns the hint for a missing package.
pub(crate) fn hint(what: &str, folder: &Path, package: &str) -> String {
    format!(
        "install {what} with `{}` (Debian has venv in the package python3-venv)",
        install(folder, package)
    )
}

fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    // A path has no character U+0000, the only one that cannot be quoted.
    shlex::try_quote(&path).map_or_else(|_| path.to_string(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn install_command_quotes_any_folder_for_a_shell() {
        for (folder, expected) in [
            (".", "python3 -m venv .venv && .venv/bin/pip install a==1"),
            ("greeter", "python3 -m venv greeter/.venv && greeter/.venv/bin/pip install a==1"),
            (
                "my tools/greeter",
                "python3 -m venv 'my tools/greeter/.venv' && 'my tools/greeter/.venv/bin/pip' install a==1",
            ),
        ] {
            assert_eq!(install(Path::new(folder), "a==1"), expected);
        }
    }
}
