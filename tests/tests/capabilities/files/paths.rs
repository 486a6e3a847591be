//! No path and no link leads out of a directory, and a directory granted for reading stays
//! unchanged.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use toolcell::CallOptions;
use toolcell::grants::Access;
use toolcell_test_guests::rows;

use super::{
    BIG, answers, call, expect, expect_for, expect_rows, granted, load, narrowed, run, tree,
};

/// Content and name of files that no tool may see.
const CANARY: &str = "CANARY";
/// Bytes of the file that contains it: no other file has this size.
const SIZE: usize = 60_921;

/// A granted directory inside of a directory that the tool must not reach.
struct Estate {
    outer: TempDir,
    inner: PathBuf,
}

/// The state outside that must not change: names, content, number of links of the file, time of its
/// last change.
type Outside = (Vec<OsString>, String, u64, SystemTime);

impl Estate {
    fn new() -> Self {
        let outer = tree();
        let inner = outer.path().join("inner");
        fs::create_dir_all(inner.join("sub")).expect("a directory");
        fs::write(outer.path().join("secret"), format!("{CANARY:.<SIZE$}")).expect("a file");
        fs::write(outer.path().join(CANARY), "").expect("a file");
        fs::write(inner.join("plain"), "inside").expect("a file");
        let estate = Self { outer, inner };
        estate.plant();
        estate
    }

    /// Plants links that lead out, again if a tool removed them.
    fn plant(&self) {
        let (secret, outer) = (self.outer.path().join("secret"), self.outer.path());
        let links = [("up", Path::new("../secret")), ("away", outer), ("straight", &secret)];
        for (name, target) in links.into_iter().chain([("winding", Path::new("sub/../../secret"))])
        {
            let _ = fs::remove_file(self.inner.join(name));
            symlink(target, self.inner.join(name)).expect("a link");
        }
        let _ = fs::remove_file(self.inner.join("mine"));
    }

    fn outside(&self) -> Outside {
        let entries = fs::read_dir(self.outer.path()).expect("a directory").flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        let secret = self.outer.path().join("secret");
        let found = secret.metadata().expect("a file");
        let content = fs::read_to_string(secret).expect("text");
        (names, content, found.nlink(), found.modified().expect("a time"))
    }
}

/// Tries every path that leads out of a directory, and links in it that do, with every function
/// that takes a path. Fails without: the resolution of paths beneath the directory.
#[test]
fn no_path_escapes_its_directory() {
    let steps = |table| rows::<Vec<&str>>("capabilities/files/paths", table);
    let (following, staying) = (steps("following"), steps("staying"));
    let refusals = rows::<&str>("capabilities/files/paths", "refusals");
    let estate = Estate::new();
    let absolute = estate.outer.path().join("secret").display().to_string();
    let (slashed, long) =
        (format!("/data/{absolute}"), format!("/data/{}secret", "../".repeat(1400)));
    let (dotted, longest) = ("/data/\u{fffd}/../../secret", format!("/data/{}", "a".repeat(4096)));
    let mut out = rows::<&str>("capabilities/files/paths", "leading_out");
    out.extend([&*absolute, &slashed, &long, &longest]);
    // Links that lead out by their last name alone, which can be inspected themselves, and links
    // that lead nowhere but look like it.
    let links = "/data/up /data/up/ /data/away /data/away/ /data/straight /data/straight/. \
                 /data/winding";
    let links: Vec<_> = links.split(' ').collect();
    let odd = ["/data/%2e%2e/secret", "/data/..\\secret", "/data/\u{ff0e}\u{ff0e}/secret"];
    let (before, mut strange) = (estate.outside(), Vec::new());
    for access in [Access::Read, Access::Write] {
        let component = load(granted(&[("/data", &estate.inner, access, BIG)]));
        for path in ["/data/plain", "/data/sub/../plain"] {
            expect(&component, &[(&["read", path], "inside")]);
        }
        for path in out.iter().chain(&links).copied().chain(odd) {
            estate.plant();
            let at = |step: &Vec<&'static str>| {
                step.iter().map(|word| if *word == "@" { path } else { word }).collect()
            };
            let steps: Vec<Vec<&str>> = following.iter().chain(&staying).map(at).collect();
            let taken = run(&component, &steps.iter().map(Vec::as_slice).collect::<Vec<_>>());
            for (number, (step, answer)) in steps.iter().zip(&taken).enumerate() {
                let is_inside = !answer.contains(CANARY) && !answer.starts_with(&SIZE.to_string());
                assert!(is_inside, "{step:?}: {answer}");
                let leads_out =
                    out.contains(&path) || links.contains(&path) && number < following.len();
                if leads_out && !refusals.contains(&answer.as_str()) {
                    strange.push(format!("{access:?} {step:?}: {answer}"));
                }
            }
            assert_eq!(estate.outside(), before, "{path:?}");
        }
        // A path that is not UTF-8 ends the call, or is an error: it opens nothing.
        let completion = call(&component, "1", &[&["read", dotted]], CallOptions::default());
        assert!(!format!("{completion:?}").contains(CANARY), "{completion:?}");
    }
    assert!(strange.is_empty(), "{strange:#?}");
}

/// Fails without: the check of targets in `create_link`.
#[test]
fn tool_cannot_create_escaping_links() {
    let outer = tree();
    let [one, other, read] = ["one", "other", "read"].map(|name| outer.path().join(name));
    for directory in [&one.join("sub"), &other, &read] {
        fs::create_dir_all(directory).expect("a directory");
    }
    fs::write(read.join("a"), "before").expect("a file");
    let directories = [
        ("/one", one.as_path(), Access::Write, BIG),
        ("/other", &other, Access::Write, BIG),
        ("/read", &read, Access::Read, BIG),
    ];
    let component = load(granted(&directories));
    expect_rows(&component, "paths", "tool_cannot_create_escaping_links");
}

