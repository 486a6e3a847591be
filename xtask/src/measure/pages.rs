//! Counts files, words and calls that show how far the code is from its goals.

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};

use super::Row;
use super::repository::Repository;

/// The page that is generated from the command's help texts.
const GENERATED: &str = "docs/commands.md";
/// The tests that are pages.
const SESSIONS: &str = "tests/sessions/";

/// Returns the rows of tests, secrets, controls and pages.
pub(super) fn rows(repository: &Repository) -> Result<Vec<Row>> {
    let size = |file: &str| Ok::<_, anyhow::Error>(repository.text(file)?.len().div_ceil(1000));
    let is_page =
        |file: &&String| file.ends_with(".md") && *file != GENERATED && !file.starts_with(SESSIONS);
    let pages = repository.files.iter().filter(is_page);
    // A table after this mark is generated (`tests/tests/repository/tidy/map.rs`).
    let own = |text: &str| {
        let own = text.split("\n<!-- begin: ").next().unwrap_or_default();
        own.split_whitespace().count()
    };
    let words = pages.map(|file| Ok(own(&repository.text(file)?)));
    let hosts = repository
        .sources
        .iter()
        .filter(|(file, _)| file.starts_with("host/") && repository.is_compiled(file));
    let reveals = hosts.filter(|(_, source)| {
        let code = source.code.to_string();
        code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "reveal")
    });
    let of_macro = |name| {
        let sources = repository.sources.values();
        sources.map(|source| uses(&source.code, name) + uses(&source.tests, name)).sum()
    };
    Ok(vec![
        Row::new("integration-test binaries", test_binaries(&repository.files), "<= 18"),
        Row::new("host files that name `reveal`", reveals.count(), "<= 8"),
        Row::new("uses of `enforced!`", of_macro("enforced"), "<= 150"),
        Row::new("uses of `bound!`", of_macro("bound"), ""),
        Row::new("SPECIFICATION.md, kB", size("SPECIFICATION.md")?, "<= 4"),
        Row::new("CHANGELOG.md, kB", size("CHANGELOG.md")?, "<= 2"),
        Row::new("words of hand-written pages", words.sum::<Result<usize>>()?, "<= 45000"),
    ])
}

/// Counts the files from which cargo makes a test binary: `tests/a.rs` and `tests/a/main.rs` of a
/// package.
fn test_binaries(files: &[String]) -> usize {
    let is_binary = |file: &&String| {
        let stem = file.strip_suffix("/main.rs").or_else(|| file.strip_suffix(".rs"));
        let package = stem.and_then(|stem| stem.rsplit_once('/')?.0.strip_suffix("/tests"));
        package.is_some_and(|package| files.contains(&format!("{package}/Cargo.toml")))
    };
    files.iter().filter(is_binary).count()
}

/// Counts the uses of a macro.
fn uses(tokens: &TokenStream, name: &str) -> usize {
    let tokens: Vec<_> = tokens.clone().into_iter().collect();
    let counted = tokens.iter().enumerate().map(|(at, token)| match token {
        TokenTree::Group(group) => uses(&group.stream(), name),
        TokenTree::Ident(ident) => {
            let is_use = matches!(
                tokens.get(at + 1..at + 3),
                Some([TokenTree::Punct(mark), TokenTree::Group(_)]) if mark.as_char() == '!'
            );
            usize::from(ident == name && is_use)
        }
        TokenTree::Punct(_) | TokenTree::Literal(_) => 0,
    });
    counted.sum()
}

#[test]
fn only_test_binaries_of_packages_are_counted() {
    let files = [
        "a/Cargo.toml",
        "a/tests/b.rs",
        "a/tests/c/main.rs",
        "a/tests/c/d.rs",
        "a/src/tests/e.rs",
        "tests/f.rs",
    ];
    assert_eq!(test_binaries(&files.map(str::to_owned)), 2);
}

#[test]
fn items_and_mentions_are_not_counted_as_uses() {
    let tokens: TokenStream =
        "macro_rules! enforced { () => { if enforced!(B) { c(enforced, enforced(D)) } } }"
            .parse()
            .unwrap();
    assert_eq!(uses(&tokens, "enforced"), 1);
}
