//! Checks that each threat has a control or a test, and each control exactly one test.

use std::collections::{BTreeMap, BTreeSet};

use super::repository::{File, files_of, named};
use super::{is_test, tests};

const PAGE: &str = "docs/threat-model.md";
/// Words of a row that needs neither a control nor a test.
const NOT_APPLICABLE: &str = "*Not applicable*";

/// Finds rows of threats without a control or a test that exists, and controls that have not
/// exactly one test or answer no row.
///
/// The last cell of ``| <a id="row-1"></a>1 | … | `fuel`, `alone::loop_ends` |`` has the proofs of
/// a row: a name with `::` is a test, another one a control. The line of a control is
/// ``| `fuel` | effect | `alone::loop_ends` |``.
pub(crate) fn unproved_threats(files: &[File]) -> Vec<String> {
    let Some(page) = named(files, PAGE) else { return vec![format!("there is no {PAGE}")] };
    let tests = tests(files);
    let (rows, mut complaints) = (rows(&page.text), Vec::new());
    let mut controls = BTreeMap::new();
    for line in page.text.lines().filter(|line| line.starts_with("| `")) {
        let control = quoted(line).next().unwrap_or_default();
        if controls.insert(control, line).is_some() {
            complaints.push(format!("{PAGE} has the control `{control}` twice"));
        }
    }
    let answering: BTreeSet<_> =
        rows.iter().flat_map(|(_, line)| quoted(last_cell(line))).collect();
    for (control, line) in &controls {
        let proofs: Vec<_> = quoted(last_cell(line)).collect();
        match proofs[..] {
            [test] if is_test(&tests, test) => {}
            [test] => complaints.push(format!("control `{control}`: there is no test `{test}`")),
            _ => complaints.push(format!("control `{control}` has {} tests", proofs.len())),
        }
        if !answering.contains(control) {
            complaints.push(format!("no row names the control `{control}`"));
        }
    }
    for (number, line) in &rows {
        let mut proofs = quoted(last_cell(line)).peekable();
        if proofs.peek().is_none() && !line.contains(NOT_APPLICABLE) {
            complaints.push(format!("row {number} names no control and no test"));
        }
        let exists = |name: &&str| {
            if name.contains("::") { is_test(&tests, name) } else { controls.contains_key(name) }
        };
        let missing = proofs.filter(|name| !exists(name));
        complaints.extend(missing.map(|name| format!("row {number}: there is no `{name}`")));
    }
    let numbers: BTreeSet<_> = rows.iter().map(|(number, _)| number).collect();
    if rows.is_empty() || numbers.len() != rows.len() {
        complaints.push(format!("{PAGE} has no rows, or two of one number"));
    }
    complaints
}

/// Returns the rows of threats, each with its number.
fn rows(page: &str) -> Vec<(&str, &str)> {
    fn number(line: &str) -> Option<&str> {
        line.strip_prefix("| <a id=\"row-")?.split('"').next()
    }
    page.lines().filter_map(|line| Some((number(line)?, line))).collect()
}

fn last_cell(line: &str) -> &str {
    let line = line.trim_end().trim_end_matches('|');
    line.rsplit_once('|').map_or(line, |(_, cell)| cell)
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn each_missing_proof_is_reported() {
    const ROW: &str = "| <a id=\"row-1\"></a>1 | T | a loop | fuel | `fuel` |";
    const CONTROL: &str = "| `fuel` | Loops end. | `tests/a::works` |";
    const TESTS: &str = "//! A.\n#[test]\nfn works() {}\nfn flies() {}\n";
    let table = toolcell_test_guests::rows::<(&str, &str)>(
        "repository/threats",
        "each_missing_proof_is_reported",
    );
    for (page, expected) in table {
        let page = page.replace("ROW", ROW).replace("CONTROL", CONTROL);
        let files = files_of([(PAGE, page.as_str()), ("tests/tests/a.rs", TESTS)]);
        let complaints = unproved_threats(&files);
        assert_eq!(complaints.len(), usize::from(!expected.is_empty()), "{page}: {complaints:?}");
        let found = complaints.iter().all(|complaint| complaint.contains(expected));
        assert!(found, "{expected}: {complaints:?}");
    }
}
