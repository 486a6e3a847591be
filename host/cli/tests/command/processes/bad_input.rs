//! Input that cannot work: each has a message, a hint and the right exit status.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread;

use crate::place::Place;
use crate::typed::{command, limited, typed};

/// Reading a pipe without a writer would not end, nor would a device: neither is opened.
#[test]
fn non_file_path_is_rejected_unopened() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (pipe, socket, folder) = (path("pipe"), path("socket"), path("folder"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::create_dir(&folder).unwrap();
    // A writer at the pipe's other end: a command that opens the pipe all the same reads an empty
    // file and fails below.
    let writer = {
        let pipe = pipe.clone();
        thread::spawn(move || while fs::OpenOptions::new().write(true).open(&pipe).is_ok() {})
    };
    for (path, message) in [
        (pipe.as_str(), "is a pipe, not a file"),
        (&socket, "is a socket, not a file"),
        ("/dev/zero", "is a device, not a file"),
        (&folder, "is a directory"),
    ] {
        let at = format!("@{path}");
        let commands: [&[&str]; 4] = [
            &["run", path, "greet"],
            &["inspect", path],
            &["list", path],
            &["run", "hello.wasm", "greet", &at],
        ];
        for words in commands {
            let shown = typed(words);
            assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{words:?}: {shown}");
            assert!(
                shown.stderr.contains(&format!("error: `{path}` {message}\nhint: give ")),
                "{words:?}: {shown}"
            );
        }
        let shown = typed(&["run", "hello.wasm", "greet", "{}", "--context", &at]);
        shown.tells(2, "hint: this option reads no file");
    }
    // Ends the writer's thread: this is its only reader, and afterwards the name is gone.
    let reader = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    fs::remove_file(&pipe).unwrap();
    writer.join().unwrap();
    drop(reader);
}

/// A few megabytes that would keep the compiler busy for minutes: its process is ended, and this
/// one reports the reason.
#[test]
fn compile_bomb_hits_cpu_limit() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), toolcell_test_guests::compile_bomb(8)).unwrap();
    let path = file.path().to_str().unwrap();
    let shown = typed(&["inspect", path, "--max-compile-time", "1s", "--no-cache"]);
    shown.tells(1, "cannot be compiled within the limits of CPU time (1s)");
}

/// The parent may die before the child's lifetime is bound to it. Otherwise the child would reject
/// this component, with another status.
#[test]
fn compiler_without_reader_does_not_start() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut worker = command();
    let worker = worker
        .args(["compile-worker", "quick/60"])
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::null());
    assert_eq!(worker.status().unwrap().code(), Some(4));
}

/// A component that stalls only the optimiser still answers. Only a command that prepares waits for
/// it, and only once.
#[test]
fn optimiser_bomb_runs_unoptimised() {
    let dir = tempfile::tempdir().unwrap();
    let (path, cache) = (dir.path().join("bomb.wasm.bin"), dir.path().join("cache"));
    fs::write(&path, toolcell_test_guests::compile_bomb(1)).unwrap();
    let (path, cache) = (path.to_str().unwrap(), cache.to_str().unwrap());
    let run = typed(&["run", path, "hostile", "{}", "--cache-dir", cache]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{run}");
    let config = Place::new(&format!("[components.bomb]\npath = \"{path}\"\n"));
    for warnings in [1, 0] {
        let shown = config.typed(&["check", "--cache-dir", cache, "--max-compile-time", "1s"]);
        assert_eq!(shown.status, 0, "{shown}");
        assert_eq!(shown.stderr.matches("stays unoptimised").count(), warnings, "{shown}");
    }
}

/// Read from the kernel while the compiler still waits for a component.
#[test]
fn compiler_is_limited_before_it_reads() {
    let limits = ["Max cpu time 7 8 seconds", "Max address space 4294967296 4294967296 bytes"];
    let status = limited(&["compile-worker", "quick/7"], &limits);
    // The nineteenth field, counted from the second, which is the name in parentheses. Source:
    // proc(5).
    let nice =
        status.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(16)?.parse::<i32>().ok());
    assert!(nice >= Some(10), "it gives way to calls: {status}");
}
