//! Tests the messages that a tool gets about a failure.

use std::fs;

use serde_json::json;
use toolcell::grants::{Access, DirectoryQuota};
use toolcell::{CallOptions, Event};
use toolcell_tests::own_process;

use super::{BIG, expect, granted, load, tree};
use crate::{complete, observed};

/// Makes a write that does not fit, in a process with backtraces of errors turned on. Fails
/// without: the host's own text in place of the error's, which then contains functions and paths of
/// the host.
#[test]
fn file_error_text_reveals_nothing_of_the_host() {
    if !own_process::is_entered() {
        let test = "file_error_text_reveals_nothing_of_the_host";
        let mut own = own_process::command(module_path!(), test);
        own.env("RUST_BACKTRACE", "1").env("RUST_LIB_BACKTRACE", "1");
        own_process::assert_passed(&own.output().expect("it starts"));
        return;
    }
    let dir = tree();
    let little = DirectoryQuota { bytes: 10, files: 10 };
    let component = load(granted(&[("/data", dir.path(), Access::Write, little)]));
    expect(&component, &[(&["failure", "/data/a", "11"], "no storage space")]);
}

/// Byte 18 of an SQLite database is 2 in WAL mode. Source: SQLite, database file format, 1.3.
#[test]
fn wal_mode_database_is_logged() {
    let dir = tree();
    for (name, version) in [("wal.db", 2), ("plain.db", 1)] {
        let mut bytes = b"SQLite format 3\0".to_vec();
        bytes.resize(512, 0);
        bytes[18] = version;
        fs::write(dir.path().join(name), bytes).expect("a file");
    }
    fs::write(dir.path().join("note.txt"), "SQLite format 3").expect("a file");
    let component = load(granted(&[("/data", dir.path(), Access::Read, BIG)]));
    let (executor, logged) =
        observed(|event| if let Event::Log { message, .. } = event { Some(message) } else { None });
    let steps = ["wal.db", "plain.db", "note.txt"]
        .map(|name| ["size", "look"].map(|word| [word.to_owned(), format!("/data/{name}")]));
    let steps = json!({ "steps": steps.concat() });
    complete(&executor, &component.tools()[0], &steps, CallOptions::default());
    let logged = logged.lock().expect("no panic");
    assert!(
        matches!(&**logged, [only] if only.starts_with("`wal.db` is a SQLite database in WAL mode")),
        "{logged:?}"
    );
}
