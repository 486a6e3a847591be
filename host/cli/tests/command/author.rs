//! `toolcell new`, `build` and `test`: from an empty folder to a result.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::interrupt::signals_by_default;
use crate::place::Place;

/// A tool that calls others runs although one component of the configuration cannot be used.
#[test]
fn unusable_component_does_not_block_others() {
    const CONFIG: &str = "[components.caller]\npath = \"caller.wasm\"\ngrants.invoke = [\"greet\"]\n\
                          [components.hello]\npath = \"hello.wasm\"\n[components.gone]\npath = \"gone.wasm\"\n";
    const CALLER: &str = r#"import { invoke, tool } from "toolcell";
export default tool({ name: "caller", description: "Calls.", handler: () => invoke("greet", { name: "Ada" }),
  needs: [{ kind: "invoke", pattern: "greet", reason: "to greet" }] });"#;
    let place = Place::new(CONFIG);
    fs::write(place.path().join("caller.js"), CALLER).expect("a file");
    fs::copy(crate::typed::example("hello"), place.path().join("hello.wasm")).expect("a copy");
    assert_eq!(place.typed(&["build", "caller.js"]).status, 0);
    for component in ["caller", "hello"] {
        assert_eq!(place.typed(&["approve", component, "--yes"]).status, 0, "{component}");
    }
    let shown = place.typed(&["run", "caller"]);
    assert_eq!((shown.status, shown.stdout.contains("Ada")), (0, true), "{shown}");
    assert!(shown.stderr.contains("warning: the tools of `gone` are left out: "), "{shown}");
    assert!(shown.stderr.contains("gone.wasm"), "{shown}");
}

#[test]
fn new_project_builds_tests_and_runs() {
    for language in ["js", "ts"] {
        let place = Place::new("");
        let made = place.typed(&["new", "greeter", "--language", language, "--json"]).json();
        assert_eq!(made["next_commands"][0], "toolcell build greeter", "{made}");
        let built = place.typed(&["build", "greeter", "--json"]).json();
        assert_eq!(built["tools"], json!(["greet"]), "{built}");
        let tested = place.typed(&["test", "greeter", "--json", "--junit", "report.xml"]).json();
        assert_eq!((&tested["passed"], &tested["failed"]), (&json!(2), &json!(0)), "{tested}");
        let report = fs::read_to_string(place.path().join("report.xml")).expect("a report");
        assert!(report.contains("tests=\"2\" failures=\"0\""), "{report}");
        let answer = place.typed(&["run", "greeter/greeter.wasm", "greet", "name=Ada"]);
        assert_eq!(answer.stdout, "Hello, Ada!\n", "{answer:?}");
    }
}

#[test]
fn fuzzing_reports_failing_arguments() {
    const FAULTY: &str = r#"import { tool } from "toolcell";
const parameters = { type: "object", properties: { list: { type: "array", items: { type: "integer" }, maxItems: 4 } } };
const handler = ({ list = [] }) => { if (list.length > 1) throw new RangeError("too many"); return list; };
export default tool({ name: "greet", description: "Counts.", parameters, handler });
"#;
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "greeter", "--language", "js"]).status, 0);
    let fine = place.typed(&["test", "greeter", "--fuzz", "20", "--coverage", "--json"]);
    let json = fine.json();
    assert_eq!(
        (fine.status, &json["fuzz"][0]["calls"], &json["fuzz"][0]["failures"]),
        (0, &json!(20), &json!([]))
    );
    assert_eq!(json["coverage"][0]["uncovered_parameters"], json!([]), "{json}");
    fs::write(place.path().join("greeter/src/tool.js"), FAULTY).expect("a file");
    fs::write(
        place.path().join("greeter/cases.yaml"),
        "cases: [{ name: none, expect: { ok: [] } }]",
    )
    .expect("a file");
    let words = [
        "test",
        "greeter",
        "--fuzz",
        "40",
        "--fuzz-seed",
        "3",
        "--coverage",
        "--junit",
        "report.xml",
    ];
    let found = place.typed(&words);
    assert_eq!(found.status, 1, "{found}");
    assert!(found.stderr.contains("note: making 40 calls with generated arguments\n"), "{found}");
    for told in [
        "1 passed, 0 failed",
        "no case gives    list",
        "(seed 3)",
        "RangeError: too many",
        "arguments: {\"list\":[0,0]}",
    ] {
        assert!(found.stdout.contains(told), "{told}: {found}");
    }
    assert_eq!(place.typed(&words).stdout, found.stdout, "the same seed finds the same");
    let report = fs::read_to_string(place.path().join("report.xml")).expect("a report");
    assert!(
        report.contains("tests=\"2\" failures=\"1\"") && report.contains("name=\"fuzz: "),
        "{report}"
    );
}

