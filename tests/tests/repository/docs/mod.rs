//! Checks that the pages are true: commands exist, sessions print what they show, code is part of a
//! compiled file, configurations can be read.
//!
//! A block is checked by the first word of its info string: `console` is a session (`session`),
//! `rust` is part of a file, `toml` must parse, and is a configuration if it starts with `#
//! toolcell.toml` (`code`). `js` must build, `yaml` must parse, and the command must accept the
//! options of its lines in `text` and `yaml`; `text` without such a line must be the output of the
//! block before (`snippets`). `docs/commands.md` is generated (`commands`), the examples in it must
//! work (`help_examples`), and `docs/json` must list what `--json` prints (`json_forms`).

mod code;
mod commands;
mod help_examples;
mod json_forms;
mod session;
mod snippets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolcell_test_guests::rows;

use crate::root;

struct Page {
    path: PathBuf,
    text: String,
}

struct Block<'a> {
    info: &'a str,
    lines: Vec<&'a str>,
}

/// Returns every page that is not part of a crate's documentation, where rustdoc checks the code,
/// nor a session, which the command's tests run.
fn pages() -> Vec<Page> {
    fn walk(folder: &Path, pages: &mut Vec<Page>) {
        for path in
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
        {
            let name = path.file_name().expect("a name").to_string_lossy();
            if path.is_dir()
                && !name.starts_with('.')
                && !["target", "src", "sessions"].contains(&&*name)
            {
                walk(&path, pages);
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).expect("a page");
                pages.push(Page {
                    path: path.strip_prefix(root()).expect("below the root").to_owned(),
                    text,
                });
            }
        }
    }
    let mut pages = Vec::new();
    walk(root(), &mut pages);
    assert!(pages.iter().any(|page| page.path == Path::new("README.md")), "there is no README.md");
    pages
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            blocks.push(Block {
                info,
                lines: lines.by_ref().take_while(|line| line.trim() != "```").collect(),
            });
        }
    }
    blocks
}

/// Returns the folder of the command that `cargo test --workspace` built.
fn toolcell_dir() -> PathBuf {
    let test = std::env::current_exe().expect("this test's path");
    let dir = test.ancestors().nth(2).expect("target/PROFILE").to_owned();
    let built = dir.join("toolcell").is_file();
    assert!(
        built,
        "`toolcell` is not built: run `cargo test --workspace`, which builds it before any test runs"
    );
    dir
}

/// Returns a shell command as a reader types it: with `toolcell` on the `PATH`, a cache that the
/// pages share, and this folder of state.
fn shell(line: &str, dir: &Path, state: &Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths([toolcell_dir()].into_iter().chain(std::env::split_paths(&path)))
            .expect("a PATH");
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", path).env("XDG_STATE_HOME", state);
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    for variable in ["COLUMNS", "TOOLCELL_CONFIG", "TOOLCELL_LOG"] {
        command.env_remove(variable);
    }
    command
}

/// Returns commands in blocks and in the text whose subcommand does not exist.
fn unknown_commands(page: &Page) -> Vec<String> {
    let tasks = fs::read_to_string(root().join("xtask/src/main.rs")).expect("the tasks");
    let tasks: Vec<_> = tasks
        .lines()
        .filter_map(|line| line.strip_prefix("cargo xtask ")?.split_whitespace().next())
        .collect();
    let commands = commands::names("");
    assert!(
        tasks.contains(&"test") && commands.iter().any(|name| name == "run"),
        "{tasks:?} {commands:?}"
    );
    let spans = page.text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let typed = page.text.lines().filter_map(|line| line.strip_prefix("$ "));
    let mut complaints = Vec::new();
    for line in spans.chain(typed) {
        let name = |prefix| {
            line.strip_prefix(prefix).and_then(|rest: &str| rest.split_whitespace().next())
        };
        let is_known = |name: &str, known: bool| known || name.starts_with('-') || name == "…";
        let task = name("cargo xtask ").filter(|name| !is_known(name, tasks.contains(name)));
        let command = name("toolcell ")
            .filter(|name| !is_known(name, commands.iter().any(|known| known == name)));
        complaints.extend(task.or(command).map(|name| format!("`{line}`: there is no `{name}`")));
    }
    complaints
}

fn all_pages(check: fn(&Page) -> Vec<String>) {
    let complaints: Vec<_> = pages()
        .iter()
        .flat_map(|page| {
            check(page).into_iter().map(|complaint| format!("{}: {complaint}", page.path.display()))
        })
        .collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n\n"));
}

#[test]
fn sessions_print_their_shown_output() {
    all_pages(session::untrue);
}

#[test]
fn code_blocks_are_excerpts_of_compiled_files() {
    all_pages(code::not_compiled);
}

#[test]
fn configurations_can_be_read() {
    all_pages(code::unreadable_toml);
}

#[test]
fn javascript_can_be_built() {
    all_pages(snippets::not_built);
}

#[test]
fn yaml_can_be_read() {
    all_pages(snippets::unreadable_yaml);
}

#[test]
fn commands_accept_the_shown_options() {
    all_pages(snippets::refused_commands);
}

#[test]
fn text_blocks_match_printed_output() {
    all_pages(snippets::untrue_output);
}

#[test]
fn commands_exist() {
    all_pages(unknown_commands);
}

/// `UPDATE=1 cargo test --workspace --test repository command_reference` writes the page.
#[test]
fn command_reference_matches_help() {
    commands::check();
}

#[test]
fn each_check_can_fail() {
    type Check = fn(&Page) -> Vec<String>;
    let checks: [(&str, Check); 8] = [
        ("session::untrue", session::untrue),
        ("code::not_compiled", code::not_compiled),
        ("code::unreadable_toml", code::unreadable_toml),
        ("snippets::not_built", snippets::not_built),
        ("snippets::unreadable_yaml", snippets::unreadable_yaml),
        ("snippets::refused_commands", snippets::refused_commands),
        ("snippets::untrue_output", snippets::untrue_output),
        ("unknown_commands", unknown_commands),
    ];
    let table = rows::<(&str, &str, &str)>("repository/docs", "each_check_can_fail");
    for (check, text, needle) in table {
        let (_, check) = checks.iter().find(|(name, _)| *name == check).expect(check);
        let complaints = check(&Page { path: "docs/a.md".into(), text: text.into() });
        assert_eq!(complaints.is_empty(), needle.is_empty(), "{text}: {complaints:?}");
        assert!(
            complaints.iter().all(|complaint| complaint.contains(needle)),
            "{text}: {complaints:?}"
        );
    }
}

/// The page on security lists the forms of a secret that the search does not find. The code cites
/// this list, and no other page repeats a line of it.
#[test]
fn undetected_secrets_are_listed_on_one_page_only() {
    const PAGE: &str = "docs/security.md";
    const HEADING: &str = "\n### Limits of the search\n\nThe search for secrets does not find:\n\n";
    let pages = pages();
    let page = pages.iter().find(|page| page.path == Path::new(PAGE)).expect("the page");
    let (_, list) = page.text.split_once(HEADING).expect("the list");
    let list = list.split("\n\n").next().unwrap_or_default();
    assert!(list.lines().filter(|line| line.starts_with("* ")).count() > 5, "{list}");
    for line in list.lines() {
        let having: Vec<_> = pages.iter().filter(|page| page.text.contains(line)).collect();
        assert_eq!(having.len(), 1, "{line}");
    }
    let code = root().join("host/core/src/secrets/redact.rs");
    let code = fs::read_to_string(code).expect("the code");
    assert!(code.contains("\"Limits of the search\" of\n//! `docs/security.md`"), "the citation");
}
