//! Input that cannot work: each has a message, a hint and the right exit status.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::Place;
use crate::typed::{check, command, example, fed, typed};

#[test]
fn unusable_component_fails_with_hint() {
    let dir = tempfile::tempdir().unwrap();
    let hello = fs::read(example("hello")).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let huge = dir.path().join("huge");
    fs::File::create(&huge).unwrap().set_len(65 << 20).unwrap();
    for (path, message, hint) in [
        (dir.path().join("nothing").to_str().unwrap(), "does not exist", "check the path"),
        (&file("helo.wasm", b"").replace("helo", "hello"), "does not exist", "helo.wasm`?"),
        (dir.path().to_str().unwrap(), "is a directory", "give a file in it"),
        (huge.to_str().unwrap(), "too large for a component: 65.0 MiB", "strip debug info"),
        (&file("empty", b""), "an empty file", "wasm32-wasip2"),
        (&file("text", b"fn main() {}"), "an unknown format", "wasm32-wasip2"),
        (&file("wat", b"(component)"), "WebAssembly text", "wasm-tools parse"),
        (&file("core", b"\0asm\x01\0\0\0"), "a core WebAssembly module", "wasm32-wasip2"),
        (&file("truncated", &hello[..hello.len() / 2]), "malformed", "download it again"),
        (&file("no_tools", b"\0asm\x0d\0\x01\0"), "offers no tools", "toolcell_guest::tools!"),
    ] {
        let commands: [&[&str]; 3] = [&["run", path, "greet"], &["inspect", path], &["list", path]];
        for words in commands {
            let shown = typed(words);
            assert_eq!(shown.status, 1, "{words:?}: {shown}");
            assert!(shown.stderr.contains(message), "{words:?}: {shown}");
            assert!(
                shown.stderr.lines().any(|line| line.starts_with("hint: ") && line.contains(hint)),
                "{words:?}: {shown}"
            );
        }
        let json = typed(&["run", path, "greet", "--json"]);
        let error = &json.json()["error"];
        assert!(error["message"].as_str().unwrap().contains(message), "{json}");
        assert!(
            error["kind"].is_string() && error["hint"].is_string() && json.stderr.is_empty(),
            "{json}"
        );
    }
}

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
        assert!(
            shown.status == 2 && shown.stderr.contains("hint: this option reads no file"),
            "{shown}"
        );
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
    assert_eq!(shown.status, 1, "{shown}");
    assert!(
        shown.stderr.contains("cannot be compiled within the limits of CPU time (1s)"),
        "{shown}"
    );
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

/// `check` prepares a component for later commands; `inspect` does not wait for the optimiser.
#[test]
fn check_optimises_component_inspect_does_not() {
    let (dir, place) =
        (tempfile::tempdir().unwrap(), Place::new("[components.hello]\npath = \"hello.wasm\"\n"));
    let cache = dir.path().to_str().unwrap();
    let inspected = || place.typed(&["inspect", "hello", "--json", "--cache-dir", cache]).json();
    let json = inspected();
    assert_eq!((&json["code_tier"], &json["cached"]), (&"quick".into(), &false.into()), "{json}");
    assert_eq!(place.typed(&["check", "--cache-dir", cache]).status, 0);
    let json = inspected();
    assert_eq!(
        (&json["code_tier"], &json["cached"]),
        (&"optimised".into(), &true.into()),
        "{json}"
    );
    let json = typed(&["inspect", "hello.wasm", "--json", "--no-cache"]).json();
    assert_eq!(
        (&json["code_tier"], &json["cached"]),
        (&"unoptimised".into(), &false.into()),
        "{json}"
    );
}

/// A component that does not fit into the cache works, and is compiled each time.
#[test]
fn cache_size_option_is_respected() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().to_str().unwrap();
    for (size, cached) in [("1KiB", false), ("1KiB", false), ("1GiB", false), ("1GiB", true)] {
        let shown =
            typed(&["inspect", "hello.wasm", "--json", "--cache-dir", cache, "--cache-size", size]);
        assert_eq!((shown.status, &shown.json()["cached"]), (0, &cached.into()), "{size}: {shown}");
        assert_eq!(shown.stderr.contains("could not be kept"), size == "1KiB", "{size}: {shown}");
    }
}

