//! Streams of files return the content at the moment of each read.

use std::fs;

use toolcell::grants::Access;

use super::{BIG, expect, granted, load, run, tree};

/// Reads one stream in each way, while the file is written to and truncated between the reads.
/// Fails without: reading anew in place of keeping the rest of a read.
#[test]
fn stream_reads_current_file_content() {
    let dir = tree();
    let component = load(granted(&[("/data", dir.path(), Access::Write, BIG)]));
    for (then, expected) in [
        (&["blocking-2", "ABCDEF", "blocking-2", "blocking-9"] as &[&str], "[01] [CD] [EF6789]"),
        (&["blocking-2", "cut-3", "blocking-9", "blocking-9"], "[01] [2] closed"),
        // The stream ends at the current end of the file.
        (&["blocking-10", "blocking-1", "0123456789ab", "blocking-9"], "[0123456789] closed [ab]"),
        // A read takes no more than was asked for, in every way of waiting.
        (&["read-2", "poll", "read-2", "ABCDEF", "read-2", "poll", "read-2"], "[] [01] [] [CD]"),
        (&["poll", "read-2", "ABCDEF", "poll", "read-2"], "[01] [CD]"),
        (&["poll", "ABCDEF", "blocking-4"], "[ABCD]"),
        (&["read-4", "poll", "ABCDEF", "blocking-4"], "[] [ABCD]"),
        (&["poll", "read-99", "poll", "read-1", "poll", "read-1"], "[0123456789] closed closed"),
        (&["blocking-0", "read-0", "blocking-1"], "[] [] [0]"),
    ] {
        fs::write(dir.path().join("f"), "0123456789").expect("a file");
        let step = [&["stream", "/data/f"], then].concat();
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
