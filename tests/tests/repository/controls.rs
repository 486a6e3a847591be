//! Switches off one control after the other, and checks that the test which docs/threat-model.md
//! names for it then fails.
//!
//! A test that passes nevertheless does not test its control: that is a fault of the test, never of
//! the switch.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use toolcell::controls::{self, Control};

use crate::root;

/// Seconds that a test has to fail. A test that has to be killed has detected nothing.
const PATIENCE: u32 = 60;
/// KiB of writable memory, so that a guest without the control does no harm: ten times as much as a
/// test needs.
const MEMORY: u32 = 6 << 20;
/// Tests that run at the same time. Many of them wait for a time limit.
const AT_ONCE: usize = 4;
/// The page with the tables of controls, and the heading of their section.
const PAGE: &str = "docs/threat-model.md";
const HEADING: &str = "\n## 2. Controls\n";

/// A line of a table of controls: ``| `NAME` | effect | `test` |``.
#[derive(Debug)]
struct Line {
    control: String,
    test: String,
}

/// A test and the executable that runs it.
#[derive(Debug, Clone)]
struct Test {
    executable: PathBuf,
    /// The folder of its package, where cargo would run it.
    folder: PathBuf,
    /// The name that the executable knows.
    name: String,
    /// The words that a page may use in its name.
    words: Vec<String>,
}

fn lines() -> Vec<Line> {
    let page = fs::read_to_string(root().join(PAGE)).expect("the page");
    let (_, section) = page.split_once(HEADING).expect("the section of controls");
    let section = section.split("\n## ").next().unwrap_or_default();
    let line = |line: &str| {
        let (control, rest) =
            line.split_once("` | ").unwrap_or_else(|| panic!("no effect: {line}"));
        let (_, test) = rest.rsplit_once(" | `").unwrap_or_else(|| panic!("no test: {line}"));
        let test = test.strip_suffix("` |").filter(|test| !test.contains('`'));
        Line {
            control: control.to_owned(),
            test: test.unwrap_or_else(|| panic!("not one test: {line}")).to_owned(),
        }
    };
    section.lines().filter_map(|text| text.strip_prefix("| `")).map(line).collect()
}

/// Returns cargo without the variables that it sets for a test, which would make it build anew.
fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo runs this test"));
    let owned = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "OUT_DIR"];
    let own = |name: &str| owned.iter().any(|own| name.starts_with(own));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
        cargo.env_remove(name);
    }
    cargo.current_dir(root());
    cargo
}

/// Lists all tests of the workspace, which cargo has built by the time that one of them runs.
fn tests() -> Vec<Test> {
    let built = ["test", "--workspace", "--locked", "--no-run", "--message-format=json"];
    let output = cargo().args(built).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut tests = Vec::new();
    for message in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(message).unwrap_or_default();
        let path = |key: &str| message.pointer(key).and_then(Value::as_str).map(PathBuf::from);
        let paths = ["/executable", "/target/src_path", "/manifest_path"].map(path);
        let ([Some(executable), Some(source), Some(manifest)], Some(&Value::Bool(true))) =
            (paths, message.pointer("/profile/test"))
        else {
            continue;
        };
        let folder = manifest.parent().expect("a folder").to_owned();
        let source = source.strip_prefix(root()).unwrap_or(&source).with_extension("");
        let listed = Command::new(&executable)
            .args(["--list", "--format=terse"])
            .current_dir(&folder)
            .output();
        for name in String::from_utf8_lossy(&listed.expect("a test's executable").stdout).lines() {
            let Some(name) = name.strip_suffix(": test") else { continue };
            let words = source.iter().filter_map(|part| part.to_str()).chain(name.split("::"));
            let words = words.map(str::to_owned).collect();
            let (executable, folder) = (executable.clone(), folder.clone());
            tests.push(Test { executable, folder, name: name.to_owned(), words });
        }
    }
    tests
}

/// Finds the one test that the page names: each word of `name` is a word of the test, and the last
/// words are equal.
fn meant<'a>(tests: &'a [Test], name: &str) -> Result<&'a Test, String> {
    let words: Vec<_> = name.split(['/', ':', ' ']).filter(|word| !word.is_empty()).collect();
    let is_meant = |test: &&Test| {
        test.words.last().map(String::as_str) == words.last().copied()
            && words.iter().all(|word| test.words.iter().any(|other| other == word))
    };
    let mut found = tests.iter().filter(is_meant);
    match (found.next(), found.next()) {
        (Some(test), None) => Ok(test),
        (None, _) => Err(format!("there is no test `{name}`")),
        (Some(one), Some(other)) => {
            Err(format!("`{name}` is {} or {}", one.words.join("::"), other.words.join("::")))
        }
    }
}

/// Runs a test alone with the control switched off. Returns its message if it fails, or the reason
/// that this was not its own failure.
fn failure(test: &Test, control: &str) -> Result<String, String> {
    let script = format!("ulimit -c 0; ulimit -d {MEMORY}; exec \"$0\" \"$@\"");
    let output = Command::new("timeout")
        .args(["--signal=KILL", &PATIENCE.to_string(), "sh", "-c", &script])
        .arg(&test.executable)
        .args([&test.name, "--exact"])
        .current_dir(&test.folder)
        .env("TOOLCELL_DOWN", control)
        // The failure is intended: its snapshots must not be kept.
        .env("INSTA_UPDATE", "no")
        // Texts that cross to a guest must have no backtraces even with these settings.
        .envs([("RUST_BACKTRACE", "1"), ("RUST_LIB_BACKTRACE", "1")])
        .output()
        .map_err(|error| error.to_string())?;
    judge_output(&output)
}