/// Read from the kernel while the compiler still waits for a component.
#[test]
fn compiler_is_limited_before_it_reads() {
    let mut compiler = command();
    compiler
        .args(["compile-worker", "quick/7"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut compiler = compiler.spawn().expect("the binary runs");
    let limits = format!("/proc/{}/limits", compiler.id());
    let bounds = ["Max cpu time 7 8 seconds", "Max address space 4294967296 4294967296 bytes"];
    let patience = Instant::now() + Duration::from_secs(10);
    let mut seen = String::new();
    while !bounds.iter().all(|bound| seen.contains(bound)) && Instant::now() < patience {
        let lines = fs::read_to_string(&limits).expect("it runs");
        seen = lines.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let status = fs::read_to_string(format!("/proc/{}/stat", compiler.id())).expect("it runs");
    drop(compiler.stdin.take());
    compiler.wait().expect("it ends");
    // The nineteenth field, counted from the second, which is the name in parentheses. Source:
    // proc(5).
    let nice =
        status.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(16)?.parse::<i32>().ok());
    assert!(nice >= Some(10), "it gives way to calls: {status}");
    assert!(bounds.iter().all(|bound| seen.contains(bound)), "{seen}");
}

#[test]
fn inspect_shows_ungranted_component() {
    // A component that imports one empty instance: a type section, an import section.
    let name = "wasi:blobstore/container@0.2.0";
    let mut bytes = b"\0asm\x0d\0\x01\0\x07\x03\x01\x42\0\x0a".to_vec();
    bytes.extend([name.len() as u8 + 5, 1, 0, name.len() as u8]);
    bytes.extend(name.bytes().chain([5, 0]));
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let path = file.path().to_str().unwrap();
    let shown = typed(&["inspect", path]);
    assert_eq!(shown.status, 1, "{shown}");
    assert!(shown.stdout.contains("wasi:blobstore/container@0.2.0  needs_grant"), "{shown}");
    assert!(
        shown
            .stderr
            .contains("cannot be loaded: the component imports interfaces that are not granted"),
        "{shown}"
    );
    let json = typed(&["inspect", path, "--json"]).json();
    assert_eq!(
        (&json["loadable"], &json["error"]["kind"]),
        (&false.into(), &"not_granted".into()),
        "{json}"
    );
    assert_eq!(json["imports"][0]["status"], "needs_grant", "{json}");
}

#[test]
fn usage_error_exits_2_with_hint() {
    let deep = format!(r#"{{"metadata": {}1{}}}"#, "[".repeat(200), "]".repeat(200));
    let call = ["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#];
    let cases: [(&str, &[&str]); 20] = [
        ("no_command", &[]),
        ("unknown_command", &["rum"]),
        ("hidden_command", &["compile-workers"]),
        ("unknown_shell", &["completions", "cmd"]),
        ("no_tool", &["run", "desk.wasm"]),
        ("unknown_option", &["run", "hello.wasm", "greet", "--feul", "1"]),
        ("bad_time", &["--timeout", "5"]),
        ("bad_size", &["--memory", "64MB"]),
        ("bad_count", &["--fuel", "lots"]),
        ("context_unknown_key", &["--context", r#"{"tennant": "a"}"#]),
        ("context_strange_key", &["--context", r#"{"colour\u001b": "a"}"#]),
        ("context_no_json", &["--context", "tenant=a"]),
        ("context_from_a_file", &["--context", "@context.json"]),
        ("context_no_object", &["--context", "[]"]),
        ("context_wrong_type", &["--context", r#"{"attempt": "one"}"#]),
        ("context_too_deep", &["--context", &deep]),
        ("context_resume_key", &["--context", r#"{"resume": {"answer": 1, "stat": 2}}"#]),
        ("context_resume_without_answer", &["--context", r#"{"resume": {"state": 2}}"#]),
        ("answered_twice", &["--answer", "1", "--context", r#"{"resume": {"answer": 1}}"#]),
        ("state_without_answer", &["--state", "1"]),
    ];
    for (name, words) in cases {
        let own = words.first().is_none_or(|word| !word.starts_with('-'));
        let shown = typed(&[if own { &[][..] } else { &call }, words].concat());
        assert_eq!((shown.status, shown.stdout.as_str()), (2, ""), "{name}: {shown}");
        let last = shown.stderr.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("hint: ") && !shown.stderr.contains("-worker,"),
            "{name}: {shown}"
        );
        check(&format!("usage_{name}"), &shown);
    }
    let json = typed(&[&call[..], &["--json", "--timeout", "5"]].concat());
    assert_eq!((json.status, &json.json()["error"]["kind"]), (2, &"usage".into()), "{json}");
    let json = typed(&[&call[..], &["--json", "--feul", "5"]].concat());
    let advice = "a similar argument exists: '--fuel'; `toolcell run --help` shows its arguments and options";
    assert_eq!(json.json()["error"]["hint"], advice, "{json}");
}

#[test]
fn run_of_unknown_tool_fails() {
    check("unknown_tool", &typed(&["run", "calculator.wasm", "calculater"]));
    let json = typed(&["run", "calculator.wasm", "calculater", "--json"]);
    assert_eq!((json.status, &json.json()["error"]["kind"]), (1, &"unknown_tool".into()), "{json}");
}

#[test]
fn invalid_arguments_are_refused() {
    let deep = "[".repeat(100_000);
    for (arguments, input, message) in [
        ("nonsense", "", "not valid JSON"),
        ("[]", "", "expected an object, got an array"),
        ("{\"name\": 5}", "", "at `/name`"),
        ("{\"name\": \"a\", \"name\": \"b\"}", "", "appears twice"),
        ("-", "", "required member `name` is missing"),
        ("", "", "required member `name` is missing"),
        ("-", deep.as_str(), "nested deeper than 127"),
    ] {
        let shown = fed(&["run", "hello.wasm", "greet", arguments], input.as_bytes());
        assert_eq!(shown.status, 21, "{shown}");
        assert!(shown.stderr.contains(message), "{shown}");
    }
    let shown = fed(&["run", "hello.wasm", "greet", "-"], b"{\"name\": \"\xff\"}");
    assert_eq!(shown.status, 1, "{shown}");
    assert!(shown.stderr.contains("standard input is not UTF-8"), "{shown}");
    let shown = typed(&["run", "hello.wasm", "greet", "@no such file"]);
    assert_eq!(shown.status, 1, "{shown}");
    assert!(shown.stderr.contains("`no such file` does not exist"), "{shown}");
}
