//! Tests of granted directories: the count when they are opened, and the removal of scratch
//! directories.

#![allow(
    clippy::field_reassign_with_default,
    reason = "grants are made field by field, as embedders make them"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use toolcell_contract::definition::Definition;
use toolcell_contract::grants::DirectoryQuota;

use super::*;

fn all(grants: &Grants) -> Rights {
    Rights::new(Arc::new(grants.clone()), &Definition::new("t", "").unwrap()).unwrap()
}

/// Fails without: links left unfollowed, and a file with several names counted once.
#[test]
fn usage_count_does_not_follow_links() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(elsewhere.path().join("big"), [0; 5000]).unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub/a"), [0; 100]).unwrap();
    fs::hard_link(dir.path().join("sub/a"), dir.path().join("b")).unwrap();
    symlink(elsewhere.path(), dir.path().join("away")).unwrap();
    let mut grants = Grants::default();
    grants.directories.push(Directory::new("/data", dir.path(), Access::Write).unwrap());
    let mounts = Mounts::open(&grants, None).unwrap().unwrap();
    let roots = mounts.roots(&all(&grants)).unwrap();
    let link = elsewhere.path().as_os_str().len() as u64;
    assert_eq!(roots[0].area.as_ref().unwrap().used(), (100 + link, 4));
}

/// Small and large directories with links to a canary. Fails without: the directory's removal.
#[test]
fn scratch_is_removed_without_following_links() {
    let canary = tempfile::tempdir().unwrap();
    fs::write(canary.path().join("canary"), "alive").unwrap();
    let mut grants = Grants::default();
    grants.scratch = Some(DirectoryQuota::default());
    let mounts = Mounts::open(&grants, None).unwrap().unwrap();
    let parent = mounts.scratch.as_ref().unwrap().path().to_owned();
    for files in [3, 40] {
        let scratch = mounts.scratch(&all(&grants)).unwrap().unwrap();
        let Root { dir, area, .. } = scratch.root("scratch").unwrap();
        let area = area.unwrap();
        let own = fs::read_dir(&parent).unwrap().next().unwrap().unwrap().path();
        for file in 0..files {
            area.create_directory(&dir, &file.to_string()).unwrap();
            symlink(canary.path(), own.join(format!("link-{file}"))).unwrap();
        }
        drop(scratch);
        // The large directory is removed on another thread.
        let patience = Instant::now() + Duration::from_secs(20);
        while fs::read_dir(&parent).unwrap().next().is_some() {
            assert!(Instant::now() < patience, "it is still there");
            std::thread::yield_now();
        }
        let late = area.create_directory(&dir, "late").unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_to_string(canary.path().join("canary")).unwrap(), "alive");
    }
    drop(mounts);
    assert!(!parent.exists());
}

/// Fails without: the distinction between exhausted descriptors and a missing directory.
#[test]
fn descriptor_exhaustion_is_not_a_missing_directory() {
    let of = |errno: Errno| if_present(Err(errno.into()), "/data");
    for gone in [Errno::NOENT, Errno::LOOP, Errno::NOTDIR] {
        assert!(of(gone).unwrap().is_none());
    }
    for full in [Errno::MFILE, Errno::NFILE] {
        assert!(is_exhausted(&of(full).unwrap_err()));
    }
}
