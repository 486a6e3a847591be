//! Tests that a pipe in place of a file does not block, that a file that is too large or no text is
//! refused, and that files of other users, except for those of root, are recognised.

use std::os::unix::fs::PermissionsExt as _;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

/// Simulates a pipe that replaced a file after the check. An `open` that waits would never return.
#[test]
fn pipe_in_place_of_a_file_does_not_block() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("component.wasm");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    for failure in
        [open_what_is_there(&pipe, "a hint").unwrap_err(), open(&pipe, "a hint").unwrap_err()]
    {
        assert!(failure.to_string().ends_with("is a pipe, not a file"), "{failure}");
    }
}

#[test]
fn unusable_file_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    for (bytes, reason) in
        [(vec![b' '; MAX_CONFIG as usize + 1], "is too large"), (vec![0xff], "is not UTF-8")]
    {
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for message in [configuration(&path).unwrap_err().to_string(), secret(&path).unwrap_err().0]
        {
            assert!(message.contains(reason), "{message}");
        }
    }
    fs::write(dir.path().join("greet.wasm"), "").unwrap();
    let hint = component(&dir.path().join("greet")).unwrap_err().hint();
    assert!(hint.starts_with("did you mean") && hint.contains("greet.wasm"), "{hint}");
}

#[test]
fn files_of_other_users_are_foreign_except_roots() {
    for (owner, me, expected) in
        [(1000, 1000, false), (0, 1000, false), (0, 0, false), (1001, 1000, true), (1000, 0, true)]
    {
        assert_eq!(is_untrusted_owner(owner, me), expected, "a file of {owner} for {me}");
    }
    let own = tempfile::NamedTempFile::new().unwrap();
    assert_eq!((foreign(own.path()), foreign(Path::new("no such file"))), (None, None));
}
