//! Under a file-size limit of the process (`ulimit -f`), a write beyond it fails alone with an
//! error.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use toolcell::grants::{Access, Directory, DirectoryQuota};
use toolcell::runtime::Placement;
use toolcell::{CallOptions, Completion, Component, Executor, Grants, Limits};
use toolcell_tests::{ending, engine, own_process};

use crate::{complete, load};

/// Bytes of a file at most.
const LIMIT: u64 = 4 << 20;
/// Bytes of a file that is too large.
const TOO_MUCH: &str = "20000000";

fn call(component: &Component, steps: &[&[&str]]) -> Completion {
    let limits = Limits { timeout: Duration::from_secs(30), ..Limits::default() };
    let executor = Executor::new().with_limits(limits);
    complete(&executor, &component.tools()[0], &json!({ "steps": steps }), CallOptions::default())
}

#[test]
fn write_past_file_size_limit_fails_alone() {
    own_process::run(module_path!(), "write_past_file_size_limit_fails_alone", under_the_limit);
}

fn under_the_limit() {
    let limit = Rlimit { current: Some(LIMIT), maximum: getrlimit(Resource::Fsize).maximum };
    setrlimit(Resource::Fsize, limit).expect("a process may have less");
    let dir = tempfile::tempdir().expect("a directory");
    let room = DirectoryQuota { bytes: 64 << 20, files: 100 };
    let mut grants = Grants::default();
    grants
        .directories
        .push(Directory::new("/data", dir.path(), Access::Write).expect("a name").with_quota(room));
    let engine = engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
    let component = load(&engine, "clerk", grants).expect("it loads");
    let ended =
        call(&component, &[&["write", "/data/large", TOO_MUCH], &["write", "/data/small", "10"]]);
    let told = ended.result.value().unwrap_or_else(|| panic!("{ended:?}")).to_value();
    assert!(told[0] != "done" && told[1] == "done", "{told}");
    assert_eq!(ending(&call(&component, &[&["resize", "/data/small", TOO_MUCH]]).result), "ok");
}
