//! Counts the numbers that have a ceiling: modules in cycles, entries of folders, names at roots,
//! private names.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;

use super::Row;
use super::cycles::cycles;
use super::names;
use super::repository::Repository;

/// Modules of a folder that use each other, directly or through others.
pub(super) const CYCLES: &str = "modules in cycles";
/// Files and folders in a folder with sources.
pub(super) const ENTRIES: &str = "entries of a source folder";
/// Names that a crate exports at its root.
pub(super) const ROOT: &str = "names at the root";
/// Names of items that are words of the project's private language.
pub(super) const PRIVATE: &str = "private names";
/// The crates whose root is measured, with the number of names that each may have at most.
const ROOTS: [(&str, usize); 3] =
    [("toolcell", 32), ("toolcell-config", 15), ("toolcell-server", 14)];
/// Entries that a folder with sources may have at most.
const MAX_ENTRIES: usize = 14;

/// A number that may not grow.
pub(super) struct Exact {
    pub(super) kind: &'static str,
    pub(super) place: String,
    pub(super) now: usize,
    pub(super) goal: usize,
    /// Lines below its row; if empty, the number itself.
    parts: Vec<(String, String)>,
}

impl Exact {
    pub(super) fn new(
        kind: &'static str,
        place: impl Into<String>,
        now: usize,
        goal: usize,
    ) -> Self {
        Self { kind, place: place.into(), now, goal, parts: Vec::new() }
    }
}

/// Returns all numbers that have a ceiling.
pub(super) fn exact(repository: &Repository) -> Result<Vec<Exact>> {
    let mut found = components(repository);
    found.extend(entries(&repository.files));
    for (name, goal) in ROOTS {
        let names = repository.text(&format!("tests/api/{name}.txt"))?;
        found.push(Exact::new(ROOT, name, root_names(&names), goal));
    }
    found.push(private(repository));
    Ok(found)
}

/// Counts the names at the root, except modules, in the list of a crate's public names.
fn root_names(names: &str) -> usize {
    let is_at_root = |line: &&str| {
        line.split_once(": ").is_some_and(|(path, kind)| !path.contains("::") && kind != "mod")
    };
    names.lines().filter(is_at_root).count()
}

/// Returns a row for each kind of number, with the places that are above their goals.
pub(super) fn rows(repository: &Repository) -> Result<Vec<Row>> {
    let exact = exact(repository)?;
    let row = |kind, goal, total: fn(&[usize]) -> usize| {
        let above: Vec<_> =
            exact.iter().filter(|one| one.kind == kind && one.now > one.goal).collect();
        let numbers: Vec<_> = above.iter().map(|one| one.now).collect();
        let parts = above.iter().flat_map(|one| match one.parts.as_slice() {
            [] => vec![(one.place.clone(), Value::from(one.now))],
            parts => parts
                .iter()
                .map(|(part, value)| (part.clone(), Value::from(value.as_str())))
                .collect(),
        });
        Row::new(kind, total(&numbers), goal).parts(parts)
    };
    let sum = |numbers: &[usize]| numbers.iter().sum();
    Ok(vec![
        row(CYCLES, "0", sum),
        row(ENTRIES, "<= 14", |numbers| numbers.iter().max().copied().unwrap_or_default()),
        row(ROOT, "32, 15, 14", sum),
        row(PRIVATE, "0", sum),
    ])
}

fn components(repository: &Repository) -> Vec<Exact> {
    let mut places: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for tree in &repository.crates {
        for (level, component) in cycles(tree) {
            let place = [vec![tree.folder().to_owned()], level].concat().join("/");
            places.entry(place).or_default().push(component);
        }
    }
    let exact = |(place, mut components): (String, Vec<Vec<String>>)| {
        components.sort_by_key(|component| std::cmp::Reverse(component.len()));
        let text = components
            .iter()
            .map(|component| format!("{} ({})", component.len(), component.join(" ")))
            .collect::<Vec<_>>();
        let parts = vec![(place.clone(), text.join(" + "))];
        Exact { parts, ..Exact::new(CYCLES, place, components.iter().map(Vec::len).sum(), 0) }
    };
    places.into_iter().map(exact).collect()
}

fn entries(files: &[String]) -> Vec<Exact> {
    let mut folders: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        let parts: Vec<_> = file.split('/').collect();
        let below = parts.iter().position(|part| *part == "src").unwrap_or(parts.len());
        for at in below + 1..parts.len() {
            folders.entry(parts[..at].join("/")).or_default().insert(parts[at]);
        }
    }
    // A folder of snapshots or templates has no sources.
    folders.retain(|_, entries| entries.iter().any(|entry| entry.ends_with(".rs")));
    let exact = folders
        .into_iter()
        .map(|(folder, entries)| Exact::new(ENTRIES, folder, entries.len(), MAX_ENTRIES));
    exact.collect()
}

fn private(repository: &Repository) -> Exact {
    let mut counts = BTreeMap::new();
    for source in repository.sources.values() {
        names::private(&source.code, &mut counts);
        names::private(&source.tests, &mut counts);
    }
    let words =
        names::words().filter_map(|(word, better)| Some((word, better, counts.get(&word)?)));
    let parts = words
        .map(|(word, better, count)| (word.to_owned(), format!("{count}, better {better}")))
        .collect();
    Exact { parts, ..Exact::new(PRIVATE, "everywhere", counts.values().sum(), 0) }
}

#[test]
fn modules_and_members_are_not_root_names() {
    let names = "A: enum\nA::B: variant\nb: mod\nb::C: struct\nD: from serde::D\ne(): fn\n";
    assert_eq!(root_names(names), 3);
}

#[test]
fn entries_are_files_and_folders_with_sources() {
    let files = [
        "a/src/lib.rs",
        "a/src/b.rs",
        "a/src/b/c.rs",
        "a/src/b/d/e.rs",
        "a/src/snapshots/f.snap",
        "a/g.rs",
    ];
    let counted = entries(&files.map(str::to_owned))
        .into_iter()
        .map(|one| (one.place, one.now))
        .collect::<Vec<_>>();
    assert_eq!(counted, [("a/src".into(), 4), ("a/src/b".into(), 2), ("a/src/b/d".into(), 1)]);
}
