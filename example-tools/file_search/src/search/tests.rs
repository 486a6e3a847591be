//! Searches through temporary folders.

use super::*;

/// Creates a temporary folder with these files.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, content).expect("a file");
    }
    folder
}

fn some() -> tempfile::TempDir {
    folder(&[
        ("b.md", b"one\nTwo three\n"),
        ("a.txt", b"two\n"),
        ("deep/er/c.md", "größe two".as_bytes()),
        ("picture.png", &[0xff, 0, 0xff]),
    ])
}

const ANY: Query<'_> = Query { text: None, name: None, ignore_case: false, most: 50 };

fn places(found: &Matches) -> Vec<(&str, Option<usize>)> {
    found.matches.iter().map(|found| (found.path.as_str(), found.line)).collect()
}

#[test]
fn search_matches_by_text_name_or_both() {
    let root = some();
    let search = |query: Query<'_>| query.search(root.path(), "").expect("found");
    let found = search(Query { text: Some("two"), ..ANY });
    assert_eq!(places(&found), [("a.txt", Some(1)), ("deep/er/c.md", Some(1))]);
    assert_eq!((found.files, found.unread, found.stopped), (4, 1, false));
    let found = search(Query { text: Some("TWO"), ignore_case: true, ..ANY });
    assert_eq!(places(&found), [("a.txt", Some(1)), ("b.md", Some(2)), ("deep/er/c.md", Some(1))]);
    assert_eq!(found.matches[1].text.as_deref(), Some("Two three"));
    let found = search(Query { name: Some("*.md"), ..ANY });
    assert_eq!(places(&found), [("b.md", None), ("deep/er/c.md", None)]);
    assert_eq!(
        places(&search(Query { text: Some("two"), name: Some("?.md"), ..ANY })),
        [("deep/er/c.md", Some(1))]
    );
    assert_eq!(places(&search(Query { text: Some("four"), ..ANY })), []);
}

#[test]
fn search_stays_below_the_folder() {
    let root = some();
    let found = Query { name: Some("*"), ..ANY }.search(root.path(), "deep").expect("found");
    assert_eq!(places(&found), [("deep/er/c.md", None)]);
    let failure =
        Query { name: Some("*"), ..ANY }.search(root.path(), "gone").expect_err("no such folder");
    assert!(
        failure.message().contains("ask the operator to grant this tool a directory"),
        "{failure:?}"
    );
}

#[test]
fn search_bounds_matches_file_size_and_depth() {
    let root =
        folder(&[("a", b"x\nx\nx"), ("b", b"x"), ("large", &vec![b'x'; MAX_FILE as usize + 1])]);
    let found = Query { text: Some("x"), most: 2, ..ANY }.search(root.path(), "").expect("found");
    assert_eq!((places(&found), found.stopped), (vec![("a", Some(1)), ("a", Some(2))], true));
    let found = Query { text: Some("x"), ..ANY }.search(root.path(), "").expect("found");
    assert_eq!((found.matches.len(), found.unread, found.stopped), (4, 1, false));
    let deep = folder(&[(&format!("{}x", "d/".repeat(MAX_DEPTH)), b"x")]);
    assert_eq!(Query { text: Some("x"), ..ANY }.search(deep.path(), "").expect("found").unread, 1);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let (root, outside) = (folder(&[("a", b"x")]), folder(&[("secret", b"x")]));
    std::os::unix::fs::symlink(outside.path(), root.path().join("folder")).expect("a link");
    std::os::unix::fs::symlink(outside.path().join("secret"), root.path().join("file"))
        .expect("a link");
    let found = Query { text: Some("x"), ..ANY }.search(root.path(), "").expect("found");
    assert_eq!(places(&found), [("a", Some(1))]);
}
