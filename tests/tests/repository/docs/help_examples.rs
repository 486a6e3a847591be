//! Checks that the examples in the help of the commands work with the example tools.
//!
//! An example that names a component is run: if it names a file, in a folder that has only the
//! example tools, otherwise in a folder with a configuration. Of every other example the options
//! are parsed.

use tempfile::TempDir;
use toolcell_test_guests::rows;

use super::{commands, copy_examples, shell, write_private};

/// Commands that call, show or check the tools of a component, and change nothing outside the
/// folder.
const RUN: [&str; 8] = ["run", "batch", "inspect", "list", "tools", "learn", "explain", "check"];
/// Examples that name no component, because it is built or configured: only their options are
/// parsed.
const PARSED: [&str; 1] = ["toolcell run"];

/// The tables of files in the two folders.
const BARE: [&str; 1] = ["files_of_help_examples"];
const CONFIGURED: [&str; 2] = ["files_of_help_examples", "configurations_of_help_examples"];

/// Returns the lines below `Example:` and `Examples:`, without the remarks beside them.
fn examples(help: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = help.lines();
    while let Some(line) = lines.next() {
        if ["Example:", "Examples:"].contains(&line.trim()) {
            let block = lines.by_ref().take_while(|line| !line.trim().is_empty());
            // A long remark continues on the next line.
            let block = block
                .map(str::trim)
                .filter(|line| line.starts_with("toolcell") || line.contains("| toolcell"));
            found.extend(block.map(|line| line.split("   ").next().unwrap_or_default().to_owned()));
        }
    }
    found
}

fn place(tables: &[&str]) -> (TempDir, TempDir) {
    let place = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    copy_examples(place.0.path());
    let files = tables.iter().flat_map(|table| rows::<(&str, &str)>("repository/docs", table));
    files.for_each(|(name, text)| write_private(place.0.path(), name, text));
    place
}

/// Returns the fault of an example, if any.
fn check_example(
    example: &str,
    bare: &(TempDir, TempDir),
    configured: &(TempDir, TempDir),
) -> Option<String> {
    // After the pipe comes another program.
    let line = example.split(" | jq").next().unwrap_or_default();
    let (_, words) = line.split_once("toolcell ").unwrap_or(("", line));
    let mut words = words.split_whitespace();
    let command = words.next().unwrap_or_default();
    let named = words.next().unwrap_or_default();
    let typed = |line: &str, place: &(TempDir, TempDir)| {
        let output = shell(line, place.0.path(), place.1.path()).output().expect("a shell");
        (output.status.code(), format!("`{line}`: {}", String::from_utf8_lossy(&output.stderr)))
    };
    if !RUN.contains(&command) || PARSED.contains(&line) {
        let line = line.split(" > ").next().unwrap_or_default();
        let (status, told) = typed(&format!("{line} --help"), configured);
        return (status != Some(0)).then_some(told);
    }
    let place = if named.ends_with(".wasm") { bare } else { configured };
    let (status, told) = typed(line, place);
    let endings = rows::<(&str, i32)>("repository/docs", "endings_of_help_examples");
    let ending = endings.iter().find(|(start, _)| example.starts_with(start));
    let expected = ending.map_or(0, |(_, status)| *status);
    (status != Some(expected)).then(|| format!("{status:?}, not {expected}: {told}"))
}

#[test]
fn every_help_example_works() {
    let (bare, configured) = (place(&BARE), place(&CONFIGURED));
    let commands = commands::commands("");
    let all: Vec<_> =
        commands.iter().flat_map(|command| examples(&commands::help(command))).collect();
    assert!(all.len() > 50, "{all:?}");
    let complaints: Vec<_> =
        all.iter().filter_map(|example| check_example(example, &bare, &configured)).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(check_example("toolcell learn notes.wasm text=milk", &bare, &configured).is_some());
    assert!(check_example("toolcell serve --listening", &bare, &configured).is_some());
}
