//! Projects from an empty folder to their cases, without any other program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use toolcell::Engine;
use toolcell_author::cases::{Cases, Options, find, junit, read};
use toolcell_author::{ErrorKind, Language, build, component_of, create};

use toolcell_test_guests::rows;

use crate::case_run::{all_passed, project, run, tested, try_run};

/// The project whose cases every language passes.
const LANGUAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/languages");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../example-tools");

/// Writes this source as the module of a project, builds it, and returns the error.
fn fault(file: &str, source: &str) -> toolcell_author::Error {
    build(project(&[(file, source)]).path(), None).expect_err("it is at fault")
}

#[test]
fn new_project_builds_and_passes_its_cases() {
    for language in [Language::JavaScript, Language::TypeScript] {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("greeter");
        let created = create(&folder, language).expect("a project");
        assert!(created.files.contains(&"cases.schema.json".to_owned()), "{created:?}");
        let built = build(&folder, None).expect("it builds");
        assert_eq!((built.tools, built.language), (vec!["greet".to_owned()], language));
        assert!(built.size <= 2_200_000, "{}", built.size);
        let report = run(&built.component, &find(&folder).expect("cases"), &Options::default());
        assert_eq!((report.passed, report.failed), (2, 0), "{report:?}");
        assert!(junit(&report, &[]).contains("tests=\"2\" failures=\"0\""));
        let again = create(&folder, language).expect_err("it is not empty");
        assert!(again.to_string().contains("is not empty"), "{again}");
    }
}

#[test]
fn javascript_passes_cases_common_to_all_languages() {
    let place = tempfile::tempdir().expect("a folder");
    let out = place.path().join("endings.wasm");
    build(&Path::new(LANGUAGES).join("js"), Some(&out)).expect("it builds");
    let folders = [LANGUAGES.into(), Path::new(LANGUAGES).join("js")];
    let files = folders.map(|folder| find(&folder).expect("cases")).concat();
    all_passed(&run(&out, &files, &Options::default()));
}

/// Each folder of `example-tools/js` and `example-tools/ts`.
#[test]
fn js_and_ts_example_tools_pass_their_cases() {
    let place = tempfile::tempdir().expect("a folder");
    for (folder, language) in [("js", Language::JavaScript), ("ts", Language::TypeScript)] {
        let projects = fs::read_dir(Path::new(EXAMPLES).join(folder)).expect("a folder");
        let projects: Vec<_> = projects.map(|entry| entry.expect("an entry").path()).collect();
        assert!(projects.len() >= 2, "{projects:?}");
        for project in projects {
            let out = place.path().join("example.wasm");
            let built = build(&project, Some(&out))
                .unwrap_or_else(|error| panic!("{}: {error}", project.display()));
            assert_eq!(built.language, language);
            let report = run(&out, &find(&project).expect("cases"), &Options::default());
            let failures: Vec<_> = report.cases.iter().filter(|case| !case.passed).collect();
            assert!(
                failures.is_empty() && report.passed >= 5,
                "{}: {failures:#?}",
                project.display()
            );
        }
    }
}

/// As in Node, also if the promise is rejected after the modules were evaluated.
#[test]
fn unhandled_promise_rejection_fails_the_build() {
    let tool = "import { tool } from \"toolcell\";\ntool({ name: \"a\", description: \"A.\", handler: () => 1 });\n";
    for source in [
        "Promise.reject(new RangeError(\"out of cheese\"));",
        "(async () => { await null; throw new RangeError(\"out of cheese\"); })();",
        "queueMicrotask(() => { throw new RangeError(\"out of cheese\"); });",
    ] {
        let error = fault("tool.js", &format!("{tool}{source}"));
        let told = error.to_string();
        assert!(
            told.starts_with(
                "a promise was rejected, and nothing handles it: RangeError: out of cheese\n"
            ),
            "{told}"
        );
        assert!(told.contains("tool.js:3"), "{told}");
    }
    let handled =
        "const lost = Promise.reject(new Error(\"no\"));\nawait null;\nlost.catch(() => {});";
    let place = project(&[("tool.js", &*format!("{tool}{handled}"))]);
    build(place.path(), None).expect("it builds");
}

#[test]
fn case_answers_calls_of_other_tools() {
    let place =
        project(&rows::<(&str, &str)>("author/projects", "case_answers_calls_of_other_tools"));
    assert_eq!(all_passed(&tested(place.path(), &Options::default())), 5);
}

