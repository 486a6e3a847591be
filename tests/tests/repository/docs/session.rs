//! Runs sessions: each `$ command` of a `console` block must print the lines that follow it, on
//! both outputs.
//!
//! A line that is `…` matches any lines, and `…` within a line any text. `$ cd` holds until the end
//! of the page. The commands of a page below `docs/` run in a new folder with the example tools,
//! where its configurations (`# toolcell.toml`) are saved in order; those of any other page run in
//! the repository itself. Commands that build or make keys are parsed and not run.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use toolcell_test_guests::{fits, rows};

use super::code::CONFIGURATION;
use super::{Block, Page, blocks, copy_examples, root, shell, write_private};

/// Commands that run on a page below `docs/`, beside `toolcell`: they change nothing outside of the
/// folder.
const HARMLESS: [&str; 4] = ["cat ", "printf ", "ls ", "(umask "];

/// The folders of a page.
struct Place {
    dir: PathBuf,
    state: TempDir,
    /// The page's own folder, if it has one.
    own: Option<TempDir>,
}

impl Place {
    fn new(page: &Page) -> Self {
        let state = tempfile::tempdir().expect("a folder");
        if !page.path.starts_with("docs") {
            return Self { dir: root().to_owned(), state, own: None };
        }
        let own = tempfile::tempdir().expect("a folder");
        copy_examples(own.path());
        Self { dir: own.path().to_owned(), state, own: Some(own) }
    }

    fn runs(&self, command: &str) -> bool {
        let harmless = || HARMLESS.iter().any(|start| command.starts_with(start));
        command.starts_with("toolcell ") || (self.own.is_some() && harmless())
    }
}

/// Returns the commands of a session, each with the lines that follow it.
fn commands<'a>(block: &Block<'a>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in &block.lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command, Vec::new())),
            (None, Some((_, output))) => output.push(line.trim_end()),
            (None, None) => panic!("a session starts with `$ `, not with `{line}`"),
        }
    }
    commands
}

/// Returns standard output and standard error of a command, mixed as on a terminal.
fn printed(command: &str, dir: &Path, state: &Path) -> String {
    let output = shell(&format!("exec 2>&1\n{command}"), dir, state).output().expect("a shell");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns lines of a page's sessions that the commands do not print.
pub(super) fn untrue(page: &Page) -> Vec<String> {
    let blocks = blocks(&page.text);
    if !blocks.iter().any(|block| block.info == "console") {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let mut place = Place::new(page);
    for block in &blocks {
        if place.own.is_some() && block.lines.first() == Some(&CONFIGURATION) {
            write_private(&place.dir, "toolcell.toml", block.lines.join("\n") + "\n");
        }
        if block.info != "console" {
            continue;
        }
        for (command, expected) in commands(block) {
            if let Some(to) = command.strip_prefix("cd ") {
                // A page with its own folder stays there.
                if place.own.is_none() {
                    place.dir.push(to.trim());
                }
            } else if place.runs(command) {
                let output = printed(command, &place.dir, place.state.path());
                let seen: Vec<_> = output.trim_end().lines().map(str::trim_end).collect();
                if !fits(&expected, &seen) {
                    let (expected, seen) = (expected.join("\n"), seen.join("\n"));
                    complaints.push(format!(
                        "$ {command}\n-- in the page\n{expected}\n-- printed\n{seen}"
                    ));
                }
            } else if !Command::new("sh")
                .args(["-n", "-c", command])
                .output()
                .expect("a shell")
                .status
                .success()
            {
                complaints.push(format!("the shell cannot parse `{command}`"));
            }
        }
    }
    complaints
}

#[test]
fn ellipsis_matches_any_lines_or_text() {
    let table = rows::<(&str, &str, bool)>("repository/docs", "ellipsis_matches_any_lines_or_text");
    for (expected, printed, fitting) in table {
        let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
        assert_eq!(fits(&lines(expected), &lines(printed)), fitting, "{expected}");
    }
}
