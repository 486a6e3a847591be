//! Runs file operations in three ways: on the machine itself, in the engine's own WASI host, and in
//! this host, with the same code of a guest.
//!
//! In: `operations.txt`, scripts of operations, each in a directory of its own. `differences.txt`
//! lists where the three differ, and why; an unlisted difference fails, and so does a listed one
//! that is gone.

#[path = "../../../guests/rust/scribe/src/operations.rs"]
mod operations;
mod plain;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toolcell::grants::{Access, Directory};
use toolcell::runtime::Placement;
use toolcell::{CallOptions, Executor, Grants, Limits};
use toolcell_tests::engine;

use crate::{complete, load};

const OPERATIONS: &str = include_str!("operations.txt");
const DIFFERENCES: &str = include_str!("differences.txt");

/// The results of one operation: on the machine, in the engine's own host, and in this host.
type Results = [String; 3];

/// Returns the scripts by name.
fn scripts() -> Vec<(&'static str, Vec<String>)> {
    let script = |text: &'static str| {
        let (name, lines) = text.split_once('\n').expect("a name");
        (name, lines.lines().map(str::to_owned).collect())
    };
    OPERATIONS.split("# ").filter(|text| !text.is_empty()).map(script).collect()
}

/// Runs `work` with a new directory inside of one that no other test uses.
fn room<T>(work: impl FnOnce(&Path) -> T) -> T {
    let around = tempfile::tempdir().expect("a directory");
    let inside = around.path().join("inside");
    std::fs::create_dir(&inside).expect("a directory");
    work(&inside)
}

fn here(dir: &Path, script: &[String]) -> Vec<String> {
    let mut grants = Grants::default();
    grants.directories.push(Directory::new("/data", dir, Access::Write).expect("a name"));
    let engine = engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
    let component = load(&engine, "scribe", grants).expect("it loads");
    let limits = Limits { fuel: u64::MAX, timeout: Duration::from_secs(60), ..Limits::default() };
    let executor = Executor::new().with_limits(limits);
    let script = json!({ "script": script });
    let completion = complete(&executor, &component.tools()[0], &script, CallOptions::default());
    let value = completion.result.value().unwrap_or_else(|| panic!("{completion:?}"));
    serde_json::from_str(value.as_str()).expect("a list of texts")
}

/// Returns the listed differences: by script, line number in it, and operation.
fn listed() -> BTreeMap<String, Results> {
    let mut listed = BTreeMap::new();
    let mut reason = "";
    for line in DIFFERENCES.lines().filter(|line| !line.is_empty()) {
        if let Some(text) = line.strip_prefix("# ") {
            reason = text;
            continue;
        }
        assert!(!reason.is_empty(), "without a reason: {line}");
        let parts: Vec<_> = line.split(" | ").map(str::to_owned).collect();
        let [operation, machine, engine, here] =
            <[String; 4]>::try_from(parts).expect("four parts");
        let before = listed.insert(operation, [machine, engine, here]);
        assert!(before.is_none(), "twice: {line}");
    }
    listed
}

#[test]
fn file_operations_differ_only_as_listed() {
    let plain = plain::Host::new(&toolcell_test_guests::bytes("scribe"));
    let (mut found, mut operations) = (BTreeMap::new(), 0);
    for (name, script) in scripts() {
        let ways = [
            room(|dir| operations::run(dir, &script)),
            room(|dir| plain.run(dir, &script)),
            room(|dir| here(dir, &script)),
        ];
        for (index, operation) in script.iter().enumerate() {
            operations += 1;
            let results = ways.each_ref().map(|results| results[index].clone());
            if results.iter().any(|result| *result != results[0]) {
                found.insert(format!("{name} {}: {operation}", index + 1), results);
            }
        }
    }
    let listed = listed();
    let mut wrong = String::new();
    for (operation, [machine, engine, here]) in &found {
        if listed.get(operation) != found.get(operation) {
            let _ = writeln!(wrong, "{operation} | {machine} | {engine} | {here}");
        }
    }
    for operation in listed.keys().filter(|operation| !found.contains_key(*operation)) {
        let _ = writeln!(wrong, "listed, and the same now: {operation}");
    }
    assert!(operations >= 250, "{operations} operations");
    assert_eq!(wrong, "", "differences that are not listed as they are:\n{wrong}");
}