/// Also with `--quiet`, which prints no log of the tool. In a project's folder the hint is for its
/// author.
#[test]
fn error_contains_thrown_exception() {
    const TOOL: &str = r#"import { tool } from "toolcell";
export default tool({ name: "greet", description: "Throws.", handler: () => { throw new RangeError("too many"); } });"#;
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "greeter", "--language", "js"]).status, 0);
    fs::write(place.path().join("greeter/src/tool.js"), TOOL).expect("a file");
    assert_eq!(place.typed(&["build", "greeter"]).status, 0);
    let quiet = place.typed(&["run", "--quiet", "greeter", "{}"]);
    assert!(
        quiet.status == 20
            && quiet.stderr.starts_with("error: the tool aborted: RangeError: too many\n"),
        "{quiet}"
    );
    fs::copy(place.path().join("greeter/greeter.wasm"), place.path().join("copied.wasm"))
        .expect("a copy");
    for (component, hint) in [
        ("greeter", "a bug in the tool: correct it"),
        ("greeter/greeter.wasm", "a bug in the tool: correct it"),
        ("copied.wasm", "a bug in the tool: tell its author"),
    ] {
        let shown = place.typed(&["run", component, "{}"]);
        assert!(
            shown.stderr.contains(hint) && shown.stderr.matches("too many").count() == 1,
            "{shown}"
        );
        assert!(
            !shown.stderr.contains("\nin: ") && !shown.stderr.contains("func["),
            "no frame of the runtime: {shown}"
        );
    }
}

#[test]
fn fractional_progress_is_shown_in_percent() {
    const TOOL: &str = r#"import { progress, tool } from "toolcell";
const handler = () => { progress(0.5, 1, "half"); progress(3, 8); progress(1.5); return 1; };
tool({ name: "reports", description: "Reports.", handler });"#;
    let place = Place::new("");
    fs::write(place.path().join("tool.js"), TOOL).expect("a file");
    assert_eq!(place.typed(&["build", "tool.js"]).status, 0);
    let shown = place.typed(&["run", "./tool.wasm", "{}"]);
    let told = "tool progress: 50 of 100, half\ntool progress: 3 of 8\ntool progress: 1\n";
    assert!(shown.status == 0 && shown.stderr.ends_with(told), "{shown}");
}

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

/// `PATH` has only the test's own programs, whatever this machine has.
#[test]
fn python_build_names_toolchain_install_command() {
    let place = Place::new("");
    let made = place.typed(&["new", "greeter", "--language", "python", "--json"]).json();
    assert!(made["files"].as_array().expect("files").contains(&json!("tool.py")), "{made}");
    let version = include_str!("../../../../tests/languages/requirements.txt");
    let version =
        version.lines().find_map(|line| line.strip_prefix("componentize-py==")).expect("a version");
    let programs = place.path().join("other");
    let install = |folder: &Path, version: &str| {
        fs::create_dir_all(folder).expect("a folder");
        let program = folder.join("componentize-py");
        fs::write(&program, format!("#!/bin/sh\necho componentize-py {version}\n"))
            .expect("a file");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program");
    };
    let told = |why: &str| {
        let shown = place.shown(place.command().args(["build", "greeter"]).env("PATH", &programs));
        let message = format!("error: Python tools are built by componentize-py: {why}\n");
        let command = format!(
            "python3 -m venv greeter/.venv && greeter/.venv/bin/pip install componentize-py=={version}"
        );
        let hint = format!(
            "hint: install it with `{command}` (Debian has venv in the package python3-venv)\n"
        );
        assert!(shown.status == 1 && shown.stderr.ends_with(&(message + &hint)), "{shown}");
    };
    told("it is not installed");
    install(&programs, "0.1.0");
    told(&format!("version 0.1.0 is installed, and {version} is needed"));
    install(&place.path().join("greeter/.venv/bin"), "0.2.0");
    told(&format!("versions 0.2.0 and 0.1.0 are installed, and {version} is needed"));
}

