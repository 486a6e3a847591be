//! Generates the command reference: the help of every command, as the command prints it.

use std::fmt::Write as _;
use std::fs;

use super::{root, shell};

const PAGE: &str = "docs/commands.md";
const HEADER: &str = "\
# Commands

This page is generated from `toolcell --help` and the help of each command. To update it, run
`UPDATE=1 cargo test --workspace --test repository command_reference`.
";

/// Returns the help of a command.
pub(super) fn help(command: &str) -> String {
    let state = tempfile::tempdir().expect("a folder");
    let output = shell(&format!("toolcell {command} --help"), root(), state.path())
        .output()
        .expect("a shell");
    assert!(output.status.success(), "toolcell {command} --help");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the subcommands that the help of a command lists.
pub(super) fn names(command: &str) -> Vec<String> {
    let help = help(command);
    let Some((_, commands)) = help.split_once("Commands:\n") else { return Vec::new() };
    let lines = commands.lines().take_while(|line| !line.trim().is_empty());
    // A line with more indentation continues the one above.
    let begins =
        lines.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    begins.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns all commands, each followed by its subcommands.
pub(super) fn commands(above: &str) -> Vec<String> {
    let names = names(above).into_iter().filter(|name| name != "help");
    let below = names.flat_map(|name| commands(format!("{above} {name}").trim()));
    [above.to_owned()].into_iter().chain(below).collect()
}

fn page() -> String {
    let mut page = HEADER.to_owned();
    for command in commands("") {
        let title = format!("toolcell {command}");
        let help: Vec<_> = help(&command).lines().map(|line| line.trim_end().to_owned()).collect();
        write!(page, "\n## {}\n\n```text\n{}\n```\n", title.trim(), help.join("\n").trim_end())
            .expect("a string");
    }
    page
}

/// Compares the page with the help texts, or writes it if `UPDATE` is set.
pub(super) fn check() {
    let path = root().join(PAGE);
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).expect("the page is written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(page.lines()).find(|(written, printed)| written != printed);
    assert!(
        written == page,
        "{PAGE} is not what the commands print, first at {differs:?}: \
         `UPDATE=1 cargo test --workspace --test repository command_reference` writes it"
    );
}
