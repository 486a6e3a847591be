//! Streams of files: what they bring is what is there.

use std::fs;

use toolcell::Access;

use super::{BIG, expect, granted, load, run, tree};

/// One stream, waited for in each way, of a file that is written to and cut off between its reads.
/// Seen to fail with what a read leaves kept for the next.
#[test]
fn a_stream_brings_what_is_there() {
    let dir = tree();
    let component = load(granted(&[("/data", dir.path(), Access::Write, BIG)]));
    for (then, expected) in [
        (&["blocking-2", "ABCDEF", "blocking-2", "blocking-9"] as &[&str], "[01] [CD] [EF6789]"),
        (&["blocking-2", "cut-3", "blocking-9", "blocking-9"], "[01] [2] closed"),
        // The end is where the file ends now.
        (&["blocking-10", "blocking-1", "0123456789ab", "blocking-9"], "[0123456789] closed [ab]"),
        // Read as far as was asked, and no further, whatever is waited for.
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

/// A file that another process writes to, in effect: the host itself.
#[test]
fn what_others_write_is_seen() {
    let dir = tree();
    fs::write(dir.path().join("f"), "first").expect("a file");
    let component = load(granted(&[("/data", dir.path(), Access::Read, BIG)]));
    assert_eq!(run(&component, &[&["read", "/data/f"]]), ["first"]);
    fs::write(dir.path().join("f"), "second").expect("a file");
    assert_eq!(run(&component, &[&["read", "/data/f"]]), ["second"]);
}