/// Fails without: read-only `FsPerms`, and no area for a directory that is granted for reading.
#[test]
fn read_only_directory_stays_unchanged() {
    let dir = tree();
    fs::write(dir.path().join("a"), "before").expect("a file");
    fs::create_dir(dir.path().join("d")).expect("a directory");
    let component = load(granted(&[("/data", dir.path(), Access::Read, BIG)]));
    expect_rows(&component, "paths", "read_only_directory_stays_unchanged");
}

/// Every way to open a pipe, which would wait for its other end, and a socket. Fails without: an
/// `open` that does not wait.
#[test]
fn pipes_and_sockets_are_refused_without_waiting() {
    let dir = tree();
    fs::write(dir.path().join("plain"), "inside").expect("a file");
    let made = Command::new("mkfifo").arg(dir.path().join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    let _listener = UnixListener::bind(dir.path().join("socket")).expect("a socket");
    let reads: &[(&[&str], &str)] =
        &[(&["read", "/data/pipe"], "PermissionDenied"), (&["read", "/data/plain"], "inside")];
    for access in [Access::Read, Access::Write] {
        let component = load(granted(&[("/data", dir.path(), access, BIG)]));
        // One tenant opens the pipe, while another one reads.
        std::thread::scope(|threads| {
            let at_the_pipe = threads.spawn(|| expect_for("hog", &component, &reads.repeat(600)));
            while !at_the_pipe.is_finished() {
                expect_for("reader", &component, &[(&["read", "/data/plain"], "inside")]);
            }
        });
    }
    let component = load(granted(&[("/data", dir.path(), Access::Write, BIG)]));
    for path in ["/data/pipe", "/data/socket"] {
        let steps: [&[&str]; 6] = [
            &["read", path],
            &["write", path, "1"],
            &["append", path, "1"],
            &["resize", path, "0"],
            &["times", path, "0"],
            &["list", path],
        ];
        for (step, answer) in steps.iter().zip(run(&component, &steps)) {
            assert_ne!(answer, "done", "{step:?}");
        }
    }
}

#[test]
fn overlay_limits_which_paths_a_call_opens() {
    let dir = tree();
    for name in ["in", "out", "other"] {
        fs::create_dir(dir.path().join(name)).expect("a directory");
        fs::write(dir.path().join(name).join("x"), name).expect("a file");
    }
    symlink("other", dir.path().join("link")).expect("a link");
    let component = load(granted(&[("/data", dir.path(), Access::Write, BIG)]));
    let steps: [&[&str]; 6] = [
        &["read", "/data/in/x"],
        &["write", "/data/in/x", "1"],
        &["write", "/data/out/y", "1"],
        &["read", "/data/other/x"],
        &["read", "/data/in/../other/x"],
        &["read", "/data/link/x"],
    ];
    let taken = |rules: &[&str]| {
        let opened = |answer: String| ["in", "done", "other"].contains(&answer.as_str());
        let completion = call(&component, "1", &steps, narrowed(rules));
        answers(&completion).into_iter().map(opened).collect::<Vec<_>>()
    };
    // Fails without: opening only what the overlay leaves of a mount, or refusing to follow links
    // on the way.
    let opened = taken(&["read /data/in", "write /data/out", "read /data/link"]);
    assert_eq!(opened, [true, false, true, false, false, false]);
    assert_eq!(taken(&["read /data", "write /data/out"]), [true, false, true, true, true, true]);
    assert_eq!(taken(&["read /elsewhere", "write /data/gone"]), [false; 6]);
    assert_eq!(taken(&[]), [false; 6]);
}

#[test]
fn unrepresentable_file_times_are_errors() {
    let dir = tree();
    let component = load(granted(&[("/data", dir.path(), Access::Write, BIG)]));
    let far = i64::MAX.to_string();
    let steps: [&[&str]; 5] = [
        &["write", "/data/a", "1"],
        &["times", "/data/a", "0"],
        &["times", "/data/a", "-1"],
        &["times", "/data/a", &far],
        &["read", "/data/a"],
    ];
    let taken = run(&component, &steps);
    let found = [0, 1, 4].map(|step: usize| taken[step].as_str());
    assert_eq!(found, ["done", "done", "x"], "{taken:?}");
    // Every function of WASI that sets times: a time that cannot be represented changes nothing.
    for function in [&["stamp", "follow"], &["stamp", "stay"], &["own-stamp"] as &[&str]] {
        for (seconds, nanoseconds, expected) in rows::<(&str, &str, &str)>(
            "capabilities/files/paths",
            "unrepresentable_file_times_are_errors",
        ) {
            let stamp = [function, &["/data/a", seconds, nanoseconds]].concat();
            let taken = run(&component, &[&stamp, &["stamps", "follow", "/data/a"]]);
            assert_eq!(taken[0], expected, "{stamp:?}");
            assert!(taken[1].starts_with("0 0 "), "{stamp:?}: {taken:?}");
        }
    }
    // Older than the times that a tool can get.
    let old = UNIX_EPOCH - Duration::from_secs(10 * 365 * 86_400);
    let file = fs::File::create(dir.path().join("old")).expect("a file");
    let times = fs::FileTimes::new().set_modified(old).set_accessed(UNIX_EPOCH);
    file.set_times(times).expect("a time");
    let path = "/data/old";
    let taken =
        run(&component, &[&["stamps", "follow", path], &["own-stamps", path], &["size", path]]);
    let is_none = |stamps: &String| stamps.starts_with("0 none ");
    assert!(taken[..2].iter().all(is_none) && taken[2] == "0", "{taken:?}");
}
