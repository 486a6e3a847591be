//! What the pages say is what happens: commands exist, sessions print what they show, code is a file that is compiled.
//!
//! A block marked `rust` starts with `// PATH`, the file from the repository's root that it shows without its header (`//!`
//! lines, lints); one marked `rust,ignore` is a sketch. In a block marked `console` each `$ toolcell …` is run, and `…` alone stands for
//! any lines. `$ cd` holds until the end of the page, as it does for whoever types along; other commands are not run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Page {
    path: PathBuf,
    text: String,
}

struct Block<'a> {
    info: &'a str,
    lines: Vec<&'a str>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder below the root")
}

/// Every page that is not part of a crate's documentation, where rustdoc checks the code.
fn pages() -> Vec<Page> {
    fn walk(folder: &Path, pages: &mut Vec<Page>) {
        for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = path.file_name().expect("a name").to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && !["target", "src"].contains(&&*name) {
                walk(&path, pages);
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).expect("a page");
                pages.push(Page { path: path.strip_prefix(root()).expect("below the root").to_owned(), text });
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
            blocks.push(Block { info, lines: lines.by_ref().take_while(|line| line.trim() != "```").collect() });
        }
    }
    blocks
}

/// The command beside this test, as `cargo test --workspace` builds it.
fn toolcell_dir() -> PathBuf {
    let test = std::env::current_exe().expect("this test's path");
    let dir = test.ancestors().nth(2).expect("target/PROFILE").to_owned();
    let built = dir.join("toolcell").is_file();
    assert!(built, "`toolcell` is not built: run `cargo test --workspace`, which builds it before any test runs");
    dir
}

fn shell(line: &str, dir: &Path) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([toolcell_dir()].into_iter().chain(std::env::split_paths(&path))).expect("a PATH");
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", path);
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    String::from_utf8(command.output().expect("a shell").stdout).expect("text on standard output")
}

/// Whether these lines were to be seen.
fn fits(expected: &[&str], seen: &[&str]) -> bool {
    match expected {
        [] => seen.is_empty(),
        ["…", rest @ ..] => (0..=seen.len()).any(|skipped| fits(rest, &seen[skipped..])),
        [line, rest @ ..] => seen.first().is_some_and(|first| first == line) && fits(rest, &seen[1..]),
    }
}

