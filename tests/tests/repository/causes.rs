//! Checks that a test produces each reason, cause and limit that a call can end with.
//!
//! The enums are `#[non_exhaustive]`, so no `match` here would have to be complete: their variants
//! are read from the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toolcell_test_guests::rows;

/// Returns the variants of an enum, as their words in JSON.
fn variants(source: &str, name: &str) -> Vec<String> {
    let (_, body) = source
        .split_once(&format!("pub enum {name} {{\n"))
        .unwrap_or_else(|| panic!("no enum `{name}`"));
    let lines = body.lines().take_while(|line| *line != "}");
    let names = lines.filter_map(|line| {
        line.strip_prefix("    ").filter(|line| line.starts_with(char::is_uppercase))
    });
    let names =
        names.map(|line| line.split(|c: char| !c.is_alphanumeric()).next().expect("a name"));
    names.map(snake_case).collect()
}

fn snake_case(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.extend(c.to_lowercase());
    }
    word
}

/// Returns true if a string in this source is an ending with this cause: it begins with the cause,
/// or ends with it if the cause is a limit, and no word continues.
fn expects(source: &str, cause: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(cause).any(|(at, _)| {
        let (before, after) = (&source[..at], &source[at + cause.len()..]);
        let starts = ["\"", "\"completed "].iter().any(|start| before.ends_with(start))
            || cause.starts_with('+');
        let (end, _) = after.split_once('"').unwrap_or((after, ""));
        starts && !after.starts_with(goes_on) && end.chars().all(|c| goes_on(c) || "/+".contains(c))
    })
}

/// Collects the text of all tests but this file, and of their case files but its own.
fn gather(folder: &Path, tests: &mut String) {
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
    {
        if path.is_dir() {
            gather(&path, tests);
        } else if path.extension().is_some_and(|end| end == "rs" || end == "yaml")
            && path.file_stem().is_some_and(|name| name != "causes")
        {
            tests.push_str(&fs::read_to_string(&path).expect("a test"));
        }
    }
}

#[test]
fn every_cause_is_produced_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let mut tests = String::new();
    ["tests", "cases"].iter().for_each(|folder| gather(&root.join(folder), &mut tests));
    let mut known = BTreeSet::new();
    for (file, name, prefix) in rows::<(&str, &str, &str)>("repository/causes", "enums") {
        let variants = variants(&read(&format!("../host/contract/src/{file}")), name);
        assert!(variants.len() > 2, "{name}: {variants:?}");
        known.extend(variants.into_iter().map(|variant| format!("{prefix}{variant}")));
    }
    let unreached_causes = rows::<(&str, &str)>("repository/causes", "unreached");
    for cause in &known {
        let unreached = unreached_causes.iter().find(|(unreached, _)| unreached == cause);
        match (expects(&tests, cause), unreached) {
            (true, None) | (false, Some(_)) => {}
            (false, None) => panic!("no test ends with `{cause}`"),
            (true, Some((_, why))) => panic!("`{cause}` is reached after all, and was not: {why}"),
        }
    }
    assert!(unreached_causes.iter().all(|(cause, _)| known.contains(*cause)), "{known:?}");
}

#[test]
fn cause_check_detects_missing_tests() {
    let source = "pub enum E {\n    /// A.\n    OneTwo {\n        /// B.\n        Field: u8,\n    },\n    Three,\n}\n";
    assert_eq!(variants(source, "E"), ["one_two", "three"]);
    for (source, cause, expected) in
        rows::<(&str, &str, bool)>("repository/causes", "cause_check_detects_missing_tests")
    {
        assert_eq!(expects(source, cause), expected, "{cause} in {source}");
    }
}