/// The build waits until the test has read its output.
#[test]
fn slow_build_announces_steps_as_they_begin() {
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "greeter", "--language", "python"]).status, 0);
    let version = include_str!("../../../../tests/languages/requirements.txt");
    let version =
        version.lines().find_map(|line| line.strip_prefix("componentize-py==")).expect("a version");
    let (program, go) =
        (place.path().join("greeter/.venv/bin/componentize-py"), place.path().join("go"));
    fs::create_dir_all(program.parent().expect("a folder")).expect("a folder");
    let go_on = go.display();
    let waits = format!("mkfifo '{go_on}'; read line < '{go_on}'; echo 'out of cheese'; exit 1");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo componentize-py {version}; exit; fi\n{waits}\n"
    );
    fs::write(&program, script).expect("a file");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program");
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
    fs::write(
        &program,
        fs::read_to_string(&program).expect("the script").replace(&waits, "exit 1"),
    )
    .expect("a file");
    let quiet = place.typed(&["build", "greeter", "--quiet"]);
    assert!(quiet.status == 1 && !quiet.stderr.contains("note: "), "{quiet}");
}

/// Printed by the first command that needs the code, and by no later one. Small components have no
/// message.
#[test]
fn slow_compilation_is_announced_at_start() {
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "greeter", "--language", "js"]).status, 0);
    assert_eq!(place.typed(&["build", "greeter"]).status, 0);
    let bytes = fs::metadata(place.path().join("greeter/greeter.wasm")).expect("it is built").len();
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

#[test]
fn project_errors_have_location_and_hint() {
    let place = Place::new("");
    let told = |words: &[&str], status: i32, part: &str| {
        let typed = place.typed(words);
        assert_eq!(typed.status, status, "{typed:?}");
        assert!(
            typed.stderr.contains(part) && typed.stderr.contains("hint: "),
            "{words:?}: {typed:?}"
        );
    };
    told(&["new", "x", "--language", "cobol"], 2, "there is no language `cobol`");
    told(&["build", "nowhere"], 1, "nowhere");
    assert_eq!(place.typed(&["new", "greeter", "--language", "js"]).status, 0);
    told(&["new", "greeter", "--language", "js"], 1, "is not empty, and was not changed");
    fs::write(place.path().join("greeter/src/tool.js"), "let x = ;").expect("a file");
    told(&["build", "greeter"], 1, "tool.js:1:9: ");
    // A problem without a place of its own is reported with the first file.
    for (source, problem) in [
        ("throw 'no'", "tool.js: a value that is not an Error was thrown: no"),
        ("await new Promise(() => {})", "tool.js: the promise never settles"),
        (
            "import { nope } from 'toolcell'",
            "tool.js: SyntaxError: Could not find export 'nope' in module 'toolcell'",
        ),
        ("1", "tool.js: TypeError: no tool was made"),
    ] {
        fs::write(place.path().join("greeter/src/tool.js"), source).expect("a file");
        told(&["build", "greeter"], 1, problem);
    }
    // A definition that every host rejects.
    for (member, problem) in [
        ("parameters: { type: 'array' }", "its `parameters` have the type \"array\""),
        ("parameters: { type: 'objekt' }", "objekt"),
        ("maxExecutionMs: 1.5", "invalid type: floating point `1.5`, expected u64"),
        ("maxExecutionMs: 0", "its `max_execution` is zero"),
        ("needs: [{ kind: 'http', pattern: 'nowhere', reason: 'to look' }]", "in `needs`: "),
        ("needs: [{ kind: 'bogus', pattern: 'x', reason: 'to look' }]", "unknown kind of need"),
        ("attributes: [1]", "expected a map"),
    ] {
        let tool = format!(
            "import {{ tool }} from 'toolcell'; tool({{ name: 'greet', description: 'Greets.', handler: () => 1, {member} }})"
        );
        fs::write(place.path().join("greeter/src/tool.js"), tool).expect("a file");
        told(&["build", "greeter"], 1, "the definition of the tool `greet` is not valid: ");
        told(&["build", "greeter"], 1, problem);
    }
    // A keyword with an invalid value is not enforced.
    let tool = "import { tool } from 'toolcell'; tool({ name: 'greet', description: 'Greets.', handler: () => 1, output: { minimum: 'x' } })";
    fs::write(place.path().join("greeter/src/tool.js"), tool).expect("a file");
    let built = place.typed(&["build", "greeter"]);
    assert!(
        built.status == 0 && built.stderr.contains("greet: output/minimum must be a number"),
        "{built:?}"
    );
}

/// Each program is a script that writes its variables to a file. None makes a component, so each
/// build fails at its end.
#[test]
fn build_programs_get_no_secret_variables() {
    let version = include_str!("../../../../tests/languages/requirements.txt");
    let version =
        version.lines().find_map(|line| line.strip_prefix("componentize-py==")).expect("a version");
    for (language, programs, starts) in [
        ("python", &["greeter/.venv/bin/componentize-py"][..], 2),
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
            let program = place.path().join(program);
            fs::create_dir_all(program.parent().expect("a folder")).expect("a folder");
            fs::write(&program, &script).expect("a file");
            fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program");
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
