//! What the command says of itself.

use std::process::Command;

use crate::typed::{check, command, typed};

#[test]
fn help() {
    for (name, words) in [
        ("help", &["--help"][..]),
        ("help_short", &["-h"]),
        ("help_run", &["run", "--help"]),
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

#[test]
fn nothing_typed() {
    let output = Command::new(command().get_program()).output().expect("the binary runs");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{stderr}");
    assert!(stderr.contains("Usage: toolcell") && stderr.ends_with("hint: `toolcell --help` shows what there is\n"));
}

#[test]
fn completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let shown = typed(&["completions", shell]);
        assert_eq!((shown.status, shown.stderr.as_str()), (0, ""), "{shell}");
        for word in ["inspect", "completions", "timeout", "cache-dir", "batch", "on-tool-error"] {
            assert!(shown.stdout.contains(word), "{shell}: no `{word}`");
        }
    }
    assert_eq!(typed(&["completions", "cmd"]).status, 2);
}
