//! Streams of files return the content at the moment of each read.

use std::fs;

use toolcell::grants::Access;
use toolcell_test_guests::rows;

use super::{BIG, expect, granted, load, run, tree};

/// Reads one stream in each way, while the file is written to and truncated between the reads.
/// Fails without: reading anew in place of keeping the rest of a read.
#[test]
fn stream_reads_current_file_content() {
    let dir = tree();
    let component = load(granted(&[("/data", dir.path(), Access::Write, BIG)]));
    for (then, expected) in
        rows::<(Vec<&str>, &str)>("capabilities/files/streams", "stream_reads_current_file_content")
    {
        fs::write(dir.path().join("f"), "0123456789").expect("a file");
        let step = [&["stream", "/data/f"], &then[..]].concat();
        expect(&component, &[(step.as_slice(), expected)]);
    }
}

/// Here the host writes to the file, in place of another process.
#[test]
fn external_writes_are_visible() {
    let dir = tree();
    fs::write(dir.path().join("f"), "first").expect("a file");
    let component = load(granted(&[("/data", dir.path(), Access::Read, BIG)]));
    assert_eq!(run(&component, &[&["read", "/data/f"]]), ["first"]);
    fs::write(dir.path().join("f"), "second").expect("a file");
    assert_eq!(run(&component, &[&["read", "/data/f"]]), ["second"]);
}
