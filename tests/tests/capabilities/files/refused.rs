//! Directories that are refused when a component is loaded.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use toolcell::grants::{Access, DirectoryQuota};
use toolcell::runtime::Placement;
use toolcell::{Error, Grants};
use toolcell_test_guests::rows;
use toolcell_tests::engine;

use super::{BIG, granted, load_on, tree};

fn refused(grants: Grants) -> Error {
    let engine = engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
    let error = load_on(&engine, grants).expect_err("it is refused");
    assert!(error.is_directory() && !error.hint().is_empty(), "{error}");
    error
}

#[test]
fn unmountable_directory_is_named_with_a_hint() {
    let dir = tree();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "").expect("a file");
    fs::create_dir_all(at("one/sub")).expect("a directory");
    symlink("one", at("link")).expect("a link");
    symlink("/", at("root")).expect("a link");
    symlink("/etc", at("one/etc")).expect("a link");
    fs::create_dir_all(at(".ssh/sub")).expect("a directory");
    for (path, expected) in rows::<(&str, &str)>(
        "capabilities/files/refused",
        "unmountable_directory_is_named_with_a_hint",
    ) {
        let error = refused(granted(&[("/data", &at(path), Access::Read, BIG)]));
        let said = error.to_string();
        for part in [expected, "/data", path.trim_end_matches('/')] {
            assert!(said.contains(part), "{path}: {said}");
        }
    }
    let (one, sub) = (at("one"), at("one/sub"));
    let around = at("root").join(sub.strip_prefix("/").expect("absolute"));
    for directories in [
        [("/a", one.as_path(), Access::Read, BIG), ("/b", &sub, Access::Write, BIG)],
        [("/a", &sub, Access::Write, BIG), ("/b", &one, Access::Read, BIG)],
        [("/a", &one, Access::Write, BIG), ("/b", &one, Access::Write, BIG)],
        [("/a", &one, Access::Write, BIG), ("/b", &around, Access::Read, BIG)],
    ] {
        let said = refused(granted(&directories)).to_string();
        assert!(said.contains("overlaps with the directory `/a`"), "{said}");
    }
    let twice = [("/a", one.as_path(), Access::Read, BIG), ("/a", &sub, Access::Read, BIG)];
    let error = refused(granted(&twice));
    assert!(error.to_string().contains("another directory has this name"), "{error}");
    let mut grants = granted(&[("/scratch", &one, Access::Read, BIG)]);
    grants.scratch = Some(DirectoryQuota::default());
    assert!(refused(grants).to_string().contains("another directory has this name"));
}

/// Fails without: the entries of `SYSTEM`, or those of `SHARED`.
#[test]
fn system_and_shared_directories_are_refused() {
    let roots =
        rows::<&str>("capabilities/files/refused", "system_and_shared_directories_are_refused");
    let there: Vec<_> = roots.into_iter().filter(|root| Path::new(root).is_dir()).collect();
    assert!(there.len() >= 20, "{there:?}");
    for root in there {
        for path in
            [root.to_owned(), format!("{root}/"), format!("{root}/."), format!("/tmp/..{root}")]
        {
            refused(granted(&[("/data", Path::new(&path), Access::Read, BIG)]));
        }
    }
}