#[test]
fn failing_case_says_why_and_can_be_blessed() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("greeter");
    create(&folder, Language::JavaScript).expect("a project");
    let built = build(&folder, None).expect("it builds");
    let file = folder.join("cases.json");
    let case = r#"{"cases": [{"name": "a", "arguments": {"name": "A"}, "budget": {"fuel": 10},
        "expect": {"ok": "no", "ok_contains": "Hello", "ok_matches": "A!$", "message_contains": "Hello"}}]}"#;
    fs::write(&file, case).expect("written");
    let report = run(&built.component, std::slice::from_ref(&file), &Options::default());
    let failures = &report.cases[0].failures;
    assert!(
        failures[0].contains("expected ok: \"no\", but it ended with ok: \"Hello, A!\""),
        "{failures:?}"
    );
    // Only a tool error and a refusal have a message.
    assert!(failures[1].contains("expected a message with \"Hello\" in it"), "{failures:?}");
    assert!(failures[2].contains("fuel; its budget is 10"), "{failures:?}");
    let update = Options { update: true, ..Options::default() };
    // Blessing writes the ending and keeps the conditions that hold. It does not write the budget,
    // so the case fails until the author changes that.
    for updated in [1, 0] {
        let report = run(&built.component, std::slice::from_ref(&file), &update);
        assert_eq!((report.passed, report.failed, report.updated), (0, 1, updated), "{report:?}");
        let [failure] = &report.cases[0].failures[..] else { panic!("one failure: {report:?}") };
        assert!(failure.contains("fuel; its budget is 10"), "{failure}");
        let expect = read(&file).expect("cases").cases[0].expect.clone().expect("updated");
        assert_eq!(expect.ok, Some("Hello, A!".into()));
        assert_eq!(expect.ok_contains.as_deref(), Some("Hello"));
        assert_eq!(expect.message_contains, None);
        assert_eq!(expect.ok_matches.expect("a pattern").to_string(), "A!$");
    }
    fs::write(&file, case.replace(r#""fuel": 10"#, r#""memory": 1000000000"#)).expect("written");
    let report = run(&built.component, std::slice::from_ref(&file), &update);
    assert_eq!((report.passed, report.failed, report.updated), (0, 0, 1), "{report:?}");
    assert_eq!(run(&built.component, std::slice::from_ref(&file), &Options::default()).passed, 1);
}

#[test]
fn coverage_lists_values_that_no_case_has() {
    let files = rows::<(&str, &str)>("author/projects", "coverage_lists_values_that_no_case_has");
    let options = Options { coverage: true, ..Options::default() };
    let report = tested(project(&files).path(), &options);
    let [coverage] = &report.coverage.expect("it was asked for")[..] else { panic!("one tool") };
    assert_eq!(
        (coverage.outcomes["ok"], coverage.outcomes["refusal"], coverage.outcomes["halt"]),
        (2, 1, 0)
    );
    assert_eq!(coverage.uncovered_parameters, ["digits"]);
    assert_eq!(coverage.uncovered_values, ["unit=\"ft\""]);
}

#[test]
fn source_faults_are_reported_with_their_place() {
    for (file, source, told) in
        rows::<(&str, &str, &str)>("author/projects", "source_faults_are_reported_with_their_place")
    {
        let error = fault(file, source);
        assert!(error.to_string().contains(told), "{source}: {error}");
        assert!(!error.hint().is_empty());
    }
}

#[test]
fn faulty_case_files_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    assert_eq!(find(place.path()).expect_err("none").kind(), ErrorKind::Cases);
    let file = place.path().join("cases.yaml");
    for (text, told) in rows::<(&str, &str)>("author/projects", "faulty_case_files_are_refused") {
        fs::write(&file, text).expect("written");
        let error = read(&file).expect_err("it is at fault");
        assert!(error.to_string().contains(told), "{text}: {error}");
    }
    let list = place.path().join("list.json");
    fs::write(&list, r#"[{"name": "a"}]"#).expect("written");
    let error = read(&list).expect_err("a list").to_string();
    assert!(error.ends_with(r#": it is a list, expected {"cases": […]}"#), "{error}");
    fs::File::create(&file).and_then(|file| file.set_len((16 << 20) + 1)).expect("written");
    let error = read(&file).expect_err("it is too large").to_string();
    assert!(error.contains("it has 16777217 bytes, and at most 16777216 are read"), "{error}");
    assert_eq!(find(&file).expect_err("no folder").kind(), ErrorKind::File);
}

#[test]
fn case_that_cannot_run_is_named_with_the_reason() {
    let source = r#"import { tool } from "toolcell";
for (const name of ["one", "two"]) tool({ name, description: "Answers.", handler: () => 1 });
"#;
    let place = project(&[("tool.js", source)]);
    let built = build(place.path(), None).expect("it builds");
    let file = place.path().join("cases.yaml");
    for (case, told) in
        rows::<(&str, &str)>("author/projects", "case_that_cannot_run_is_named_with_the_reason")
    {
        fs::write(&file, format!("cases: [{{ name: a, {case} }}]")).expect("written");
        let error = try_run(&built.component, std::slice::from_ref(&file), &Options::default())
            .expect_err(case);
        assert_eq!(error.kind(), ErrorKind::Cases, "{case}: {error}");
        assert!(error.to_string().contains(&format!("the case `a`: {told}")), "{case}: {error}");
    }
}

#[test]
fn device_is_not_read_as_a_component() {
    let read = Cases::read(Engine::builder(), Path::new("/dev/null"), &[]);
    let error = read.expect_err("a device");
    assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::File, "`/dev/null` is not a file"));
}

#[test]
fn invalid_names_and_unknown_languages_are_refused() {
    assert_eq!(
        "cobol".parse::<Language>().expect_err("unknown").hint(),
        "use one of: js, ts, python, rust, c"
    );
    for name in ["", "Big", "a b", "1a"] {
        assert_eq!(
            create(Path::new(name), Language::Rust).expect_err(name).kind(),
            ErrorKind::Usage
        );
    }
    for path in [".", "..", "/"] {
        let error = create(Path::new(path), Language::JavaScript).expect_err(path);
        assert_eq!(
            error.to_string(),
            format!("the name of a new folder is expected, not `{path}`")
        );
        assert!(error.hint().contains("`toolcell new greeter`"), "{}", error.hint());
    }
    // Cargo refuses two packages of one name; the names are free in other languages.
    let place = tempfile::tempdir().expect("a folder");
    for name in ["toolcell-guest", "toolcell-guest-macros"] {
        let folder = place.path().join(name);
        let error = create(&folder, Language::Rust).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(
            error
                .to_string()
                .contains(&format!("`{name}` cannot be the name of a project in Rust")),
            "{error}"
        );
        assert!(!folder.exists());
        create(&folder, Language::JavaScript).expect("a project");
    }
}

/// The lock file lists the project itself in alphabetical order.
#[test]
fn rust_project_locks_the_tested_versions() {
    let tested = fs::read_to_string(Path::new(EXAMPLES).join("Cargo.lock")).expect("a lock file");
    // The dependencies that a package uses depend on its features.
    let version =
        |package: &str| package.trim_end().split("\ndependencies").next().map(ToOwned::to_owned);
    let tested: Vec<_> = tested.split("\n\n").map(version).collect();
    let place = tempfile::tempdir().expect("a folder");
    for name in ["a-tool", "toolcell", "zz"] {
        let folder = place.path().join(name);
        let created = create(&folder, Language::Rust).expect("a project");
        assert!(created.files.contains(&"Cargo.lock".to_owned()), "{created:?}");
        let lock = fs::read_to_string(folder.join("Cargo.lock")).expect("a lock file");
        let packages: Vec<&str> = lock.trim_end().split("\n\n").skip(1).collect();
        assert!(packages.is_sorted(), "{lock}");
        let is_taken = |package: &&str| package.contains("\nsource = ");
        let (taken, own): (Vec<&str>, Vec<&str>) = packages.into_iter().partition(is_taken);
        let names: Vec<_> = own.iter().filter_map(|package| package.split('"').nth(1)).collect();
        let mut expected = [name, "toolcell-guest", "toolcell-guest-macros"];
        expected.sort_unstable();
        assert_eq!(names, expected);
        for package in taken {
            assert!(tested.contains(&version(package)), "{package}");
        }
    }
}

/// Writes a script as a program of the project.
fn program(folder: &Path, name: &str, script: &str) {
    let programs = folder.join(".venv/bin");
    fs::create_dir_all(&programs).expect("a folder");
    let program = programs.join(name);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
}

/// Writes the project's Python as a script that answers like Zig.
fn zig(folder: &Path, version: &str, compile: &str) {
    let script = format!("if [ \"$3\" = version ]; then echo {version}; exit; fi\n{compile}");
    program(folder, "python", &script);
}

#[test]
fn component_that_is_too_large_is_not_written() {
    let place = project(&[("tool.py", "")]);
    let (folder, most) = (place.path(), Engine::MAX_COMPONENT);
    let version = "if [ \"$1\" = --version ]; then echo componentize-py 0.25.1; exit; fi";
    let made = format!(
        "while [ \"$1\" != -o ]; do shift; done\ndd if=/dev/null of=\"$2\" bs=1 seek={}",
        most + 1
    );
    program(folder, "componentize-py", &format!("{version}\n{made}"));
    let error = build(folder, None).expect_err("no host loads it");
    let expected =
        format!("the component has {} bytes, and at most {most} can be loaded", most + 1);
    assert!(error.to_string().contains(&expected), "{error}");
    assert!(!component_of(folder).expect("a project").exists());
}

#[test]
fn c_compiler_messages_are_shown() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("greeter");
    let created = create(&folder, Language::C).expect("a project");
    for file in ["src/tool.c", "toolcell.h", "compile_flags.txt", "cases.yaml"] {
        assert!(created.files.contains(&file.to_owned()), "{file}: {created:?}");
    }
    assert_eq!(component_of(&folder).expect("a project"), folder.join("greeter.wasm"));
    const SAID: &str =
        "src/tool.c:4:12: error: use of undeclared identifier 'nam'\n    4 |     return nam;";
    zig(&folder, "0.17.1", &format!("cat >&2 <<'END'\n{SAID}\nEND\nexit 1"));
    let error = build(&folder, None).expect_err("it is at fault");
    assert_eq!(error.kind(), ErrorKind::Source);
    assert!(error.to_string().contains(SAID), "{error}");
    assert_eq!(
        error.source_faults()[0].to_string(),
        "src/tool.c:4:12: use of undeclared identifier 'nam'"
    );
    // The smallest core module, which exports nothing.
    let empty = "while [ \"$1\" != -o ]; do shift; done\nprintf '\\0asm\\1\\0\\0\\0' > \"$2\"";
    zig(&folder, "0.17.1", empty);
    let error = build(&folder, None).expect_err("it exports no tool");
    assert!(error.to_string().contains("the compiled module is not a tool"), "{error}");
    assert!(!folder.join("greeter.wasm").exists());
}

