//! What a tool is told of a failure.

use std::env;
use std::process::Command;

use toolcell::{Access, Room};

use super::{expect, granted, load, tree};

/// Set for the process that runs with backtraces on.
const UNDER: &str = "TOOLCELL_TEST_WITH_BACKTRACES";

/// A write that does not fit, in a process that is told to make backtraces of errors. Seen to fail with the error's own text,
/// which then has the host's functions and paths in it.
#[test]
fn a_failure_is_told_in_the_hosts_own_words_alone() {
    if env::var_os(UNDER).is_none() {
        let mut child = Command::new(env::current_exe().expect("this test"));
        child.args(["told::a_failure_is_told_in_the_hosts_own_words_alone", "--exact", "--nocapture"]);
        child.env(UNDER, "1").env("RUST_BACKTRACE", "1").env("RUST_LIB_BACKTRACE", "1");
        let output = child.output().expect("it starts");
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let dir = tree();
    let component = load(granted(&[("/data", dir.path(), Access::Write, Room { bytes: 10, files: 10 })]));
    expect(&component, &[(&["failure", "/data/a", "11"], "no storage space")]);
}