/// Commands of a session, each with the lines that follow it.
fn session<'a>(block: &Block<'a>) -> Vec<(&'a str, Vec<&'a str>)> {
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

/// What a page's sessions show and the commands do not print.
fn untrue_sessions(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut dir = root().to_owned();
    for (command, expected) in blocks(&page.text).iter().filter(|block| block.info == "console").flat_map(session) {
        if let Some(to) = command.strip_prefix("cd ") {
            dir.push(to.trim());
        } else if command.starts_with("toolcell ") {
            let output = shell(command, &dir);
            let seen: Vec<_> = output.trim_end().lines().map(str::trim_end).collect();
            if !fits(&expected, &seen) {
                let (expected, seen) = (expected.join("\n"), seen.join("\n"));
                complaints.push(format!("$ {command}\n-- in the page\n{expected}\n-- printed\n{seen}"));
            }
        }
    }
    complaints
}

/// Blocks of code that are not the file they claim to be.
fn untrue_code(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for block in blocks(&page.text).iter().filter(|block| block.info == "rust") {
        let Some(path) = block.lines.first().and_then(|line| line.strip_prefix("// ")) else {
            complaints.push(format!("start it with `// PATH`, or mark it `rust,ignore`:\n{}", block.lines.join("\n")));
            continue;
        };
        let file = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let is_header = |line: &&str| line.starts_with("//!") || line.starts_with("#![");
        let code: Vec<_> = file.lines().skip_while(is_header).collect();
        if block.lines[1..].join("\n").trim() != code.join("\n").trim() {
            complaints.push(format!("this is not {path}:\n{}", block.lines.join("\n")));
        }
    }
    complaints
}

/// Commands in blocks and in the text whose subcommand does not exist.
fn unknown_commands(page: &Page) -> Vec<String> {
    let tasks = fs::read_to_string(root().join("xtask/src/main.rs")).expect("the tasks");
    let tasks: Vec<_> =
        tasks.lines().filter_map(|line| line.strip_prefix("cargo xtask ")?.split_whitespace().next()).collect();
    let help = shell("toolcell --help", root());
    let (_, commands) = help.split_once("Commands:\n").expect("the help lists commands");
    let commands: Vec<_> = commands
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(tasks.contains(&"test") && commands.contains(&"run"), "{tasks:?} {commands:?}");
    let spans = page.text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let typed = page.text.lines().filter_map(|line| line.strip_prefix("$ "));
    let mut complaints = Vec::new();
    for line in spans.chain(typed) {
        for (prefix, known) in [("cargo xtask ", &tasks), ("toolcell ", &commands)] {
            let Some(name) = line.strip_prefix(prefix).and_then(|rest| rest.split_whitespace().next()) else {
                continue;
            };
            if !known.contains(&name) && !name.starts_with('-') && name != "…" {
                complaints.push(format!("`{line}`: there is no `{name}`"));
            }
        }
    }
    complaints
}

fn all_pages(check: fn(&Page) -> Vec<String>) {
    let complaints: Vec<_> = pages()
        .iter()
        .flat_map(|page| check(page).into_iter().map(|complaint| format!("{}: {complaint}", page.path.display())))
        .collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n\n"));
}

#[test]
fn sessions_print_what_they_show() {
    all_pages(untrue_sessions);
}

#[test]
fn code_is_a_file_that_is_compiled() {
    all_pages(untrue_code);
}

#[test]
fn commands_exist() {
    all_pages(unknown_commands);
}

#[test]
fn each_check_can_fail() {
    type Check = fn(&Page) -> Vec<String>;
    let table: [(Check, &str, &str); 9] = [
        (untrue_sessions, "```console\n$ cd wit\n$ toolcell list nothing.wasm\nnothing\n```", "-- printed"),
        (untrue_sessions, "```console\n$ toolcell --version | cut -d' ' -f1\nToolcell\n```", "toolcell"),
        (untrue_code, "```rust\nfn main() {}\n```", "start it with"),
        (untrue_code, "```rust\n// example-tools/hello/src/lib.rs\ntools![greet];\n```", "this is not"),
        (unknown_commands, "```console\n$ cargo xtask rest\n```", "there is no `rest`"),
        (unknown_commands, "Say `toolcell walk a.wasm`.", "there is no `walk`"),
        (untrue_sessions, "```console\n$ toolcell --version | cut -d' ' -f1\ntoolcell\n$ ls nowhere\n```", ""),
        (untrue_sessions, "```console\n$ printf 'toolcell no'\nyes\n```", ""),
        (unknown_commands, "`cargo xtask …` and `toolcell --help` and `toolcell`", ""),
    ];
    for (check, text, needle) in table {
        let complaints = check(&Page { path: "a.md".into(), text: text.into() });
        assert_eq!(complaints.is_empty(), needle.is_empty(), "{text}: {complaints:?}");
        assert!(complaints.iter().all(|complaint| complaint.contains(needle)), "{text}: {complaints:?}");
    }
    for (expected, fitting) in [("a\nb\nc", true), ("…", true), ("a\n…\nc", true), ("…\nb", false), ("a\nb", false)]
    {
        let expected: Vec<_> = expected.lines().collect();
        assert_eq!(fits(&expected, &["a", "b", "c"]), fitting, "{expected:?}");
    }
}

/// Who reads one page is told as much as who reads the other.
#[test]
fn what_is_not_found_is_one_list() {
    let list = |page: &str| {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        let (_, rest) = text.split_once("What the search for secrets does not find:\n\n").expect("the list");
        rest.lines().take_while(|line| line.starts_with("* ") || line.starts_with("  ")).collect::<Vec<_>>().join("\n")
    };
    let told = list("README.md");
    assert!(told.lines().count() > 5, "{told}");
    assert_eq!(told, list("SPECIFICATION.md"));
}