#[test]
fn c_project_files_are_found() {
    let place = tempfile::tempdir().expect("a folder");
    for file in ["tool.c", "b.c", "-x.c", "notes.txt", "deeper/d.c"] {
        fs::create_dir_all(place.path().join("deeper")).expect("a folder");
        fs::write(place.path().join(file), "").expect("written");
    }
    zig(place.path(), "0.17.1", "echo \"$@\" >&2\nexit 1");
    let compiled = |source: &Path| {
        let error = build(source, None).expect_err("it is no compiler").to_string();
        let own = ["toolcell.c", "generated/toolbox_with_grants.c"];
        let words =
            error.split_whitespace().filter(|word| word.ends_with(".c") && !own.contains(word));
        words.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(compiled(place.path()), ["./-x.c", "b.c", "tool.c"]);
    assert_eq!(compiled(&place.path().join("b.c")), ["b.c"]);
    assert_eq!(compiled(&place.path().join("-x.c")), ["./-x.c"]);
}

#[test]
fn c_page_shows_the_tool_of_a_new_project() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/authoring/c.md");
    let page = fs::read_to_string(page).expect("the page");
    let mut blocks = page.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next());
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("greeter");
    create(&folder, Language::C).expect("a project");
    let created = fs::read_to_string(folder.join("src/tool.c")).expect("the tool");
    assert_eq!(blocks.next(), Some(created.as_str()));
    // `cargo xtask languages` compiles the other blocks.
    let compiled = fs::read_to_string(Path::new(LANGUAGES).join("c/src/tool.c")).expect("a tool");
    for block in blocks {
        assert!(compiled.contains(block), "this is not in tests/languages/c/src/tool.c: {block}");
    }
}

