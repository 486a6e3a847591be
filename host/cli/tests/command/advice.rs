//! Command lines that fail, each with a hint whose command works.

use std::fs;

use toolcell_test_guests::{command_module, example, module};

use crate::place::Place;
use crate::remedies::pasted;

/// A command line, its exit status, a text that standard error contains, and one that it must not
/// contain.
type Row<'a> = (&'a [&'a str], i32, &'a str, &'a str);

fn place() -> Place {
    let place = Place::new("");
    for component in ["calculator", "clerk", "notes"] {
        fs::copy(example(component), place.path().join(format!("{component}.wasm")))
            .expect("a place");
    }
    fs::write(place.path().join("program.wasm"), command_module()).expect("a place");
    let silent = module(r#"(module (memory (export "memory") 1) (func (export "_start")))"#);
    fs::write(place.path().join("silent.wasm"), silent).expect("a place");
    place
}

#[test]
fn wrong_command_line_gets_working_hint() {
    const NUMBER: &str = "write a whole number above zero: ";
    let place = place();
    let rows: &[Row<'_>] = &[
        (
            &["run", "hello.wasm", "--name", "Ada"],
            2,
            "written as NAME=VALUE, after the component: `name=Ada`\n",
            "-- --name",
        ),
        (&["run", "hello.wasm", "--name=Ada L"], 2, "`'name=Ada L'`\n", "-- --name"),
        (&["learn", "hello.wasm", "greet", "--name"], 2, "`name=VALUE`\n", "-- --name"),
        (&["list", "hello.wasm", "--name", "Ada"], 2, "`toolcell list --help` shows", "NAME=VALUE"),
        (&["run", "hello.wasm", "name=Ada", "--fuel", "-5"], 2, NUMBER, "unexpected argument"),
        (
            &["run", "hello.wasm", "name=Ada", "--timeout", "-5s"],
            2,
            "write a time with its unit",
            "unexpected argument",
        ),
        (
            &["run", "hello.wasm", "name=Ada", "--memory", "-1MiB"],
            2,
            "write a size in bytes",
            "unexpected argument",
        ),
        (
            &["run", "hello.wasm", "name=Ada", "--seed", "-1"],
            2,
            "write a whole number from 0",
            "unexpected argument",
        ),
        (
            &["run", "hello.wasm", "name=Ada", "--quiet", "-5"],
            2,
            "unexpected argument '-5'",
            "no more were expected",
        ),
        (
            &["test", "--fuzz", "-3"],
            2,
            "write a whole number from 1 to 1000000",
            "unexpected argument",
        ),
        (&["test", "--fuzz", "abc"], 2, "write a whole number from 1 to 1000000", "invalid digit"),
        (
            &["batch", "hello.wasm", "--calls", "-", "--max-concurrency", "x"],
            2,
            "write a whole number from 1 to 4000",
            "digit",
        ),
        (&["serve", "--max-cells", "1.5"], 2, "write a whole number from 1 to 1000", "digit"),
        (
            &["inspect", "https://a.example/x.wasm"],
            1,
            "download it first, `curl -fLO https://a.example/x.wasm`\n",
            "check the path",
        ),
        (
            &["run", "--as", "command", "program.wasm", "write", "hello"],
            1,
            "`args`: 'args:=[\"write\",\"hello\"]'\n",
            "there are",
        ),
        (
            &["run", "--as", "command", "program.wasm", "write", "a", "b"],
            2,
            "`args`: 'args:=[\"write\",\"a\",\"b\"]'\n",
            "NAME:=JSON, or",
        ),
        (
            &["learn", "--as", "command", "program.wasm", "write", "hello"],
            1,
            "`args`: 'args:=[\"write\",\"hello\"]'\n",
            "there are",
        ),
        (
            &["learn", "--as", "command", "program.wasm", "write", "a", "b"],
            2,
            "`args`: 'args:=[\"write\",\"a\",\"b\"]'\n",
            "NAME:=JSON, or",
        ),
        (&["run", "--as", "command", "program.wasm", "args:=[\"write\",\"hello\"]"], 0, "", "hint"),
        (&["run", "--as", "command", "silent.wasm"], 0, "", "not a WebAssembly component"),
        (
            &["run", "hello.wasm", "name=Ada", "--memory", "1"],
            20,
            "raise `--memory` (now 1B), for example to 64MiB\n",
            "less to do",
        ),
        (&["run", "hello.wasm", "name=Ada", "--memory", "64MiB"], 0, "", "hint"),
        (&["run", "calculator.wasm", "{\"expression\": 1e400}"], 21, "hint: ", "did you mean"),
        (&["run", "-q", "hello.wasm", "nonsense=1"], 21, "  - at", "hint: "),
        (&["learn", "-q", "notes.wasm", "action=list"], 0, "", "approve"),
    ];
    for (words, status, told, untold) in rows {
        let shown = place.typed(words);
        assert_eq!(shown.status, *status, "{words:?}: {shown}");
        assert!(
            shown.stderr.contains(told) && !shown.stderr.contains(untold),
            "{words:?}: {shown}"
        );
    }
}

/// The answer to a question can be a negative number.
#[test]
fn negative_number_is_option_value() {
    let shown = place().typed(&["run", "hello.wasm", "name=Ada", "--answer", "-5"]);
    assert!(!shown.stderr.contains("unexpected argument"), "{shown}");
}

#[test]
fn tenant_option_requires_configuration() {
    let place = place();
    fs::remove_file(place.path().join("toolcell.toml")).expect("a place");
    for words in [
        &["run", "hello.wasm", "name=Ada"][..],
        &["learn", "hello.wasm", "name=Ada"],
        &["explain", "notes.wasm", "kv read a"],
        &["batch", "hello.wasm", "--calls", "-"],
    ] {
        let shown = place.typed(&[words, &["--tenant", "acme"]].concat());
        assert_eq!(shown.status, 2, "{shown}");
        assert!(shown.stderr.contains("error: `--tenant` needs a configuration"), "{shown}");
    }
}

/// Otherwise the tool would only get the error that the store does not answer.
#[test]
fn unusable_state_dir_is_host_error() {
    let place = place();
    for grant in ["kv=write *", "directory=write /data=data"] {
        let words = [
            "run",
            "notes.wasm",
            "action=list",
            "--grant",
            "kv=write *",
            "--grant",
            grant,
            "--state-dir",
        ];
        let shown = place.typed(&[&words[..], &["token"]].concat());
        assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{shown}");
        assert!(shown.stderr.contains("the state directory `token` cannot be used\n"), "{shown}");
        assert!(shown.stderr.contains("`--state-dir DIR`\n"), "{shown}");
        assert_eq!(place.typed(&[&words[..], &["made/below"]].concat()).status, 0);
    }
}

#[test]
fn explain_proposes_no_grant_for_impossible_request() {
    let place = place();
    let explained = place.typed(&["explain", "hello.wasm", "kv write a"]);
    assert_eq!(explained.status, 21, "{explained}");
    assert!(
        explained.stderr.starts_with("note: no call can make this request")
            && !explained.stderr.contains("hint"),
        "{explained}"
    );
}

#[test]
fn root_level_file_is_not_proposed_as_directory() {
    let place = place();
    let call = r#"toolcell run clerk.wasm '{"steps": [["read", "/in.txt"]]}'"#;
    let shown = pasted(&place, call, &[]);
    assert!(shown.status == 0 && shown.stderr.contains("denied: `read /in.txt`"), "{shown}");
    assert!(!shown.stderr.contains("hint"), "the tool could do without it: {shown}");
    let explained = place.typed(&["explain", "clerk.wasm", "read /in.txt"]);
    assert!(explained.stderr.contains(r#"directories = [{ name = "/", "#), "{explained}");
}

#[test]
fn parent_directory_grant_keeps_child_name() {
    let place = place();
    for (access, told) in [
        (
            "read",
            r#"directories = [{ name = "/data", path = "data", access = "read" }, { name = "/", path = "#,
        ),
        (
            "write",
            r#"# "/" cannot be granted beside "/data" of line 4: let the tool use files below "/data""#,
        ),
    ] {
        place.write(&format!(
            "[components.clerk]\npath = \"clerk.wasm\"\n[components.clerk.grants]\n\
             directories = [{{ name = \"/data\", path = \"data\", access = \"{access}\" }}]\n"
        ));
        place.approve();
        let explained = place.typed(&["explain", "clerk", "read /in.txt"]);
        assert!(explained.stderr.contains(told), "{explained}");
    }
}

/// CPython reads all variables when it starts.
#[test]
fn python_runtime_env_read_is_not_reported() {
    let place = place();
    for (name, is_told) in [("libpython3.14.so", false), ("tool", true)] {
        let text = format!(
            r#"(module ${name} (import "wasi_snapshot_preview1" "environ_sizes_get" (func $read (param i32 i32) (result i32)))
            (memory (export "memory") 1) (func (export "_start") (drop (call $read (i32.const 0) (i32.const 4)))))"#
        );
        fs::write(place.path().join("tool.wasm"), module(&text)).expect("a file");
        let shown = place.typed(&["learn", "--as", "command", "tool.wasm", "{}"]);
        assert_eq!(
            (shown.status, shown.stderr.contains("read its environment variables")),
            (0, is_told),
            "{shown}"
        );
    }
}