fn judge_output(output: &Output) -> Result<String, String> {
    let said = [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat();
    let last =
        || said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing").to_owned();
    if said.contains("test result: ok. 1 passed") {
        return Err("it passes".into());
    }
    if !said.contains("test result: FAILED. 0 passed; 1 failed") {
        return Err(format!("{}, and said at last: {}", output.status, last()));
    }
    // A guest's output may look like a panic of the host.
    let is_ours = |panic: &&str| ["host/", "tests/"].iter().any(|folder| panic.starts_with(folder));
    let ours = said.rsplit(" panicked at ").find(is_ours);
    let panic = ours.or_else(|| Some(said.rsplit_once(" panicked at ")?.1));
    let panic = panic.ok_or_else(|| format!("it fails without a word: {}", last()))?;
    let lines = panic.lines().skip(1).take_while(|line| *line != "stack backtrace:").take(4);
    let words = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    Ok(words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(150).collect())
}

#[test]
fn every_control_is_in_the_threat_model_once() {
    let on_the_page: Vec<_> = lines().into_iter().map(|line| line.control).collect();
    let all: Vec<_> = Control::ALL.iter().map(|control| control.name()).collect();
    assert_eq!(on_the_page, all, "the same controls in the same order as `controls/table.rs`");
}

#[test]
fn each_test_fails_without_its_control() {
    let (lines, tests) = (lines(), tests());
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(line) = lines.get(index) else { break };
                    let failed =
                        meant(&tests, &line.test).and_then(|test| failure(test, &line.control));
                    results.lock().unwrap_or_else(PoisonError::into_inner).insert(index, failed);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (mut table, mut unproved) = (String::new(), 0);
    for (line, result) in lines.iter().zip(results.values()) {
        let (mark, words) = match result {
            Ok(words) => (' ', words),
            Err(words) => ('!', words),
        };
        unproved += usize::from(result.is_err());
        let _ = writeln!(table, "{mark} {:24} {:72} {words}", line.control, line.test);
    }
    assert_eq!(unproved, 0, "of these tests some say nothing of their control:\n{table}");
    // Written past the capture of a passing test's output: the table is the result of this test.
    let _ = std::io::stdout().write_all(table.as_bytes());
}

/// Compiles the source of the switch alone, as a user's debug and release builds do and as the
/// tests do. Only the tests' program reads the environment variable or contains its name and the
/// names of the controls.
#[test]
fn user_build_cannot_disable_controls() {
    let scratch = tempfile::tempdir().expect("a directory");
    let probe = scratch.path().join("probe.rs");
    fs::create_dir(scratch.path().join("controls")).expect("a directory");
    for file in ["controls/mod.rs", "controls/switch.rs", "controls/table.rs"] {
        fs::copy(root().join("host/contract/src").join(file), scratch.path().join(file))
            .expect("its source");
    }
    let main =
        "fn main() { assert!(controls::enforced!(Fuel) && controls::bound!(Fuel, 7_u64) == 7); }";
    fs::write(&probe, format!("mod controls;\n{main}\n")).expect("a file");
    let build = |assertions: &str, features: &[&str]| {
        let program = scratch.path().join(format!("{assertions}{}", features.len()));
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition=2024", "--cap-lints=allow"]).args(features);
        rustc.args(["-C", &format!("debug-assertions={assertions}"), "-o"]);
        assert!(rustc.arg(&program).arg(&probe).status().expect("a compiler").success());
        program
    };
    let ends = |program: &Path, down: Option<&str>| {
        let mut program = Command::new(program);
        program.env_remove("TOOLCELL_DOWN").envs(down.map(|down| ("TOOLCELL_DOWN", down)));
        let output = program.output().expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let has_names = |program: &Path| {
        let program = fs::read(program).expect("a program");
        ["TOOLCELL_DOWN", "defined-tenants"]
            .map(|name| program.windows(name.len()).any(|bytes| bytes == name.as_bytes()))
    };
    let controls = ["--cfg", "feature=\"controls\""];
    for (assertions, features) in [("on", &[][..]), ("off", &[]), ("off", &controls)] {
        let program = build(assertions, features);
        for down in [None, Some("fuel"), Some("fuell")] {
            assert!(ends(&program, down).0, "{assertions}, {features:?}: {down:?} down");
        }
        assert_eq!(has_names(&program), [false; 2], "{assertions}, {features:?}");
    }
    let program = build("on", &controls);
    assert_eq!(has_names(&program), [true; 2]);
    assert!(ends(&program, None).0);
    assert!(!ends(&program, Some("fuel")).0);
    let (_, said) = ends(&program, Some("fuell"));
    let hint = "there is no control `fuell`, only fuel, ticks, ";
    assert!(said.contains(hint), "a slip is told: {said}");
}

#[test]
fn tests_run_with_all_controls_enforced() {
    assert_eq!(controls::down(), None);
}
