//! No path and no link leads out of a directory, and what is for reading stays as it is.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use toolcell::{Access, CallOptions};

use super::{BIG, answers, call, expect, granted, load, narrowed, run, tree};

/// What no tool may ever see.
const CANARY: &str = "CANARY";

/// Every way that leads out of a directory, and links in it that do. Seen to fail with paths opened by the operating
/// system's own rules.
#[test]
fn no_path_leads_out() {
    let outer = tree();
    let inner = outer.path().join("inner");
    fs::create_dir_all(inner.join("sub")).expect("a directory");
    fs::write(outer.path().join("secret"), CANARY).expect("a file");
    fs::write(inner.join("plain"), "inside").expect("a file");
    symlink("../secret", inner.join("up")).expect("a link");
    symlink(outer.path(), inner.join("away")).expect("a link");
    symlink(outer.path().join("secret"), inner.join("straight")).expect("a link");
    symlink("sub/../../secret", inner.join("winding")).expect("a link");
    let absolute = outer.path().join("secret").display().to_string();
    let long = format!("/data/{}secret", "../".repeat(1400));
    let mut paths: Vec<String> = [
        "/data/../secret",
        "/data/sub/../../secret",
        "/data/./..//secret",
        "/data/sub/./../..//secret/",
        "/data/up",
        "/data/up/",
        "/data/away/secret",
        "/data/away/",
        "/data/straight",
        "/data/straight/.",
        "/data/winding",
        "/data/..",
        "/data/../",
        "/data//../secret",
        "/data/sub/../../",
        "/data/\0/../../secret",
        "/data/..\0/secret",
        "/data/%2e%2e/secret",
        "/data/..\\secret",
        "/data/\u{ff0e}\u{ff0e}/secret",
        "../secret",
        "secret",
        "/",
        "..",
        "/etc/passwd",
        "/proc/self/environ",
        "/data/plain/../../secret",
        "/data/up/../../secret",
        "/data/nothing/../../secret",
        "",
    ]
    .map(str::to_owned)
    .into();
    paths.extend([absolute, long, format!("/data/{}", "a".repeat(4096))]);
    for access in [Access::Read, Access::Write] {
        let component = load(granted(&[("/data", &inner, access, BIG)]));
        expect(&component, &[(&["read", "/data/plain"], "inside"), (&["read", "/data/sub/../plain"], "inside")]);
        for path in &paths {
            let steps: [&[&str]; 8] = [
                &["read", path],
                &["list", path],
                &["look", path],
                &["write", path, "3"],
                &["resize", path, "3"],
                &["remove", path],
                &["rename", path, "/data/mine"],
                &["link", path, "/data/mine"],
            ];
            for (step, answer) in steps.iter().zip(run(&component, &steps)) {
                assert!(!answer.contains(CANARY) && !answer.contains("secret"), "{step:?}: {answer}");
            }
            assert_eq!(fs::read_to_string(outer.path().join("secret")).expect("a file"), CANARY, "{path:?}");
        }
        // What is no text ends the call, or is an error: it opens nothing.
        let completion = call(&component, "1", &[&["read", "/data/\u{fffd}/../../secret"]], CallOptions::default());
        assert!(!format!("{completion:?}").contains(CANARY), "{completion:?}");
        for link in ["up", "away", "straight", "winding"] {
            let _ = fs::remove_file(inner.join(link));
        }
        symlink("../secret", inner.join("up")).expect("a link");
        symlink(outer.path(), inner.join("away")).expect("a link");
    }
    assert_eq!(fs::read_dir(outer.path()).expect("a directory").count(), 2, "nothing was made outside");
}

