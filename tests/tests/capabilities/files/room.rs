//! Tests limits on bytes and files, and that descriptors are closed.

use std::fs;
use std::path::Path;

use toolcell::CallOptions;
use toolcell::grants::{Access, DirectoryQuota};
use toolcell_tests::ending;

use super::{BIG, call, expect_rows, granted, load, run, tree};

/// Returns the bytes of all files in a directory.
pub(super) fn bytes_in(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).expect("a directory").flatten();
    let files = entries.flat_map(|entry| entry.metadata()).filter(|found| found.is_file());
    files.map(|file| file.len()).sum()
}

/// Fails without: the check in `has_room`, or charging a removed file until it is closed.
#[test]
fn byte_and_file_quotas_are_exact() {
    let dir = tree();
    fs::write(dir.path().join("old"), "0123456789").expect("a file");
    let room = DirectoryQuota { bytes: 1000, files: 5 };
    let component = load(granted(&[("/data", dir.path(), Access::Write, room)]));
    expect_rows(&component, "room", "bytes");
    expect_rows(&component, "room", "files");
}

/// Fails without: one ledger for all mounts of a directory.
#[test]
fn concurrent_cells_share_the_quota() {
    let dir = tree();
    let room = DirectoryQuota { bytes: 10_000, files: 1000 };
    let component = load(granted(&[("/data", dir.path(), Access::Write, room)]));
    let again = load(granted(&[("/data", dir.path(), Access::Write, room)]));
    std::thread::scope(|threads| {
        for cell in 0..8 {
            let component = if cell % 2 == 0 { &component } else { &again };
            threads.spawn(move || {
                let names: Vec<_> = (0..20).map(|file| format!("/data/{cell}-{file}")).collect();
                let steps: Vec<_> = names.iter().map(|name| ["append", name, "100"]).collect();
                run(component, &steps.iter().map(|step| step.as_slice()).collect::<Vec<_>>());
            });
        }
    });
    assert_eq!(bytes_in(dir.path()), 10_000);
}

/// Fails without: the bound on the bytes of one write.
#[test]
fn unawaited_write_is_at_most_64_kib() {
    let dir = tree();
    let component = load(granted(&[("/data", dir.path(), Access::Write, BIG)]));
    for (bytes, expected) in [
        ("65536", "ok"),
        ("65537", "handler_raised/host_call"),
        ("1000000", "handler_raised/host_call"),
    ] {
        let flood =
            call(&component, "1", &[&["flood", "/data/a", "200", bytes]], CallOptions::default());
        assert_eq!(ending(&flood.result), expected, "{bytes}");
    }
}

/// Counts the descriptors of this process that lead into a directory: other tests have their own.
fn descriptors_into(dir: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(dir)))
        .count()
}

/// Fails without: closing the descriptor of each opened file, also of one that was deleted.
#[test]
fn descriptors_are_closed_after_calls() {
    let dir = tree();
    fs::write(dir.path().join("a"), "inside").expect("a file");
    let component = load(granted(&[("/data", dir.path(), Access::Write, BIG)]));
    let before = descriptors_into(dir.path());
    let look: &[&str] = &["look", "/data/a"];
    let (hold, remove): (&[&str], &[&str]) = (&["hold", "/data/b", "1"], &["remove", "/data/b"]);
    let leaves: [&[&str]; 6] = [look, look, hold, remove, &["look", "/data"], &["panic"]];
    for round in 0..4000 {
        let steps = if round % 10 == 0 { &leaves[..] } else { &leaves[..5] };
        let _ = call(&component, "1", steps, CallOptions::default());
    }
    assert_eq!(descriptors_into(dir.path()), before);
}
