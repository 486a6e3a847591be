//! Panics in every function that a tool can call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use toolcell_test_guests::{Function, functions, rows};
use toolcell_tests::{PLACEMENTS, own_process};

use super::parts::Parts;
use super::watch::{self, Moment, When};
use super::{Visitor, silence_intended_panics};

/// Functions that do not return.
const DOORS: [&str; 2] = ["exit", "exit-with-code"];

/// Returns the folder of a package that this test was built from.
fn folder(metadata: &Value, name: &str) -> PathBuf {
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == name).expect(name);
    let manifest = package["manifest_path"].as_str().expect("a path");
    Path::new(manifest).parent().expect("a folder").to_owned()
}

/// Returns cargo's metadata on the packages that this test was built from, for this platform only:
/// a registry that was empty before the build has no others.
fn metadata() -> Value {
    let cargo = || Command::new(std::env::var_os("CARGO").expect("cargo runs this test"));
    let version = cargo().arg("-vV").output().expect("cargo runs").stdout;
    let version = String::from_utf8(version).expect("text");
    let platform = version.lines().find_map(|line| line.strip_prefix("host: "));
    let platform = platform.expect("cargo names its platform");
    let arguments =
        ["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", platform];
    let asked = cargo().args(arguments).output().expect("cargo runs");
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    serde_json::from_slice(&asked.stdout).expect("JSON")
}

/// Returns the functions that are linked and that a tool can call, from the WIT that they are
/// generated from.
fn in_reach() -> BTreeSet<Function> {
    let metadata = metadata();
    let linked = rows::<(&str, &str, Vec<&str>)>("sandbox/panics", "linked");
    let linked = linked
        .into_iter()
        .flat_map(|(name, wit, packages)| functions(&folder(&metadata, name).join(wit), &packages));
    let out_of_reach = rows::<(&str, &str, &str)>("sandbox/panics", "out_of_reach");
    let is_in_reach = |(module, function): &Function| {
        out_of_reach.iter().all(|(of, begins, _)| module != of || !function.starts_with(begins))
    };
    linked.filter(is_in_reach).collect()
}

#[test]
fn panic_in_any_host_function_ends_only_its_call() {
    // The function that panics is chosen for the whole process.
    own_process::run(module_path!(), "panic_in_any_host_function_ends_only_its_call", || {
        silence_intended_panics();
        watch::begin();
        for placement in PLACEMENTS {
            let visitor = Visitor::at(&Parts::default().host(placement, None));
            assert_eq!(visitor.stays(), "ok", "{:?}", visitor.guest.result());
            for door in DOORS {
                assert_eq!(visitor.leaves_by(door), "handler_exit/exited");
            }
            let moments = watch::seen();
            let called = moments.iter().map(|(function, _)| function.clone()).collect();
            let forgotten: Vec<_> = in_reach().difference(&called).cloned().collect();
            assert!(forgotten.is_empty(), "no visitor calls {forgotten:?}");
            for (panics, moment) in (1..).zip(&moments) {
                let (ended, after) = at(&visitor, moment);
                assert_eq!(ended, "handler_raised/host_panic", "{placement:?}, {moment:?}");
                let result = visitor.guest.result();
                assert_eq!(after, "ok", "{placement:?}, after {moment:?}: {result:?}");
                assert_eq!(visitor.guest.statistics().panics, panics, "{placement:?}, {moment:?}");
            }
            assert!(moments.iter().any(|(_, when)| *when == When::Returns));
        }
    });
}

/// Makes a visit that panics at this moment, and another one. Returns the endings of both.
fn at(visitor: &Visitor, moment: &Moment) -> (String, String) {
    let ((_, function), _) = moment;
    let door = DOORS.into_iter().find(|door| door == function);
    watch::panic_at(moment);
    let ended = door.map_or_else(|| visitor.stays(), |door| visitor.leaves_by(door));
    assert!(watch::has_panicked(), "{moment:?} has not come");
    (ended, visitor.stays())
}