/// Seen to fail with `create_link` taking any target.
#[test]
fn a_tool_makes_no_link_that_leads_upwards_or_away() {
    let outer = tree();
    let (one, other) = (outer.path().join("one"), outer.path().join("other"));
    fs::create_dir_all(one.join("sub")).expect("a directory");
    fs::create_dir_all(&other).expect("a directory");
    let write = Access::Write;
    let component = load(granted(&[("/one", &one, write, BIG), ("/other", &other, write, BIG)]));
    expect(
        &component,
        &[
            (&["write", "/one/a", "1"], "done"),
            (&["symlink", "../other/x", "/one/l"], "PermissionDenied"),
            (&["symlink", "sub/../../x", "/one/l"], "PermissionDenied"),
            (&["symlink", "/etc/passwd", "/one/l"], "PermissionDenied"),
            (&["symlink", "a", "/one/l"], "done"),
            (&["read", "/one/l"], "x"),
            (&["rename", "/one/l", "/one/sub/l"], "done"),
            (&["read", "/one/sub/l"], "NotFound"),
            (&["link", "/one/a", "/one/b"], "done"),
            (&["link", "/one/a", "/other/b"], "CrossesDevices"),
            (&["rename", "/one/a", "/other/b"], "CrossesDevices"),
            (&["list", "/other"], ""),
        ],
    );
}

/// Seen to fail with `FsPerms::ReadWrite` and an area for every directory.
#[test]
fn what_is_for_reading_stays_as_it_is() {
    let dir = tree();
    fs::write(dir.path().join("a"), "before").expect("a file");
    fs::create_dir(dir.path().join("d")).expect("a directory");
    let component = load(granted(&[("/data", dir.path(), Access::Read, BIG)]));
    expect(
        &component,
        &[
            (&["read", "/data/a"], "before"),
            (&["list", "/data"], "a d"),
            (&["write", "/data/a", "1"], "PermissionDenied"),
            (&["write", "/data/new", "1"], "PermissionDenied"),
            (&["append", "/data/a", "1"], "PermissionDenied"),
            (&["resize", "/data/a", "0"], "PermissionDenied"),
            (&["make", "/data/e"], "PermissionDenied"),
            (&["unmake", "/data/d"], "PermissionDenied"),
            (&["remove", "/data/a"], "PermissionDenied"),
            (&["rename", "/data/a", "/data/b"], "PermissionDenied"),
            (&["link", "/data/a", "/data/b"], "PermissionDenied"),
            (&["symlink", "a", "/data/b"], "PermissionDenied"),
            (&["times", "/data/a", "0"], "PermissionDenied"),
            (&["list", "/data"], "a d"),
            (&["read", "/data/a"], "before"),
        ],
    );
}

/// Each way to a pipe, which would wait for its other end, and to a socket. Seen to fail with an `open` that waits.
#[test]
fn what_is_no_file_is_refused_at_once() {
    let dir = tree();
    fs::write(dir.path().join("plain"), "inside").expect("a file");
    let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().expect("mkfifo");
    assert!(made.success());
    let _listener = UnixListener::bind(dir.path().join("socket")).expect("a socket");
    let reads: &[(&[&str], &str)] =
        &[(&["read", "/data/pipe"], "PermissionDenied"), (&["read", "/data/plain"], "inside")];
    let component = load(granted(&[("/data", dir.path(), Access::Read, BIG)]));
    expect(&component, &reads.repeat(100));
    let component = load(granted(&[("/data", dir.path(), Access::Write, BIG)]));
    expect(&component, &reads.repeat(100));
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
fn a_call_opens_what_its_overlay_leaves() {
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
    // Seen to fail with whole mounts opened whatever the overlay says, and a link on the way followed.
    assert_eq!(
        taken(&["read /data/in", "write /data/out", "read /data/link"]),
        [true, false, true, false, false, false]
    );
    assert_eq!(taken(&["read /data", "write /data/out"]), [true, false, true, true, true, true]);
    assert_eq!(taken(&["read /elsewhere", "write /data/gone"]), [false; 6]);
    assert_eq!(taken(&[]), [false; 6]);
}

#[test]
fn times_that_no_disk_has_are_errors() {
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
    assert_eq!((taken[0].as_str(), taken[1].as_str(), taken[4].as_str()), ("done", "done", "x"), "{taken:?}");
}
