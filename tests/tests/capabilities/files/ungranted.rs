//! Paths outside of the granted directories do not exist for a tool, and observers are told of
//! them.

use serde_json::{Value, json};
use toolcell::grants::{Access, Denial, Layer, Suggestion};
use toolcell::runtime::Placement;
use toolcell::{CallOptions, Completion, Component, Grants};
use toolcell_test_guests::rows;
use toolcell_tests::{engine, load_with};

use super::{BIG, granted, load, narrowed, tree};
use crate::{complete, denial, observed};

/// Calls the only tool. Returns the completion, and the denials that observers got.
fn called(
    component: &Component,
    arguments: &Value,
    options: CallOptions,
) -> (Completion, Vec<Denial>) {
    let (executor, denials) = observed(denial);
    let completion = complete(&executor, &component.tools()[0], arguments, options);
    let denials = std::mem::take(&mut *denials.lock().expect("no panic"));
    (completion, denials)
}

/// Runs the steps. Returns the answer of each, and the denials.
fn denied(
    component: &Component,
    steps: &[&[&str]],
    options: CallOptions,
) -> (Vec<String>, Vec<Denial>) {
    let (completion, denials) = called(component, &json!({ "steps": steps }), options);
    (super::answers(&completion), denials)
}

fn grant(directory: &str, access: &str) -> String {
    format!(
        "directories = [{{ name = \"{directory}\", path = \"{}\", access = \"{access}\" }}]",
        Suggestion::PLACEHOLDER
    )
}

/// The guest's standard library makes no host call if no directory's name is a prefix of the path.
#[test]
fn ungranted_path_is_reported_with_its_directory() {
    let dir = tree();
    std::fs::write(dir.path().join("there"), "x").expect("a file");
    let nothing = load(Grants::default());
    let data = load(granted(&[("/data", dir.path(), Access::Read, BIG)]));
    for (step, request, directory, access) in rows::<(Vec<&str>, &str, &str, &str)>(
        "capabilities/files/ungranted",
        "ungranted_path_is_reported_with_its_directory",
    ) {
        for component in [&nothing, &data] {
            let (answers, denials) = denied(component, &[&step], CallOptions::default());
            assert!(["NotFound", "no-entry"].contains(&&*answers[0]), "{step:?}: {answers:?}");
            let [only] = denials.as_slice() else { panic!("{step:?}: {denials:?}") };
            assert_eq!((only.layer, &*only.request), (Layer::Component, request), "{step:?}");
            assert_eq!(only.grant.as_deref(), Some(&*grant(directory, access)), "{step:?}");
        }
    }
    // A file that is missing in a granted directory is no denial, nor is an empty root.
    let steps: [&[&str]; 2] = [&["read", "/data/missing"], &["read", "/data/there"]];
    let (answers, denials) = denied(&data, &steps, CallOptions::default());
    assert_eq!((answers[0].as_str(), answers[1].as_str(), denials.len()), ("NotFound", "x", 0));
    let (_, denials) = denied(&data, &[&["read", "/data/there"]], narrowed(&[]));
    assert_eq!(denials.iter().map(|denial| denial.layer).collect::<Vec<_>>(), [Layer::Call]);
}

/// A tool that declares its needs gets no denial for other files that its runtime looks for, unless
/// they were granted: then the declaration lacks them.
#[test]
fn denials_cover_only_declared_or_granted_paths() {
    const NEED: &[u8] = b"read /data";
    let dir = tree();
    for (declared, granted, expected) in [
        (NEED, false, &[(Layer::Component, "read /data/unit.txt")][..]),
        (b"read /docs", false, &[]),
        (b"read /docs", true, &[(Layer::Declaration, "read /data/unit.txt")]),
    ] {
        let mut bytes = toolcell_test_guests::bytes("forecast");
        for at in 0..bytes.len() - NEED.len() {
            if bytes[at..].starts_with(NEED) {
                bytes[at..at + NEED.len()].copy_from_slice(declared);
            }
        }
        let mut grants = if granted {
            self::granted(&[("/data", dir.path(), Access::Read, BIG)])
        } else {
            Grants::default()
        };
        grants.environment.insert("CITY".into(), "Bern".into());
        let engine = engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
        let component = load_with(&engine, bytes, grants).expect("it loads");
        let day = json!({ "day": "2026-03-03" });
        let (completion, denials) = called(&component, &day, CallOptions::default());
        let told = serde_json::to_string(&completion.result).expect("JSON");
        assert!(told.contains("/unit.txt: No such file or directory"), "{told}");
        let denied = denials.iter().map(|denial| (denial.layer, &*denial.request));
        assert_eq!(denied.collect::<Vec<_>>(), expected);
    }
}
