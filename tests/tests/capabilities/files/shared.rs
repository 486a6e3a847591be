//! Processes that were granted the same directory share its room.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use toolcell::grants::{Access, DirectoryQuota};
use toolcell::{CallOptions, Component, Engine};
use toolcell_tests::ending;

use super::room::bytes_in;
use super::{FULL, call, expect, expect_rows, granted, load_on, tree};

/// The variables of a child process: the directory, the directory of counts, and the prefix of its
/// files.
const CHILD: [&str; 3] = ["TOOLCELL_TEST_GRANTED", "TOOLCELL_TEST_COUNTS", "TOOLCELL_TEST_FILES"];
const ROOM: DirectoryQuota = DirectoryQuota { bytes: 20_000, files: 1000 };
const PROCESSES: usize = 6;

fn load(dir: &Path, counts: &Path) -> Component {
    let engine =
        Engine::builder().cells(4).cache(Path::new(env!("CARGO_TARGET_TMPDIR")).join("artifacts"));
    let engine = engine.directory_counts(counts).build().expect("an engine");
    load_on(&engine, granted(&[("/data", dir, Access::Write, ROOM)])).expect("it loads")
}

fn child(dir: &Path, counts: &Path, files: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "files::shared::child_fills_its_granted_quota"]).stdout(Stdio::null());
    for (name, value) in
        CHILD.into_iter().zip([dir.as_os_str(), counts.as_os_str(), files.as_ref()])
    {
        command.env(name, value);
    }
    command.spawn().expect("it starts")
}

/// Appends 100 bytes at a time to 100 files, which is half of the room; appends that do not fit are
/// refused. Does nothing without a parent.
#[test]
fn child_fills_its_granted_quota() {
    let [Some(dir), Some(counts), Some(files)] = CHILD.map(std::env::var_os) else { return };
    let component = load(Path::new(&dir), Path::new(&counts));
    let names: Vec<_> = (0..100).map(|file| format!("/data/{}-{file}", files.display())).collect();
    for names in names.chunks(10) {
        let steps: Vec<_> = names.iter().map(|name| ["append", name, "100"]).collect();
        let steps: Vec<_> = steps.iter().map(|step| step.as_slice()).collect();
        assert_eq!(ending(&call(&component, "1", &steps, CallOptions::default()).result), "ok");
    }
}

/// Fails without: a count that processes share.
#[test]
fn processes_share_the_quota_exactly() {
    let (dir, counts) = (tree(), tree());
    let children: Vec<_> =
        (0..PROCESSES).map(|at| child(dir.path(), counts.path(), &at.to_string())).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    assert_eq!(bytes_in(dir.path()), ROOM.bytes);
    let component = load(dir.path(), counts.path());
    expect_rows(&component, "shared", "processes_share_the_quota_exactly");
}

/// A process is killed at random moments while this process uses the same directory: the remaining
/// room stays exact to the byte.
#[test]
fn killed_process_leaves_an_exact_quota_count() {
    let (dir, counts) = (tree(), tree());
    let component = load(dir.path(), counts.path());
    for (round, files) in [1, 9, 2, 13, 5, 11, 3, 7, 4, 12, 6, 10].into_iter().enumerate() {
        let mut child = child(dir.path(), counts.path(), &round.to_string());
        let is_written =
            || (0..files).all(|file| dir.path().join(format!("{round}-{file}")).exists());
        while !is_written() && child.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        child.kill().expect("a child");
        child.wait().expect("a child");
    }
    let left = ROOM.bytes - bytes_in(dir.path());
    let (more, last) = (left.to_string(), "1");
    expect(
        &component,
        &[(&["write", "/data/more", &more], "done"), (&["append", "/data/more", last], FULL)],
    );
    assert_eq!(bytes_in(dir.path()), ROOM.bytes);
}
