//! Files that come with a call.

use toolcell::call::CallFiles;
use toolcell::{CallOptions, Grants};

use super::{answers, call, load};

#[test]
fn call_files_are_read_only_and_private() {
    let component = load(Grants::default());
    let files = CallFiles::new().unwrap();
    assert_eq!(files.add("a.csv", &b"1,2"[..]).unwrap(), "/input/a.csv");
    let with_files = || CallOptions { files: Some(files.clone()), ..CallOptions::default() };
    let look: [&[&str]; 2] = [&["list", "/input"], &["read", "/input/a.csv"]];
    let read = call(&component, "1", &look, with_files());
    assert_eq!(answers(&read), ["a.csv", "1,2"]);
    let changes: [&[&str]; 6] = [
        &["write", "/input/a.csv", "9"],
        &["write", "/input/new", "9"],
        &["remove", "/input/a.csv"],
        &["rename", "/input/a.csv", "/input/b.csv"],
        &["make", "/input/dir"],
        &["read", "/input/../../etc/passwd"],
    ];
    let denied = answers(&call(&component, "2", &changes, with_files()));
    let is_denied = |answer: &String| answer != "done" && !answer.contains("root:");
    assert!(denied.iter().all(is_denied), "{denied:?}");
    let after = call(&component, "3", &look, with_files());
    assert_eq!(answers(&after), ["a.csv", "1,2"]);
    // Another call of the same component has none of these files.
    let other =
        answers(&call(&component, "4", &[&["read", "/input/a.csv"]], CallOptions::default()));
    assert_ne!(other, ["1,2"]);
}
