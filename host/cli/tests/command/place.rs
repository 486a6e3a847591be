//! A directory with a configuration, components and data, and a user who works in it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use toolcell_test_guests::{COMPONENTS, asker};

use crate::typed::{CommandResult, command};

/// The needs that `asks` declares in some of these tests.
pub(crate) const NEEDS: &[[&str; 3]] = &[
    ["secret", "token", "to sign in"],
    ["reveal", "key", "to sign"],
    ["http", "GET https://api.example.com", "to ask"],
];

/// The warning about a call without a tenant, if the configuration defines tenants.
pub(crate) const WITHOUT_TENANT: &str = "warning: `toolcell.toml` defines tenants, and `--tenant` is not given: the full grants of the component apply\n";

/// The program that a project `greeter` in Python is built with.
pub(crate) const COMPONENTIZE_PY: &str = "greeter/.venv/bin/componentize-py";

/// Time limit for something to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Repeats the check until it returns a value. Panics after [`PATIENCE`].
pub(crate) fn eventually<T>(look: impl FnMut() -> Option<T>) -> T {
    in_time(look).expect("it comes about")
}

/// Repeats the check until it returns a value. None after [`PATIENCE`].
pub(crate) fn in_time<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if let Some(seen) = look() {
            return Some(seen);
        }
        std::thread::yield_now();
    }
    None
}

/// Returns the version of `componentize-py` that a build expects.
pub(crate) fn componentize_py() -> &'static str {
    let versions = include_str!("../../../../tests/languages/requirements.txt");
    versions.lines().find_map(|line| line.strip_prefix("componentize-py==")).expect("a version")
}

/// A directory with a configuration, components and data.
pub(crate) struct Place {
    dir: TempDir,
    state: TempDir,
}

impl Place {
    /// Returns a place with this configuration and the examples whose files it names.
    pub(crate) fn new(config: &str) -> Self {
        let tempdir = || tempfile::tempdir().expect("a place");
        let place = Self { dir: tempdir(), state: tempdir() };
        for folder in ["data/deep", "other", "home/.ssh"] {
            fs::create_dir_all(place.path().join(folder)).expect("a place");
        }
        for (name, component) in COMPONENTS {
            let file = format!("{name}.wasm");
            if *name == "hello" || config.contains(&file) {
                fs::copy(component, place.path().join(file)).expect("a place");
            }
        }
        fs::write(place.path().join("asks.wasm"), asker(&[])).expect("a place");
        fs::write(place.path().join("declares.wasm"), asker(NEEDS)).expect("a place");
        for (file, mode) in [("token", 0o600), ("open", 0o644)] {
            fs::write(place.path().join(file), "a-secret-value\n").expect("a place");
            fs::set_permissions(place.path().join(file), fs::Permissions::from_mode(mode))
                .expect("a place");
        }
        symlink("/etc", place.path().join("link")).expect("a place");
        symlink("data", place.path().join("data_link")).expect("a place");
        place.write(config);
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Replaces the configuration.
    pub(crate) fn write(&self, config: &str) {
        self.replace("toolcell.toml", config);
    }

    /// Creates or replaces a file in one step: a server that watches the file never reads it half
    /// written. A file that exists keeps its mode.
    pub(crate) fn replace(&self, name: &str, contents: impl AsRef<[u8]>) {
        let (path, new) = (self.path().join(name), self.path().join("replacement"));
        let mode = fs::metadata(&path).map_or(0o644, |file| file.permissions().mode());
        fs::write(&new, contents).expect("a place");
        fs::set_permissions(&new, fs::Permissions::from_mode(mode)).expect("a place");
        fs::rename(new, path).expect("a place");
    }

    /// Writes a script that can be run as a program.
    pub(crate) fn write_program(&self, name: &str, script: &str) {
        let program = self.path().join(name);
        fs::create_dir_all(program.parent().expect("a folder")).expect("a folder");
        fs::write(&program, script).expect("a file");
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("a program");
    }

    /// Approves everything in the place.
    pub(crate) fn approve(&self) {
        let shown = self.typed(&["approve", "--yes"]);
        assert_eq!(shown.status, 0, "{shown}");
    }

    /// Returns the place after everything in it is approved.
    pub(crate) fn approved(self) -> Self {
        self.approve();
        self
    }

    /// Makes a key of a tenant.
    pub(crate) fn key(&self, tenant: &str) -> String {
        let made = self.typed(&["tenant", "add-key", tenant, "--json"]).json();
        made["key"].as_str().expect("a key").to_owned()
    }

    /// Returns the command in the place, for a user with a state directory of their own.
    pub(crate) fn command(&self) -> Command {
        let mut command = command();
        command
            .current_dir(self.path())
            .env("HOME", self.path().join("home"))
            .env("TOKEN", "from-the-environment");
        command.env("XDG_STATE_HOME", self.state());
        command
    }

    /// Returns the user's state directory.
    pub(crate) fn state(&self) -> &Path {
        self.state.path()
    }

    /// Runs the command with these words in the place.
    pub(crate) fn typed(&self, words: &[&str]) -> CommandResult {
        self.shown(self.command().args(words))
    }

    /// Runs a command that was made by [`command`](Self::command).
    pub(crate) fn shown(&self, command: &mut Command) -> CommandResult {
        let output = command.stdin(Stdio::null()).output().expect("the binary runs");
        let text = |bytes| {
            let text = String::from_utf8(bytes)
                .expect("UTF-8")
                .replace(env!("CARGO_BIN_EXE_toolcell"), "toolcell");
            text.replace(self.path().to_str().expect("a place"), "HERE")
        };
        CommandResult {
            status: output.status.code().expect("no signal"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}
