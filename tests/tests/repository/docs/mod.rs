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
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolcell_test_guests::rows;

use crate::root;

/// The folder of the example tools.
const EXAMPLES: &str = "example-tools/target/wasm32-wasip2/release";

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
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let is_skipped =
                name.starts_with('.') || ["target", "src", "sessions"].contains(&&*name);
            if path.is_dir() && !is_skipped {
                walk(&path, pages);
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).expect("a page");
                let path = path.strip_prefix(root()).expect("below the root").to_owned();
                pages.push(Page { path, text });
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
            let lines = lines.by_ref().take_while(|line| line.trim() != "```").collect();
            blocks.push(Block { info, lines });
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
    let folders = [toolcell_dir()].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("a PATH");
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", path).env("XDG_STATE_HOME", state);
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    for variable in ["COLUMNS", "TOOLCELL_CONFIG", "TOOLCELL_LOG"] {
        command.env_remove(variable);
    }
    command
}

/// Copies the example tools and their calls into a folder.
fn copy_examples(folder: &Path) {
    let built = fs::read_dir(root().join(EXAMPLES)).expect("the example tools").flatten();
    let built = built.map(|entry| entry.path());
    let tools = built.filter(|path| path.extension().is_some_and(|kind| kind == "wasm"));
    for file in tools.chain([root().join("example-tools/calls.jsonl")]) {
        fs::copy(&file, folder.join(file.file_name().expect("a name"))).expect("a copy");
    }
}

/// Writes a file that only its owner can write, for every umask: a configuration that the group can
/// write is not used.
fn write_private(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, content).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a file");
}

/// Returns commands in blocks and in the text whose subcommand does not exist.
fn unknown_commands(page: &Page) -> Vec<String> {
    let tasks = fs::read_to_string(root().join("xtask/src/main.rs")).expect("the tasks");
    let tasks: Vec<_> = tasks
        .lines()
        .filter_map(|line| line.strip_prefix("cargo xtask ")?.split_whitespace().next())
        .collect();
    let commands = commands::names("");
    let has_run = commands.iter().any(|name| name == "run");
    assert!(has_run && tasks.contains(&"test"), "{tasks:?} {commands:?}");
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

/// Returns complaints about a page.
type Check = fn(&Page) -> Vec<String>;

fn all_pages(check: Check) {
    let complaints = pages().into_iter().flat_map(|page| {
        let path = page.path.display().to_string();
        check(&page).into_iter().map(move |complaint| format!("{path}: {complaint}"))
    });
    let complaints: Vec<_> = complaints.collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n\n"));
}

/// Lists the checks by name, and defines the test of each, which checks all pages.
macro_rules! checks {
    ($($name:ident: $check:path,)*) => {
        const CHECKS: &[(&str, Check)] = &[$((stringify!($check), $check)),*];

        $(
            #[test]
            fn $name() {
                all_pages($check);
            }
        )*
    };
}

checks! {
    sessions_print_their_shown_output: session::untrue,
    code_blocks_are_excerpts_of_compiled_files: code::not_compiled,
    configurations_can_be_read: code::unreadable_toml,
    javascript_can_be_built: snippets::not_built,
    yaml_can_be_read: snippets::unreadable_yaml,
    commands_accept_the_shown_options: snippets::refused_commands,
    text_blocks_match_printed_output: snippets::untrue_output,
    commands_exist: unknown_commands,
}

/// `UPDATE=1 cargo test --workspace --test repository command_reference` writes the page.
#[test]
fn command_reference_matches_help() {
    commands::check();
}

#[test]
fn each_check_can_fail() {
    let table = rows::<(&str, &str, &str)>("repository/docs", "each_check_can_fail");
    for (check, text, needle) in table {
        let (_, check) = CHECKS.iter().find(|(name, _)| *name == check).expect(check);
        let complaints = check(&Page { path: "docs/a.md".into(), text: text.into() });
        assert_eq!(complaints.is_empty(), needle.is_empty(), "{text}: {complaints:?}");
        let is_meant = |complaint: &String| complaint.contains(needle);
        assert!(complaints.iter().all(is_meant), "{text}: {complaints:?}");
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
