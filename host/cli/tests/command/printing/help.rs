//! Help, version and shell completion.

use std::fs;
use std::process::Command;

use toolcell_test_guests::rows;

use crate::place::Place;
use crate::typed::{check, command, typed};

#[test]
fn help_pages_match_snapshots() {
    for (name, words) in [
        ("help", &["--help"][..]),
        ("help_short", &["-h"]),
        ("help_run", &["run", "--help"]),
        ("help_run_short", &["run", "-h"]),
        ("help_completions", &["completions", "--help"]),
        ("help_inspect", &["inspect", "--help"]),
        ("help_list", &["list", "--help"]),
        ("help_batch", &["batch", "--help"]),
        ("help_tools", &["tools", "--help"]),
        ("help_approve", &["approve", "--help"]),
        ("version", &["--version"]),
    ] {
        let shown = typed(words);
        assert_eq!((shown.status, shown.stderr.as_str()), (0, ""), "{shown}");
        check(name, &shown);
    }
}

/// Queries of the shell's script and the answers: commands, options, components and tools.
#[test]
fn names_are_completed() {
    let config =
        "[components.desk]\npath = \"desk.wasm\"\n[components.hello]\npath = \"hello.wasm\"\n";
    let place = Place::new(config).approved();
    let completed = |words: &[&str]| {
        let mut command = Command::new(command().get_program());
        command.env_clear().current_dir(place.path()).env("XDG_STATE_HOME", place.state());
        command.env("TOOLCELL_COMPLETE", "fish").args(["--", "toolcell"]).args(words);
        let shown = place.shown(&mut command);
        assert_eq!((shown.status, shown.stderr.as_str()), (0, ""), "{shown}");
        let names =
            shown.stdout.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned());
        names.collect::<Vec<_>>()
    };
    for (words, expected) in rows::<(Vec<&str>, &str)>("help", "names_are_completed") {
        let names = completed(&words);
        assert!(names.iter().any(|name| name == expected), "{words:?}: {names:?}");
    }
    place.write("nonsense");
    assert!(
        !completed(&["run", "desk", "book"]).iter().any(|name| name == "book_table"),
        "an unusable configuration"
    );
}

/// A name of a file could be code for the shell that completes it.
#[test]
fn bash_quotes_completed_file_names() {
    let place = Place::new("");
    let complete = r#"toolcell() { "$0" "$@"; }
compopt() { echo "$2"; }
eval "$(toolcell completions bash)"
COMP_WORDS=(toolcell list "$1") COMP_CWORD=2
_clap_complete_toolcell toolcell "$1" list
printf '%s\n' "${COMPREPLY[@]}""#;
    for (file, quotes) in
        [("plain-1.wasm", ""), ("a$(id).wasm", "filenames\n"), ("b c.wasm", "filenames\n")]
    {
        fs::write(place.path().join(file), "").expect("a place");
        let mut bash = Command::new("bash");
        bash.current_dir(place.path()).env("XDG_STATE_HOME", place.state());
        let program = command().get_program().to_owned();
        bash.args(["--norc", "-c", complete]).arg(program).arg(&file[..2]);
        let shown = place.shown(&mut bash);
        assert_eq!(shown.stdout, format!("nospace\n{quotes}{file}\n"), "{shown}");
    }
}

/// `-h` fits on a screen: no examples, no lists, and each option in one line.
#[test]
fn short_help_fits_one_screen() {
    for words in [&["-h"][..], &["run", "-h"], &["batch", "-h"], &["tools", "-h"], &["list", "-h"]]
    {
        let (short, whole) =
            (typed(words), typed(&[&words[..words.len() - 1], &["--help"]].concat()));
        let (short, whole) = (short.stdout.lines().count(), whole.stdout.lines().count());
        assert!(short <= 45 && short < whole, "{words:?}: {short} lines of {whole}");
    }
}
