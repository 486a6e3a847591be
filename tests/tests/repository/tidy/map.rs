//! Checks ARCHITECTURE.md: its table is generated from the packages' descriptions and the modules'
//! headers, its picture names each layer of the core library, and its own text is short.

use std::fmt::Write as _;

use toolcell_test_guests::rows;

use super::layers;
use super::repository::{File, files_of, named, word};
use crate::root;

const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str =
    "<!-- begin: UPDATE=1 cargo test --workspace --test repository tidy::map -->\n\n";
const END: &str = "\n<!-- end -->\n";
/// Words beside the picture and the table.
const MAX_WORDS: usize = 750;
/// The folder whose own folders are rows too.
const DEEPER: &str = "engine";

/// Returns the differences between the page and the tree.
pub(crate) fn outdated_map(files: &[File]) -> Vec<String> {
    let Some(page) = named(files, PAGE) else { return vec![format!("there is no {PAGE}")] };
    let Some((own, rest)) = page.text.split_once(BEGIN) else {
        return vec![format!("{PAGE} has no line `{}`", BEGIN.trim_end())];
    };
    let first_row = own.lines().count() + BEGIN.lines().count() + 1;
    let mut complaints = Vec::new();
    let (written, expected) = (rest.split(END).next().unwrap_or_default(), table(files));
    if written != expected {
        complaints.push(format!(
            "{PAGE} is not generated from this tree: {}; \
             `UPDATE=1 cargo test --workspace --test repository tidy::map` writes it",
            first_difference(first_row, written, &expected)
        ));
    }
    let mut parts = own.split("```");
    let (before, picture) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let names = |layer: &str| picture.split_whitespace().any(|word| word == layer);
    let layers = layers();
    let missing = layers.iter().flat_map(|(_, modules)| modules).filter(|layer| !names(layer));
    complaints.extend(missing.map(|layer| format!("the picture in {PAGE} lacks `{layer}`")));
    let words = before.split_whitespace().chain(parts.flat_map(str::split_whitespace)).count();
    if words > MAX_WORDS {
        complaints.push(format!("{PAGE} has {words} words of {MAX_WORDS}"));
    }
    complaints
}

/// Names the first line that differs; the lines count from `first`.
fn first_difference(first: usize, written: &str, expected: &str) -> String {
    let (mut written, mut expected) = (written.lines(), expected.lines());
    for number in first.. {
        match (written.next(), expected.next()) {
            (None, None) => break,
            (written, expected) if written == expected => {}
            (written, expected) => {
                let shown = |line: Option<&str>| {
                    line.map_or_else(|| "nothing".to_owned(), |line| format!("`{line}`"))
                };
                let (written, expected) = (shown(written), shown(expected));
                return format!("line {number} is {written}, and {expected} is expected");
            }
        }
    }
    "only the ends of lines differ".into()
}

/// Returns the page with a new table, if it has a place for it.
fn updated(files: &[File]) -> Option<String> {
    let (own, rest) = named(files, PAGE)?.text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some([own, BEGIN, &table(files), END, after].concat())
}

fn table(files: &[File]) -> String {
    let mut rows = String::from("| folder | content |\n|---|---|\n");
    let mut row = |folder: &str, content: &str| {
        writeln!(rows, "| [`{folder}/`]({folder}/) | {content} |").expect("a string");
    };
    for package in packages(files) {
        let manifest = named(files, &format!("{package}/Cargo.toml")).map_or("", |file| &file.text);
        let (name, description) = (entry(manifest, "name"), entry(manifest, "description"));
        row(package, &format!("package `{name}`: {description}"));
        if package.starts_with("host/") {
            for (folder, content) in folders(files, &format!("{package}/src"), "lib") {
                row(&folder, &content);
            }
        }
    }
    rows
}

/// Returns the folders of the workspace's packages.
fn packages(files: &[File]) -> Vec<&str> {
    let manifest = named(files, "Cargo.toml").map_or("", |file| &file.text);
    let members = manifest.split_once("\nmembers = [").map_or("", |(_, rest)| rest);
    let members = members.split(']').next().unwrap_or_default().split(',');
    members.map(|member| member.trim().trim_matches('"')).filter(|path| !path.is_empty()).collect()
}

