//! Checks citations of pages in the code, sizes of pages, and files that packages must contain.

use toolcell_test_guests::rows;

use super::repository::{File, named, rust};

/// Parts of a page that have an anchor, as in `id="row-8"`.
const PARTS: [&str; 3] = ["section", "row", "rule"];
/// Pages of one screen, and their bytes at most.
const ONE_SCREEN: [(&str, usize); 2] = [("SPECIFICATION.md", 4_000), ("CHANGELOG.md", 2_000)];
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Returns citations of a section, a row or a rule that its page does not have.
pub(crate) fn dead_citations(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut check = |from: &File, page: &str, text: &str| {
        let Some((part, numbers)) = cited(text) else { return };
        let has = |number: &u32| {
            named(files, page)
                .is_some_and(|page| page.text.contains(&format!("id=\"{part}-{number}\"")))
        };
        let missing = numbers.iter().filter(|number| !has(number));
        complaints.extend(missing.map(|number| {
            format!("{} cites {part} {number}, which {page} does not have", from.path)
        }));
    };
    let cited_as = rows::<(&str, &str)>("repository/papers", "cited_as");
    for file in rust(files) {
        let text = flowing(&file.text);
        for &(words, page) in &cited_as {
            text.match_indices(words)
                .for_each(|(at, _)| check(file, page, &text[at + words.len()..]));
        }
    }
    complaints
}

/// Returns a text on one line, without the markers of comments.
fn flowing(text: &str) -> String {
    let lines =
        text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!']).trim_start());
    lines.collect::<Vec<_>>().join(" ")
}

/// Parses `sections 3 (in full), 5 and 7 to 9` into the part and its numbers.
fn cited(text: &str) -> Option<(&'static str, Vec<u32>)> {
    let (part, mut rest) = PARTS.iter().find_map(|part| Some((*part, text.strip_prefix(part)?)))?;
    rest = rest.strip_prefix('s').unwrap_or(rest).strip_prefix(' ')?;
    let mut numbers: Vec<u32> = Vec::new();
    let mut is_range = false;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<u32>() else { break };
        let from = numbers.last().copied().filter(|_| is_range).map_or(number, |last| last + 1);
        numbers.extend(from..=number);
        rest = &rest[digits..];
        if let Some(aside) = rest.strip_prefix(" (") {
            rest = aside.split_once(')').map_or("", |(_, after)| after);
        }
        is_range = rest.starts_with(" to ");
        let Some(next) =
            [" to ", " and ", ", "].iter().find_map(|between| rest.strip_prefix(between))
        else {
            break;
        };
        rest = next;
    }
    (!numbers.is_empty()).then_some((part, numbers))
}

/// Returns pages of one screen that have become longer.
pub(crate) fn oversized_pages(files: &[File]) -> Vec<String> {
    let pages = ONE_SCREEN.iter().filter_map(|(path, most)| Some((named(files, path)?, most)));
    pages
        .filter(|(page, most)| page.text.len() > **most)
        .map(|(page, most)| format!("{} has {} bytes of {most}", page.path, page.text.len()))
        .collect()
}

/// Returns packages for a registry that lack something that it shows, or that their licence
/// requires.
pub(crate) fn incomplete_packages(files: &[File]) -> Vec<String> {
    let is_ours =
        |path: &str| ["host/", "guest-sdk/"].iter().any(|folder| path.starts_with(folder));
    let manifests =
        files.iter().filter(|file| is_ours(&file.path) && !file.text.contains("publish = false"));
    let members = rows::<&str>("repository/papers", "manifest_entries");
    let mut complaints = Vec::new();
    for (manifest, folder) in
        manifests.filter_map(|file| Some((file, file.path.strip_suffix("Cargo.toml")?)))
    {
        let missing = members
            .iter()
            .filter(|member| !manifest.text.lines().any(|line| line.starts_with(**member)));
        complaints
            .extend(missing.map(|member| format!("{} has no line `{member}`", manifest.path)));
        if named(files, &format!("{folder}README.md")).is_none() {
            complaints.push(format!("{folder} has no README.md"));
        }
        let own = |name: &str| named(files, &format!("{folder}{name}")).map(|file| &file.text);
        let differ = LICENCES.iter().filter(|name| {
            own(name).is_none_or(|text| Some(text) != named(files, name).map(|file| &file.text))
        });
        complaints.extend(
            differ.map(|name| {
                format!("{folder}{name} is not the repository's: make it a link to it")
            }),
        );
    }
    complaints
}

#[test]
fn citation_numbers_are_parsed() {
    for (text, expected) in
        rows::<(&str, Option<(&str, Vec<u32>)>)>("repository/papers", "citation_numbers_are_parsed")
    {
        assert_eq!(cited(text), expected, "{text}");
    }
}
