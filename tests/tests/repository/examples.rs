//! Runs the library's examples and compares what they print.
//!
//! Parts that differ from run to run (times, fuel, memory) are not compared. An example that no
//! test runs, that is too long or that the page on embedding does not list is a failure.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use toolcell_test_guests::rows;

use crate::root;

/// The largest number of lines of an example, so that it shows one thing.
const MAX_LINES: usize = 80;

/// Returns the output of an example, run as a reader runs it: from the root, without arguments.
fn printed(name: &str) -> String {
    let test = std::env::current_exe().expect("this test's path");
    let example = test.ancestors().nth(2).expect("target/PROFILE").join("examples").join(name);
    assert!(
        example.is_file(),
        "`{name}` is not built: run `cargo test --workspace`, which builds it before any test runs"
    );
    let output = Command::new(example).current_dir(root()).output().expect("the example starts");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert!(output.status.success() && stderr.is_empty(), "{}\n{stdout}{stderr}", output.status);
    stdout
}

macro_rules! examples {
    ($($name:ident)*) => {
        const RUN: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            let filters = rows::<(&str, &str)>("repository/examples", "filters");
            insta::with_settings!({ filters => filters }, {
                insta::assert_snapshot!(stringify!($name), printed(stringify!($name)));
            });
        })*
    };
}

examples! {
    agent_loop agui batch configuration embed follow grants kv mixed question retry secrets serving
    tenants worker_processes
}

#[test]
fn every_library_example_is_run() {
    let files = fs::read_dir(root().join("host/core/examples")).expect("the examples");
    let paths = files.map(|file| file.expect("an entry").path());
    let programs = paths.filter(|path| {
        path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("lib.rs")
    });
    let names =
        programs.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned());
    let names: BTreeSet<_> = names.collect();
    assert_eq!(names, RUN.iter().map(ToString::to_string).collect());
}

#[test]
fn examples_are_short_and_listed() {
    let page = fs::read_to_string(root().join("docs/embedding.md")).expect("the page");
    for name in RUN {
        let path = format!("host/core/examples/{name}.rs");
        let text = fs::read_to_string(root().join(&path)).expect("the example");
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "`{path}` has {lines} lines, more than {MAX_LINES}");
        assert!(page.contains(&path), "docs/embedding.md does not list `{path}`");
    }
}
