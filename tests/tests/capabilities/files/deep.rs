//! Trees that are deeper than the process has descriptors, in a process of its own that has few.

use std::env;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use toolcell::grants::{Access, DirectoryQuota};
use toolcell_tests::own_process;

use super::{BIG, expect, granted, load, tree};

const DESCRIPTORS: u64 = 256;
/// More levels than there are descriptors, and than the longest path can have. Some disks take
/// milliseconds for each.
const LEVELS: u64 = 2_100;

/// A tool makes a deep tree in its own directory and in a granted one, while another tool reads.
/// Fails without: a removal that needs no open descriptor for each level.
#[test]
fn deep_tree_does_not_affect_other_tools() {
    if own_process::is_entered() {
        return with_few_descriptors();
    }
    let temp = tree();
    let mut own = own_process::command(module_path!(), "deep_tree_does_not_affect_other_tools");
    let output = own.env("TMPDIR", temp.path()).output().expect("it starts");
    // The test's own directory has to be removed too, with anything that is left in it.
    let removed = Command::new("rm").arg("-rf").arg(temp.path()).status().expect("rm");
    own_process::assert_passed(&output);
    assert!(removed.success());
}

fn with_few_descriptors() {
    let limit = Rlimit { current: Some(DESCRIPTORS), maximum: getrlimit(Resource::Nofile).maximum };
    setrlimit(Resource::Nofile, limit).expect("a process may have less");
    let (kept, read) = (tree().keep(), tree().keep());
    fs::write(read.join("word"), "inside").expect("a file");
    let room = DirectoryQuota { bytes: 1 << 20, files: LEVELS + 2 };
    let mut grants = granted(&[("/kept", &kept, Access::Write, room)]);
    grants.scratch = Some(DirectoryQuota::default());
    let reader = load(granted(&[("/data", &read, Access::Read, BIG)]));
    let digger = load(grants.clone());
    let levels = LEVELS.to_string();
    expect(&digger, &[(&["deepen", "/scratch", &levels], "done")]);
    let patience = Instant::now() + Duration::from_secs(120);
    loop {
        expect(&reader, &[(&["read", "/data/word"], "inside"), (&["list", "/data"], "word")]);
        if directories_of_calls().next().is_none() {
            break;
        }
        assert!(Instant::now() < patience, "it is still there");
    }
    expect(&digger, &[(&["deepen", "/kept", &levels], "done")]);
    drop(digger);
    assert_eq!(nests().count(), 0, "the place of its own directories is gone with it");
    // The host does not know how much is in the directory: it is counted.
    let digger = load(grants);
    expect(
        &digger,
        &[
            (&["make", "/kept/a"], "done"),
            (&["make", "/kept/b"], "done"),
            (&["make", "/kept/c"], "StorageFull"),
        ],
    );
}

/// Lists the places in which components have the directories of their calls.
fn nests() -> impl Iterator<Item = fs::DirEntry> {
    let temp = fs::read_dir(env::temp_dir()).expect("our own").flatten();
    temp.filter(|entry| entry.file_name().to_string_lossy().starts_with("toolcell-own-"))
}

fn directories_of_calls() -> impl Iterator<Item = fs::DirEntry> {
    nests().flat_map(|nest| fs::read_dir(nest.path())).flatten().flatten()
}