fn entry<'a>(manifest: &'a str, key: &str) -> &'a str {
    let start = format!("{key} = \"");
    let value = manifest.lines().find_map(|line| line.strip_prefix(start.as_str()));
    value.and_then(|value| value.strip_suffix('"')).unwrap_or_default()
}

/// Returns the module folders in `folder` except tests, with their first sentences, in the order of
/// its root file (`lib`, `main` or `mod`).
fn folders(files: &[File], folder: &str, root: &str) -> Vec<(String, String)> {
    let root = named(files, &format!("{folder}/{root}.rs"))
        .or_else(|| named(files, &format!("{folder}/main.rs")));
    let lines = root.map_or("", |file| &file.text).lines().filter(|line| line.ends_with(';'));
    let modules = lines.filter_map(|line| {
        let line = line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        Some(word(line.trim_start_matches("pub ").strip_prefix("mod ")?))
    });
    let mut found = Vec::new();
    for module in modules {
        let path = format!("{folder}/{module}");
        let is_folder = files.iter().any(|file| file.path.starts_with(&format!("{path}/")));
        if module == "tests" || !is_folder {
            continue;
        }
        let header = named(files, &format!("{path}/mod.rs"))
            .or_else(|| named(files, &format!("{path}.rs")))
            .map_or("", |file| &file.text);
        let below = if module == DEEPER { folders(files, &path, "mod") } else { Vec::new() };
        found.push((path, first_sentence(header)));
        found.extend(below);
    }
    found
}

fn first_sentence(header: &str) -> String {
    let lines = header.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let text = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let sentence = text.split(". ").next().unwrap_or_default().trim_end_matches('.');
    // Links of rustdoc lead nowhere in a page.
    sentence.replace("[`", "`").replace("`]", "`")
}

/// `UPDATE=1` writes the table.
#[test]
fn map_is_current() {
    let mut files = super::repository::repository();
    if std::env::var_os("UPDATE").is_some() {
        let page = updated(&files).expect("the marks of the table");
        std::fs::write(root().join(PAGE), &page).expect("the page is written");
        let of_the_page = |file: &&mut File| file.path == PAGE;
        files.iter_mut().filter(of_the_page).for_each(|file| file.text.clone_from(&page));
    }
    let complaints = outdated_map(&files);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn each_outdated_map_is_reported() {
    let names: Vec<_> = layers().into_iter().flat_map(|(_, modules)| modules).collect();
    let picture = format!("```text\n{}\n```\n", names.join(" "));
    let table = "| folder | content |\n|---|---|\n\
        | [`host/a/`](host/a/) | package `a`: Does it |\n\
        | [`host/a/src/b/`](host/a/src/b/) | Reads `B`: all |\n";
    let good = [&picture, BEGIN, table, END].concat();
    let long = "word ".repeat(MAX_WORDS + 1) + &good;
    let more = format!("| more |{END}");
    let changed = rows::<(&str, &str, &str)>("repository/map", "each_outdated_map_is_reported")
        .into_iter()
        .map(|(from, to, expected)| (good.replacen(from, to, 1), expected));
    for (page, expected) in changed.chain([
        (good.clone(), ""),
        (good.replace(END, &more), "line 10 is `| more |`, and nothing is expected"),
        (good.replace(BEGIN, ""), "has no line"),
        (long, "has 751 words of 750"),
    ]) {
        let tree = rows::<(&str, &str)>("repository/map", "files");
        let files = files_of([(PAGE, &*page)].into_iter().chain(tree));
        let complaints = outdated_map(&files);
        assert_eq!(complaints.len(), usize::from(!expected.is_empty()), "{complaints:?}");
        let found = complaints.iter().all(|complaint| complaint.contains(expected));
        assert!(found, "{expected}: {complaints:?}");
    }
}