#[test]
fn python_page_shows_the_tool_of_a_new_project() {
    let shown = block("python.md", "python", 0);
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("greeter");
    create(&folder, Language::Python).expect("a project");
    assert_eq!(shown, fs::read_to_string(folder.join("tool.py")).expect("the tool"));
    // `cargo xtask languages` runs the other block.
    let run =
        fs::read_to_string(Path::new(LANGUAGES).join("python/src/flights.py")).expect("a module");
    assert!(run.contains(&block("python.md", "python", 1)));
}

/// Returns the code block with this language and number on a page of `docs/authoring`.
fn block(page: &str, language: &str, number: usize) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/authoring").join(page);
    let text = fs::read_to_string(path).expect("the page");
    let found = text
        .split(&format!("```{language}\n"))
        .nth(number + 1)
        .and_then(|rest| rest.split("```").next());
    found.expect("the block").to_owned()
}

/// Builds this module and runs these cases, which must all pass.
fn passes(module: &str, cases: &str) {
    let place = project(&[("tool.js", module), ("cases.yaml", cases)]);
    let report = tested(place.path(), &Options::default());
    assert!(report.passed > 0 && report.failed == 0, "{report:#?}");
}

#[test]
fn javascript_page_tool_calls_another_tool() {
    let tools = block("testing.md", "yaml", 1);
    let case = |name: &str, place: &str, expected: &str| {
        format!(
            "  - name: {name}\n    arguments: {{ name: {place} }}\n{tools}    expect: {{ ok: {expected} }}\n"
        )
    };
    let cases = [case("known", "Bern", "{ at: [46.9, 7.4] }"), case("unknown", "Atlantis", "null")]
        .concat();
    passes(&block("javascript.md", "js", 0), &format!("cases:\n{cases}"));
}

#[test]
fn testing_page_case_passes() {
    let [module] = rows::<&str>("author/projects", "testing_page_case_passes")[..] else {
        panic!("one module")
    };
    passes(module, &block("testing.md", "yaml", 0));
}
