//! `toolcell new`, `build` and `test`: from an empty folder to a result.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{COMPONENTIZE_PY, Place, componentize_py};
use crate::processes::interrupt::signals_by_default;

#[test]
fn dev_rebuilds_and_tests_after_each_change() {
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "greeter", "--language", "js"]).status, 0);
    let source = place.path().join("greeter/src/tool.js");
    let good = fs::read_to_string(&source).expect("the tool");
    // Replaced in one step, so that no build sees half of the file.
    let next = place.path().join("next.js");
    let change = |text: &str| {
        fs::write(&next, text).and_then(|()| fs::rename(&next, &source)).expect("a file")
    };
    signals_by_default();
    let mut dev = place.command();
    dev.args(["dev", "greeter", "--watch-interval", "20ms"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = dev.spawn().expect("the binary runs");
    let mut told = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut until_it_waits = || {
        let mut seen = String::new();
        for line in told.by_ref() {
            let line = line.expect("text");
            if line.contains("waiting for a change") {
                return seen;
            }
            seen += &(line + "\n");
        }
        panic!("it ended: {seen}");
    };
    let first = until_it_waits();
    assert!(first.contains("built: ") && !first.contains("error"), "{first}");
    // An error of the build is printed, and the next change is built.
    change("let x = ;");
    let broken = until_it_waits();
    assert!(broken.contains("tool.js:1:9: ") && !broken.contains("built: "), "{broken}");
    change(&good.replace("Hello", "Goodbye"));
    let changed = until_it_waits();
    assert!(changed.contains("built: ") && !changed.contains("error"), "{changed}");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it is there");
    let mut results = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut results).expect("text");
    assert_eq!(child.wait().expect("it ends").signal(), Some(Signal::INT.as_raw()));
    // The first build passed its cases; the last one greets with another word.
    let runs: Vec<_> = results.lines().filter(|line| line.contains(" passed, ")).collect();
    assert!(runs.len() == 2 && runs[0].starts_with("2 passed, 0 failed"), "{results}");
    assert!(!runs[1].contains(" 0 failed") && results.contains("Goodbye, Ada!"), "{results}");
}

/// The build waits until the test has read its output.
#[test]
fn slow_build_announces_steps_as_they_begin() {
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "greeter", "--language", "python"]).status, 0);
    let version = componentize_py();
    let go = place.path().join("go");
    let go_on = go.display();
    let waits = format!("mkfifo '{go_on}'; read line < '{go_on}'; echo 'out of cheese'; exit 1");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo componentize-py {version}; exit; fi\n{waits}\n"
    );
    place.write_program(COMPONENTIZE_PY, &script);
    let mut build = place.command();
    build
        .args(["build", "greeter"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = build.spawn().expect("the binary runs");
    let mut told =
        BufReader::new(child.stderr.take().expect("piped")).lines().map(|line| line.expect("text"));
    assert_eq!(told.next(), Some(format!("note: looking for componentize-py {version}")));
    let step = "note: componentize-py makes a component of `tool.py`, which takes some seconds";
    assert_eq!(told.next().as_deref(), Some(step));
    fs::write(&go, "go\n").expect("it is read");
    assert!(told.any(|line| line.contains("out of cheese")));
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    fs::remove_file(&go).expect("a file");
    place.write_program(COMPONENTIZE_PY, &script.replace(&waits, "exit 1"));
    let quiet = place.typed(&["build", "greeter", "--quiet"]);
    assert!(quiet.status == 1 && !quiet.stderr.contains("note: "), "{quiet}");
}

/// Printed by the first command that needs the code, and by no later one. Small components have no
/// message.
#[test]
fn slow_compilation_is_announced_at_start() {
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "greeter", "--language", "js"]).status, 0);
    // Large by a section that is no code, so that compiling it takes little time.
    let mut component = fs::read(place.path().join("hello.wasm")).expect("a component");
    // The number of a custom section, its length of 2 MiB, and its empty name.
    component.extend([0, 0x80, 0x80, 0x80, 0x01, 0]);
    component.resize(component.len() + (2 << 20) - 1, 0);
    fs::write(place.path().join("greeter/greeter.wasm"), &component).expect("it is written");
    let bytes = component.len();
    let size = format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20);
    let note = format!("note: compiling a component of {size}, which can take some seconds\n");
    let run = ["run", "greeter/greeter.wasm", "name=Ada"];
    let typed = |cache: &str, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcell"));
        command.env_clear().current_dir(place.path()).env("XDG_STATE_HOME", place.state());
        place.shown(command.args(["--cache-dir", cache]).args(words))
    };
    for (cache, words, told) in [
        ("one", &run[..], note.as_str()),
        ("one", &run, ""),
        ("two", &[&run[..], &["--quiet"]].concat(), ""),
        ("three", &["test", "greeter", "--component", "greeter/greeter.wasm", "--json"], &note),
        ("four", &["run", "hello.wasm", "name=Ada"], ""),
    ] {
        let shown = typed(cache, words);
        assert_eq!((shown.status, shown.stderr.as_str()), (0, told), "{words:?}: {shown}");
        assert!(!shown.stdout.contains("compiling"), "{shown}");
    }
    place.write("[components.greeter]\npath = \"greeter/greeter.wasm\"\n");
    place.approve();
    let optimising = note.replace("compiling", "optimising");
    let checked = typed("five", &["check"]);
    assert_eq!(
        checked.stderr.matches(&note).count() + checked.stderr.matches(&optimising).count(),
        2,
        "{checked}"
    );
    assert!(!typed("five", &["check"]).stderr.contains("component of"));
}

/// Each program is a script that writes its variables to a file. None makes a component, so each
/// build fails at its end.
#[test]
fn build_programs_get_no_secret_variables() {
    let version = componentize_py();
    for (language, programs, starts) in [
        ("python", &[COMPONENTIZE_PY][..], 2),
        ("c", &["greeter/.venv/bin/python"], 2),
        ("rust", &["bin/rustc", "bin/cargo"], 3),
    ] {
        let place = Place::new("");
        assert_eq!(place.typed(&["new", "greeter", "--language", language]).status, 0);
        let (here, seen) = (place.path().display(), place.path().join("seen"));
        fs::create_dir_all(place.path().join("lib/rustlib/wasm32-wasip2/lib")).expect("a folder");
        let script = format!(
            "#!/bin/sh\nexport -p >> '{}'\ncase \"$*\" in *--version) echo componentize-py {version} ;; *version) echo \
             0.17.1 ;; *sysroot) echo '{here}' ;; esac\n",
            seen.display()
        );
        for program in programs {
            place.write_program(program, &script);
        }
        for word in ["build", "test"] {
            let path = format!("{here}/bin:{}", std::env::var("PATH").expect("it is set"));
            let mut command = place.command();
            command
                .args([word, "greeter"])
                .env("PATH", path)
                .env("HTTPS_PROXY", "http://proxy.example");
            command.env("DEPLOY_KEY", "hunter2").env("CARGO_REGISTRY_TOKEN", "hunter2");
            let shown = place.shown(&mut command);
            assert_ne!(shown.status, 0, "{shown}");
            let variables = fs::read_to_string(&seen).expect("a program was started");
            assert_eq!(
                variables.matches("HTTPS_PROXY='http://proxy.example'").count(),
                starts,
                "{language}: {shown}"
            );
            assert!(!variables.contains("hunter2"), "{language}: {variables}");
            fs::remove_file(&seen).expect("a file");
        }
    }
}
