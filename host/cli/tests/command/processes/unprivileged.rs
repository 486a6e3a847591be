//! A user without privileges: no home directory, no writable directory, and a full disk.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use toolcell_test_guests::example;

use crate::place::Place;
use crate::typed::CommandResult;

const GREET: [&str; 4] = ["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#];

/// Returns a directory that the user can read but not write, with components and a directory for
/// temporary files.
fn place() -> Place {
    let place = Place::new("");
    fs::remove_file(place.path().join("toolcell.toml")).expect("it is there");
    for name in ["notes", "clerk"] {
        fs::copy(example(name), place.path().join(format!("{name}.wasm"))).expect("a place");
    }
    fs::create_dir(place.path().join("temp")).expect("a place");
    place
}

/// Runs a command without privileges. Its environment has a directory for temporary files and these
/// variables.
fn typed(place: &Place, environment: &[(&str, &Path)], words: &[&str]) -> CommandResult {
    let change = |mode| {
        for dir in [place.path().join("home"), place.path().to_owned()] {
            fs::set_permissions(dir, Permissions::from_mode(mode)).expect("a place");
        }
    };
    change(0o555);
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcell"));
    command.env_clear().envs(toolcell::controls::inherited()).current_dir(place.path());
    command.env("TMPDIR", place.path().join("temp")).envs(environment.iter().copied()).args(words);
    // Capabilities belong to a thread, and the processes that it starts inherit them.
    let started =
        thread::scope(|scope| scope.spawn(|| place.shown(unprivileged(&mut command))).join());
    change(0o755);
    started.expect("the command runs")
}

/// Drops the capabilities with which root ignores permissions. With `no_new_privs`, a program that
/// root starts does not regain them.
fn unprivileged(command: &mut Command) -> &mut Command {
    let none = CapabilitySet::empty();
    set_no_new_privs(true).expect("Linux 3.5 or newer");
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .expect("fewer");
    command
}

#[test]
fn call_without_storage_works_without_home() {
    let place = place();
    let shown = typed(&place, &[], &GREET);
    assert!(shown.status == 0 && shown.stdout.contains("Ada"), "{shown}");
    assert!(shown.stderr.contains("no cache"), "{shown}");
    // A home directory that cannot be written causes a warning, and the call works.
    let shown = typed(&place, &[("HOME", &place.path().join("home"))], &GREET);
    shown.tells(0, "not kept");
    let shown = typed(&place, &[], &["--no-cache", GREET[0], GREET[1], GREET[2], GREET[3]]);
    assert!(shown.status == 0 && shown.stderr.is_empty(), "{shown}");
}

/// Each error names the missing place and the option to set it.
#[test]
fn missing_storage_error_names_place_and_option() {
    let place = place();
    place.write(
        "[components.notes]\npath = \"notes.wasm\"\n[components.notes.grants]\nkv = [\"write notes/*\"]\n\
                   [components.clerk]\npath = \"clerk.wasm\"\n[components.clerk.grants]\n\
                   directories = [{ name = \"/data\", path = \"data\", access = \"write\" }]\n",
    );
    let list = ["run", "notes", "notes", r#"{"action": "list"}"#];
    let look = ["run", "clerk", "clerk", r#"{"steps": [["list", "/data"]]}"#];
    place.approve();
    let config = place.path().join("toolcell.toml").display().to_string();
    let named = |words: &[&str], environment: &[(&str, &Path)]| {
        typed(&place, environment, &[&["--no-cache", "--config", config.as_str()], words].concat())
    };
    let home = place.path().join("home");
    for (words, needle) in [
        (&list, "neither `XDG_STATE_HOME` nor `HOME`"),
        (&look, "cannot record how much of its quota the directory `/data` uses"),
    ] {
        let shown = named(words, &[]);
        assert!(shown.status != 0 && shown.stderr.contains(needle), "{shown}");
        assert!(shown.stderr.contains("--state-dir DIR"), "{shown}");
        let shown = named(words, &[("HOME", &home)]);
        assert!(shown.status != 0 && shown.stderr.contains("Permission denied"), "{shown}");
        assert!(shown.stderr.contains("hint: "), "{shown}");
    }
    // A configuration that was found needs a record, which has no place.
    let shown = typed(&place, &[], &["--no-cache", "approve", "--yes"]);
    assert!(shown.status != 0 && shown.stderr.contains("no place to keep the approval"), "{shown}");
    let shown = typed(&place, &[("HOME", &home)], &["--no-cache", "approve", "--yes"]);
    assert!(
        shown.status != 0 && shown.stderr.contains("cannot open the record of approvals in `"),
        "{shown}"
    );
}

/// The output goes to a full disk.
#[test]
fn full_output_device_is_an_error() {
    let place = place();
    let full = || File::options().write(true).open("/dev/full").expect("a device");
    let status = place
        .command()
        .args(GREET)
        .stdout(full())
        .stderr(full())
        .status()
        .expect("the binary runs");
    assert!(status.code().is_some_and(|code| code != 0), "{status}");
    for words in [&GREET[..], &["--help"], &["run", "--help"], &["--version"]] {
        let output = place.command().args(words).stdout(full()).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let is_told = said.contains("No space left on device");
        assert!(!output.status.success() && is_told, "{words:?}: {said}");
    }
}
