//! A directory that changes while a path is resolved, and a kernel without the system call that
//! resolves paths safely.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use toolcell::grants::Access;

use super::{BIG, granted, load, run, tree};

/// The numbers of `openat2` and of its errno on x86-64 and ARM. Source: `asm-generic/unistd.h`.
const OPENAT2: i64 = 437;
const ENOSYS: u32 = 38;
/// The most calls that a reader makes until it has seen the directory and the link in its place.
const ROUNDS: u32 = 200;

/// Stops the swapping thread, also when a reader panics: the test would hang otherwise.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A thread swaps a directory for a link that leads out of it, over and over, while a tool reads
/// through it. Fails without: the resolution of paths beneath the directory.
#[test]
fn swapped_directory_never_leads_outside() {
    let outer = tree();
    let inner = outer.path().join("inner");
    let (door, other) = (inner.join("door"), inner.join("other"));
    fs::create_dir_all(&door).expect("a directory");
    fs::write(door.join("word"), "inside").expect("a file");
    fs::create_dir(outer.path().join("away")).expect("a directory");
    fs::write(outer.path().join("away/word"), "CANARY").expect("a file");
    symlink(outer.path().join("away"), &other).expect("a link");
    let component = load(granted(&[("/data", &inner, Access::Read, BIG)]));
    let over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                renameat_with(CWD, &door, CWD, &other, RenameFlags::EXCHANGE).expect("two names");
            }
        });
        let _over = Over(&over);
        let mut all = Vec::<String>::new();
        for _ in 0..ROUNDS {
            all.extend(run(&component, &[&["again", "/data/door/word", "500"]]));
            let is_both =
                |seen: &String| seen.contains("inside") && seen.contains("PermissionDenied");
            if all.len() > 20 && all.iter().any(is_both) {
                break;
            }
        }
        all
    });
    assert!(seen.iter().all(|seen| !seen.contains("CANARY")), "{seen:?}");
    assert!(seen.iter().any(|seen| seen.contains("inside")), "the door was never open: {seen:?}");
    let is_swapped = seen.iter().any(|seen| seen.contains("PermissionDenied"));
    assert!(is_swapped, "the door was never swapped: {seen:?}");
}

/// A file is swapped for a pipe, over and over, while a tool reads it: the pipe is refused without
/// waiting for it or reading it.
#[test]
fn file_swapped_for_pipe_is_refused_without_waiting() {
    let dir = tree();
    let (file, pipe) = (dir.path().join("file"), dir.path().join("pipe"));
    fs::write(&file, "inside").expect("a file");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    let component = load(granted(&[("/data", dir.path(), Access::Read, BIG)]));
    let over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                renameat_with(CWD, &file, CWD, &pipe, RenameFlags::EXCHANGE).expect("two names");
            }
        });
        let _over = Over(&over);
        let mut all = BTreeSet::new();
        for _ in 0..ROUNDS {
            let seen = run(&component, &[&["again", "/data/file", "500"]]).remove(0);
            all.extend(seen.split(' ').map(str::to_owned));
            if all.len() > 1 {
                break;
            }
        }
        all
    });
    assert_eq!(seen, ["PermissionDenied", "inside"].map(str::to_owned).into());
}

/// Runs these tests as on a kernel before Linux 5.6: a seccomp filter makes `openat2` fail with
/// `ENOSYS`.
#[test]
fn no_path_escapes_without_openat2() {
    let rules = [(OPENAT2, Vec::new())].into();
    let arch = std::env::consts::ARCH.try_into().expect("an architecture with filters");
    let missing = SeccompAction::Errno(ENOSYS);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, arch).expect("a filter");
    let program: BpfProgram = filter.try_into().expect("a program");
    // A filter holds for its thread and for all that the thread starts.
    let filtered = thread::spawn(move || {
        seccompiler::apply_filter(&program).expect("this thread may filter itself");
        let tests = [
            "files::paths::no_path_escapes_its_directory",
            "files::races::swapped_directory_never_leads_outside",
        ];
        Command::new(std::env::current_exe().expect("this program"))
            .arg("--exact")
            .args(tests)
            .output()
    });
    let output = filtered.join().expect("no panic").expect("it starts");
    let [said, failed] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && said.contains("2 passed"), "{said}{failed}");
}
