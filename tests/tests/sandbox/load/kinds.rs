//! Components that describe no tools: their functions, or the program that they are, become tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcell::component::{
    Command, CommandInput, CommandOutput, ComponentBytes, ComponentKind, Inspection, LoadOptions,
};
use toolcell::grants::{Access, Directory};
use toolcell::outcome::HandlerError;
use toolcell::{CallResult, Component, Error, Grants, Limits, Outcome};
use toolcell_test_guests::{
    command_component, command_module, functions_component, importing, module, rows,
};
use toolcell_tests::{call, ending, load, wait};

use super::{ENGINE, Scratch, assert_refused, tight};

const MATH: &str = "package docs:math@0.1.0;
interface whole {
    add: func(a: u32, b: u32) -> u32;
    check: func(a: u32) -> result<u32, u32>;
    spin: func();
    crash: func();
}
world plain { export whole; export twice: func(n: s64) -> s64; }";

const MATH_MODULE: &str = r#"
  (func (export "docs:math/whole@0.1.0#add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "docs:math/whole@0.1.0#check") (param i32) (result i32)
    (i32.store (i32.const 1024) (i32.gt_u (local.get 0) (i32.const 9)))
    (i32.store (i32.const 1028) (local.get 0))
    (i32.const 1024))
  (func (export "docs:math/whole@0.1.0#spin") (loop $ever (br $ever)))
  (func (export "docs:math/whole@0.1.0#crash") unreachable)
  (func (export "twice") (param i64) (result i64) (i64.mul (local.get 0) (i64.const 2)))"#;

pub(crate) fn load_as(
    bytes: Vec<u8>,
    kind: ComponentKind,
    grants: Grants,
) -> Result<Component, Error> {
    let bytes = ComponentBytes::new(bytes, kind);
    let options = LoadOptions { grants, ..LoadOptions::default() };
    wait(async move { Component::load_with(&ENGINE, bytes, options).await })
}

fn functions(wit: &str, module: &str) -> Result<Component, Error> {
    load_as(functions_component(wit, module), ComponentKind::Functions, Grants::default())
}

fn value(result: &CallResult) -> Value {
    result.value().unwrap_or_else(|| panic!("{result:?}")).to_value()
}

#[test]
fn each_exported_function_is_a_tool() {
    let component = functions(MATH, MATH_MODULE).expect("it loads");
    let mut names: Vec<_> = component.definitions().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["twice", "whole_add", "whole_check", "whole_crash", "whole_spin"]);
    let add = component.tool("whole_add").expect("the tool").definition();
    assert_eq!(
        add.description,
        "Calls the function `docs:math/whole@0.1.0#add(a: u32, b: u32) -> u32`."
    );
    let whole = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    assert_eq!(add.output, Some(whole.clone()));
    let object = json!({
        "type": "object", "properties": { "a": whole, "b": whole }, "required": ["a", "b"], "additionalProperties": false,
    });
    assert_eq!(add.parameters, Some(object));
    for (tool, arguments, expected) in [
        ("whole_add", r#"{"a": 40, "b": 2}"#, json!(42)),
        ("twice", r#"{"n": 21}"#, json!(42)),
        ("twice", r#"{"n": "4503599627370497"}"#, json!("9007199254740994")),
        ("twice", r#"{"n": -4503599627370497}"#, json!("-9007199254740994")),
        ("whole_check", r#"{"a": 9}"#, json!(9)),
    ] {
        let completion = call(&component, tool, arguments, tight());
        assert_eq!(value(&completion.result), expected, "{tool} {arguments}");
        assert!(completion.usage.fuel.is_some_and(|fuel| fuel > 0));
    }
    let failed = call(&component, "whole_check", r#"{"a": 10}"#, tight()).result;
    let expected = HandlerError::new("10").with_data(json!(10));
    assert_eq!(failed, CallResult::Outcome(Outcome::Error(expected)));
    for (tool, arguments, end) in [
        ("whole_add", r#"{"a": -1, "b": 2}"#, "refusal/invalid_arguments"),
        ("whole_add", r#"{"a": 1}"#, "refusal/invalid_arguments"),
        ("twice", r#"{"n": "9223372036854775808"}"#, "refusal/invalid_arguments"),
        ("whole_spin", "{}", "timeout/fuel"),
        ("whole_crash", "{}", "handler_raised/unreachable"),
    ] {
        assert_eq!(
            ending(&call(&component, tool, arguments, tight()).result),
            end,
            "{tool} {arguments}"
        );
    }
}

#[test]
fn runtime_export_is_not_a_tool() {
    let names = |wit: &str, module: &str| {
        let component = functions(wit, module).expect("it loads");
        component.definitions().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    // componentize-py leaves this interface in its components.
    let wit = "package a:b; world plain { export exports: interface { init: func(); } export f: func(); }";
    let module = r#"(func (export "exports#init")) (func (export "f"))"#;
    assert_eq!(names(wit, module), ["f"]);
    // Interfaces of an author, with another function or in a package, are tools.
    let wit =
        "package a:b; world plain { export exports: interface { init: func(); more: func(); } }";
    let module = r#"(func (export "exports#init")) (func (export "exports#more"))"#;
    assert_eq!(names(wit, module), ["exports_init", "exports_more"]);
    let wit = "package a:b; interface exports { init: func(); } world plain { export exports; }";
    assert_eq!(names(wit, r#"(func (export "a:b/exports#init"))"#), ["exports_init"]);
}

#[test]
fn functions_of_the_same_name_are_distinct_tools() {
    let wit = "package a:one@0.1.0; interface math { f: func() -> u32; }
        interface other { g: func() -> u32; }
        world plain { export math; export other; export f: func() -> u32; export math-f: interface { f: func() -> u32; } }";
    let module = r#"(func (export "a:one/math@0.1.0#f") (result i32) (i32.const 1))
        (func (export "a:one/other@0.1.0#g") (result i32) (i32.const 2))
        (func (export "math-f#f") (result i32) (i32.const 3))
        (func (export "f") (result i32) (i32.const 4))"#;
    let component = functions(wit, module).expect("it loads");
    for (tool, expected) in [("math_f", 1), ("other_g", 2), ("math-f_f", 3), ("f", 4)] {
        assert_eq!(value(&call(&component, tool, "{}", tight()).result), json!(expected), "{tool}");
    }
}

#[test]
fn tools_of_two_versions_include_the_version() {
    let wit = "package a:one@0.1.0;
        package b:two@1.0.0 { interface math { f: func() -> u32; } }
        package b:two@2.1.0-rc.1 { interface math { f: func() -> u32; } }
        world plain { export b:two/math@1.0.0; export b:two/math@2.1.0-rc.1; }";
    let module = r#"(func (export "b:two/math@1.0.0#f") (result i32) (i32.const 1))
        (func (export "b:two/math@2.1.0-rc.1#f") (result i32) (i32.const 2))"#;
    let component = functions(wit, module).expect("it loads");
    for (tool, expected) in [("b_two_math_1_0_0_f", 1), ("b_two_math_2_1_0-rc_1_f", 2)] {
        assert_eq!(value(&call(&component, tool, "{}", tight()).result), json!(expected), "{tool}");
    }
}

#[test]
fn long_function_name_is_shortened_with_a_digest() {
    let (long, longer) = ("x".repeat(65), "x".repeat(66));
    let wit = format!(
        "package a:b; world plain {{ export f: func(); export {long}: func() -> u32; export {longer}: func(); }}"
    );
    let module = format!(
        r#"(func (export "f")) (func (export "{long}") (result i32) (i32.const 7)) (func (export "{longer}"))"#
    );
    let component = functions(&wit, &module).expect("it loads");
    // The digests are of the full names: `printf %s NAME | sha256sum`.
    let short = format!("{}_9537c5fdf1", "x".repeat(53));
    let named =
        component.definitions().map(|tool| (&*tool.name, tool.attributes.get("title").cloned()));
    let other = format!("{}_6eb879f129", "x".repeat(53));
    let expected = [("f", None), (&*short, Some(json!(long))), (&*other, Some(json!(longer)))];
    assert_eq!(named.collect::<BTreeMap<_, _>>(), BTreeMap::from(expected));
    assert_eq!(value(&call(&component, &short, "{}", tight()).result), 7);
}

#[test]
fn unusable_functions_are_refused_by_name() {
    type Is = fn(&Error) -> bool;
    let (definition, component): (Is, Is) = (Error::is_definition, Error::is_component);
    let resource = "package a:b@0.1.0; interface i { resource r; make: func() -> own<r>; } world plain { export i; }";
    let make = r#"(func (export "a:b/i@0.1.0#make") (result i32) (i32.const 1))"#;
    let future =
        "package a:b@0.1.0; interface i { f: func(a: future<u32>); } world plain { export i; }";
    let stream =
        "package a:b@0.1.0; interface i { f: func(a: stream<u8>); } world plain { export i; }";
    let take = r#"(func (export "a:b/i@0.1.0#f") (param i32))"#;
    // An `async` function is lifted like an ordinary one, with a callback, or with a stack of its
    // own.
    let asynchronous =
        "package a:b@0.1.0; interface i { f: async func(a: u32); } world plain { export i; }";
    let callback = r#"(func (export "[async-lift]a:b/i@0.1.0#f") (param i32) (result i32) (i32.const 0))
        (func (export "[callback][async-lift]a:b/i@0.1.0#f") (param i32 i32 i32) (result i32) (i32.const 0))"#;
    let stackful = r#"(func (export "[async-lift-stackful]a:b/i@0.1.0#f") (param i32))"#;
    let deep = format!(
        "package a:b@0.1.0; interface i {{ f: func(a: {}u8{}); }} world plain {{ export i; }}",
        "list<".repeat(30),
        ">".repeat(30)
    );
    let deeply = r#"(func (export "a:b/i@0.1.0#f") (param i32 i32))"#;
    let listed: String = (0..257).map(|n| format!("t{n}: func(); ")).collect();
    let many = format!("package a:b@0.1.0; interface i {{ {listed} }} world plain {{ export i; }}");
    let all: String = (0..257).map(|n| format!(r#"(func (export "a:b/i@0.1.0#t{n}"))"#)).collect();
    for (wit, module, is, needle) in [
        (
            resource,
            make,
            definition,
            "`a:b/i@0.1.0#make` cannot be a tool: it takes or returns a resource",
        ),
        (future, take, component, "component async"),
        (stream, take, component, "component async"),
        (asynchronous, take, component, "component async"),
        (asynchronous, callback, component, "component async"),
        (asynchronous, stackful, component, "component async, stackful component async"),
        ("package a:b; world plain {}", "", component, "it exports no function"),
        (deep.as_str(), deeply, definition, "types that nest deeper than 24 levels"),
        (many.as_str(), all.as_str(), component, "tools of the component: 257"),
    ] {
        assert_refused(functions(wit, module), is, needle);
    }
    // Each type names the type before it twice.
    let mut types = "type t0 = u32;".to_owned();
    for level in 0..12 {
        types += &format!(
            "record r{level} {{ a: t{level}, b: t{level} }} type t{} = r{level};",
            level + 1
        );
    }
    let wit = format!(
        "package a:b@0.1.0; interface i {{ {types} f: func(t: t12); }} world plain {{ export i; }}"
    );
    let loaded = functions(&wit, r#"(func (export "a:b/i@0.1.0#f") (param i32))"#);
    assert_refused(
        loaded,
        definition,
        "#f` cannot be a tool: it takes or returns types with more than 1500 parts",
    );
}

pub(crate) fn command(change: impl FnOnce(&mut Command)) -> ComponentKind {
    let mut command = Command::new("tool");
    change(&mut command);
    ComponentKind::Command(command)
}

#[test]
fn program_runs_as_a_tool() {
    let module = load_as(command_module(), command(|_| {}), Grants::default()).expect("it loads");
    let limits = Limits { fuel: 200_000_000, ..Limits::default() };
    for (arguments, expected) in [
        (json!({ "args": ["copy"], "stdin": "a\nb\r\n" }), json!("a\nb")),
        (json!({ "args": ["write", "$(no shell) 'a b'"] }), json!("$(no shell) 'a b'")),
        (json!({ "args": ["write", "-42"] }), json!("-42")),
        (json!({}), json!("")),
    ] {
        let completion = call(&module, "tool", &arguments.to_string(), limits);
        assert_eq!(value(&completion.result), expected, "{arguments}");
    }
    // Of a status, WASI 0.2 only passes on if it is 0.
    let failed = call(&module, "tool", r#"{"args": ["fail"]}"#, limits).result;
    let data = json!({ "status": 1, "stdout": "partly\n", "stderr": "it went wrong" });
    let expected = HandlerError::new("it went wrong (exit status 1)").with_data(data);
    assert_eq!(failed, CallResult::Outcome(Outcome::Error(expected)));
    for (args, end) in [
        ("loop", "timeout/fuel"),
        ("trap", "handler_raised/unreachable"),
        ("big", "invalid_return/too_large"),
        // Without a directory there is no descriptor to open it in.
        ("note", "error"),
    ] {
        let result = call(&module, "tool", &json!({ "args": [args] }).to_string(), limits).result;
        assert_eq!(ending(&result), end, "{args}: {result:?}");
    }
    let refused = call(&module, "tool", r#"{"args": "write"}"#, limits).result;
    assert_eq!(ending(&refused), "refusal/invalid_arguments");
    for (is_ok, end) in [(true, "ok"), (false, "error")] {
        let component = load_as(command_component(is_ok), command(|_| {}), Grants::default())
            .expect("it loads");
        assert_eq!(ending(&call(&component, "tool", "{}", limits).result), end);
    }
}

#[test]
fn settings_define_argv_stdin_and_output() {
    let limits = Limits { fuel: 200_000_000, ..Limits::default() };
    for (argv, stdin, output, arguments, expected) in rows::<(Vec<String>, &str, &str, &str, Value)>(
        "sandbox/load/kinds",
        "settings_define_argv_stdin_and_output",
    ) {
        let stdin = match stdin {
            "json" => CommandInput::Json,
            "text" => CommandInput::Text,
            _ => CommandInput::Empty,
        };
        let output = if output == "json" { CommandOutput::Json } else { CommandOutput::Text };
        let kind = command(|command| {
            (command.argv, command.stdin, command.output) = (Some(argv), stdin, output);
        });
        let component = load_as(command_module(), kind, Grants::default()).expect("it loads");
        assert_eq!(
            value(&call(&component, "tool", arguments, limits).result),
            expected,
            "{arguments}"
        );
    }
}

#[test]
fn program_reads_its_granted_files() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    std::fs::write(folder.path().join("note.txt"), "milk").expect("written");
    let mut grants = Grants::default();
    grants
        .directories
        .push(Directory::new("/data", folder.path(), Access::Read).expect("a directory"));
    let component = load_as(command_module(), command(|_| {}), grants).expect("it loads");
    assert_eq!(
        value(&call(&component, "tool", r#"{"args": ["note"]}"#, Limits::default()).result),
        json!("milk")
    );
}

/// The settings of a command are not kept with its code.
#[test]
fn command_settings_share_one_cached_artifact() {
    let scratch = Scratch::new();
    for (argv, is_cached, expected) in [("a", false, "a"), ("b", true, "b")] {
        let kind =
            command(|command| command.argv = Some(vec!["write".to_owned(), argv.to_owned()]));
        let (engine, bytes) = (scratch.engine(), ComponentBytes::new(command_module(), kind));
        let component =
            wait(async move { Component::load(&engine, bytes).await }).expect("it loads");
        assert_eq!(component.is_cached(), is_cached);
        let description = &component.tools()[0].definition().description;
        assert!(description.contains(&format!("tool write {argv}`")), "{description}");
        assert_eq!(
            value(&call(&component, "tool", "{}", Limits::default()).result),
            json!(expected)
        );
    }
    let engine = scratch.engine();
    let bytes = functions_component(MATH, MATH_MODULE);
    let bytes = ComponentBytes::new(bytes, ComponentKind::Functions);
    for is_cached in [false, true] {
        let (engine, bytes) = (engine.clone(), bytes.clone());
        let component =
            wait(async move { Component::load(&engine, bytes).await }).expect("it loads");
        assert_eq!((component.is_cached(), component.tools().len()), (is_cached, 5));
    }
}

#[test]
fn usable_component_kind_is_proposed() {
    for (bytes, proposal) in [
        (functions_component(MATH, MATH_MODULE), Some("functions")),
        (command_component(true), Some("command")),
        (command_module(), Some("command")),
        (toolcell_test_guests::bytes("hello"), None),
        (functions_component("package a:b; world plain {}", ""), None),
    ] {
        assert_eq!(Inspection::of(&bytes).expect("a component").proposal(), proposal);
        let Some(proposal) = proposal else { continue };
        let error = load(&ENGINE, bytes).expect_err("it has no tools");
        assert!(
            error.is_component() && error.hint().contains(&format!("`as = \"{proposal}\"`")),
            "{error:?}"
        );
    }
    for (text, names) in [
        ("(memory (export \"memory\") i64 1)", "64-bit memory"),
        (
            "(import \"wasi\" \"thread-spawn\" (func (param i32) (result i32))) (memory 1 1 shared)",
            "threads",
        ),
    ] {
        let exit = r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))"#;
        let program = module(&format!(r#"(module {exit} {text} (func (export "_start")))"#));
        assert_refused(
            load_as(program, command(|_| {}), Grants::default()),
            Error::is_component,
            names,
        );
    }
    let not_a_command =
        load_as(functions_component(MATH, MATH_MODULE), command(|_| {}), Grants::default());
    assert_refused(not_a_command, Error::is_component, "does not export `wasi:cli/run@0.2`");
    let not_functions =
        load_as(command_component(true), ComponentKind::Functions, Grants::default());
    assert_refused(not_functions, Error::is_component, "it exports no function");
}

/// Language runtimes bring imports that most functions never use.
#[test]
fn ungranted_function_import_is_denied_at_use() {
    let component = functions(
        "package a:b;
        package toolcell:tool@0.1.0 {
            interface kv {
                variant fault { denied(string), invalid-key(string), over-quota(string), unavailable(string) }
                delete: func(key: string) -> result<bool, fault>;
            }
        }
        world plain { import toolcell:tool/kv@0.1.0; export idle: func() -> u8; export fault: func() -> u8; }",
        r#"(import "toolcell:tool/kv@0.1.0" "delete" (func $delete (param i32 i32 i32)))
        (func (export "idle") (result i32) (i32.const 7))
        (func (export "fault") (result i32)
          (call $delete (i32.const 8) (i32.const 1) (i32.const 16))
          (i32.add (i32.mul (i32.load8_u (i32.const 16)) (i32.const 10)) (i32.load8_u (i32.const 20))))
        (data (i32.const 8) "k")"#,
    );
    let component = component.expect("it loads");
    // The results: an error, whose variant is the first case.
    for (tool, expected) in [("idle", 7), ("fault", 10)] {
        assert_eq!(
            value(&call(&component, tool, "{}", Limits::default()).result),
            json!(expected),
            "{tool}"
        );
    }
}

/// A broken module, or one that imports more than WASI, is refused, also if its metadata says
/// otherwise.
#[test]
fn unadaptable_modules_are_refused() {
    let module = command_module();
    let with = |text: &str| {
        let start = r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))"#;
        let text = format!(
            "(module {start} {text} (memory (export \"memory\") 1) (func (export \"_start\")))"
        );
        toolcell_test_guests::module(&text)
    };
    for (bytes, needle) in [
        (module[..module.len() - 9].to_vec(), "malformed"),
        (
            with(r#"(import "env" "f" (func))"#),
            "a module that imports `env::f`, which WASI preview 1 does not have",
        ),
        (
            with(r#"(import "wasi_snapshot_preview1" "sock_open" (func))"#),
            "`wasi_snapshot_preview1::sock_open`",
        ),
        (
            with(&r#"(import "env" "f" (func))"#.repeat(20)),
            "`env::f`, `env::f`, `env::f` and 17 more",
        ),
        (
            toolcell_test_guests::module(
                "(module (import \"wasi_unstable\" \"f\" (func)) (func (export \"_start\")))",
            ),
            "imports `wasi_unstable::f`",
        ),
        (
            toolcell_test_guests::module("(module (func (export \"_start\")))"),
            "module cannot be adapted",
        ),
    ] {
        assert_refused(
            load_as(bytes, command(|_| {}), Grants::default()),
            Error::is_component,
            needle,
        );
    }
    // A custom section that an encoder would read, `component-type`, with unusable content.
    let name = b"component-type:x";
    let custom = [&[0, name.len() as u8 + 4, name.len() as u8][..], name, &[1, 2, 3]].concat();
    let component =
        load_as([module, custom].concat(), command(|_| {}), Grants::default()).expect("it loads");
    assert_eq!(
        value(&call(&component, "tool", r#"{"args": ["write", "x"]}"#, Limits::default()).result),
        json!("x")
    );
}

#[test]
fn later_wasi_versions_are_refused_by_name() {
    for name in ["wasi:cli/stdin@0.3.0", "wasi:sockets/types@0.3.0", "wasi:http/handler@0.3.1"] {
        let error = load(&ENGINE, importing(name)).expect_err("it is refused");
        assert!(
            error.is_component() && error.to_string().contains(&format!("WASI 0.3 (`{name}`)")),
            "{error}"
        );
        assert!(error.hint().contains("for WASI 0.2"), "{}", error.hint());
    }
}
