//! Components that describe no tools: their functions, or the program that they are, become tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcell::component::{
    Command, CommandInput, CommandOutput, ComponentBytes, ComponentKind, Inspection, LoadOptions,
};
use toolcell::grants::{Access, Directory};
use toolcell::outcome::HandlerError;
use toolcell::{CallResult, Component, Error, Grants, Json, Limits, Outcome};
use toolcell_test_guests::{
    command_component, command_module, functions_component, importing, module, rows,
};
use toolcell_tests::{call, ending, load, wait};

use super::{ENGINE, Kind, Scratch, assert_refused, tight};

/// Returns the component with functions of this name in the table `components`.
fn component(name: &str) -> Vec<u8> {
    let table = rows::<(&str, &str, &str)>("sandbox/load/kinds", "components");
    let (_, wit, module) = table.into_iter().find(|(known, ..)| *known == name).expect(name);
    functions_component(wit, module)
}

pub(crate) fn load_as(
    bytes: Vec<u8>,
    kind: ComponentKind,
    grants: Grants,
) -> Result<Component, Error> {
    let bytes = ComponentBytes::new(bytes, kind);
    let options = LoadOptions { grants, ..LoadOptions::default() };
    wait(async move { Component::load_with(&ENGINE, bytes, options).await })
}

fn functions_of(bytes: Vec<u8>) -> Result<Component, Error> {
    load_as(bytes, ComponentKind::Functions, Grants::default())
}

fn functions(wit: &str, module: &str) -> Result<Component, Error> {
    functions_of(functions_component(wit, module))
}

/// Loads a program with the usual settings and without grants.
pub(crate) fn program(bytes: Vec<u8>) -> Result<Component, Error> {
    load_as(bytes, command(|_| {}), Grants::default())
}

/// Limits that a program of the tests does not reach, unless it loops.
fn ample() -> Limits {
    Limits { fuel: 200_000_000, ..Limits::default() }
}

/// Calls a tool that answers, and returns its value.
fn value(component: &Component, tool: &str, arguments: &str, limits: Limits) -> Value {
    let result = call(component, tool, arguments, limits).result;
    result.value().unwrap_or_else(|| panic!("{tool} {arguments}: {result:?}")).to_value()
}

/// Asserts the endings and the values of the calls in a table.
fn assert_calls(component: &Component, table: &str, limits: Limits) {
    for (tool, arguments, end, expected) in
        rows::<(&str, &str, &str, Option<Value>)>("sandbox/load/kinds", table)
    {
        let completion = call(component, tool, arguments, limits);
        let value = completion.result.value().map(Json::to_value);
        assert_eq!(
            (ending(&completion.result).as_str(), value),
            (end, expected),
            "{tool} {arguments}: {completion:?}"
        );
        let has_fuel = completion.usage.fuel.is_some_and(|fuel| fuel > 0);
        assert!(has_fuel || end != "ok", "{tool} {arguments}");
    }
}

#[test]
fn each_exported_function_is_a_tool() {
    let component = functions_of(component("math")).expect("it loads");
    let mut names: Vec<_> = component.definitions().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["twice", "whole_add", "whole_check", "whole_crash", "whole_spin"]);
    let add = component.tool("whole_add").expect("the tool").definition();
    let described = "Calls the function `docs:math/whole@0.1.0#add(a: u32, b: u32) -> u32`.";
    assert_eq!(add.description, described);
    let whole = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    assert_eq!(add.output, Some(whole.clone()));
    let object = json!({
        "type": "object", "properties": { "a": whole, "b": whole }, "required": ["a", "b"], "additionalProperties": false,
    });
    assert_eq!(add.parameters, Some(object));
    assert_calls(&component, "each_exported_function_is_a_tool", tight());
    let failed = call(&component, "whole_check", r#"{"a": 10}"#, tight()).result;
    let expected = HandlerError::new("10").with_data(json!(10));
    assert_eq!(failed, CallResult::Outcome(Outcome::Error(expected)));
}

#[test]
fn runtime_export_is_not_a_tool() {
    for (wit, module, expected) in
        rows::<(&str, &str, Vec<&str>)>("sandbox/load/kinds", "runtime_export_is_not_a_tool")
    {
        let component = functions(wit, module).expect("it loads");
        let names: Vec<_> = component.definitions().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, expected, "{wit}");
    }
}

#[test]
fn functions_of_the_same_name_are_distinct_tools() {
    for (wit, module, tools) in rows::<(&str, &str, BTreeMap<String, u32>)>(
        "sandbox/load/kinds",
        "functions_of_the_same_name_are_distinct_tools",
    ) {
        let component = functions(wit, module).expect("it loads");
        for (tool, expected) in tools {
            assert_eq!(value(&component, &tool, "{}", tight()), json!(expected), "{tool}");
        }
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
    assert_eq!(value(&component, &short, "{}", tight()), 7);
}

#[test]
fn long_signature_is_left_out_of_the_description() {
    let fields: String = (0..300).map(|n| format!("the-number-of-field{n}: u8, ")).collect();
    let wit = format!(
        "package a:b; interface i {{ record r {{ {fields} }} f: func() -> r; }} world plain {{ export i; }}"
    );
    let module = r#"(func (export "a:b/i#f") (result i32) (i32.const 1024))"#;
    let component = functions(&wit, module).expect("it loads");
    let definition = component.tool("i_f").expect("the tool").definition();
    assert_eq!(definition.description, "Calls the function `a:b/i#f`.");
}

#[test]
fn unusable_functions_are_refused_by_name() {
    let exporting = |interface: &str| {
        format!("package a:b@0.1.0; interface i {{ {interface} }} world plain {{ export i; }}")
    };
    for (interface, module, is_definition, needle) in rows::<(&str, &str, bool, &str)>(
        "sandbox/load/kinds",
        "unusable_functions_are_refused_by_name",
    ) {
        let is: Kind = if is_definition { Error::is_definition } else { Error::is_component };
        assert_refused(functions(&exporting(interface), module), is, needle);
    }
    let empty = functions("package a:b; world plain {}", "");
    assert_refused(empty, Error::is_component, "it exports no function");
    let listed: String = (0..257).map(|n| format!("t{n}: func(); ")).collect();
    let all: String = (0..257).map(|n| format!(r#"(func (export "a:b/i@0.1.0#t{n}"))"#)).collect();
    let many = functions(&exporting(&listed), &all);
    assert_refused(many, Error::is_component, "tools of the component: 257");
    // Each type names the type before it twice.
    let doubled: String = (0..12)
        .map(|n| format!("record r{n} {{ a: t{n}, b: t{n} }} type t{} = r{n};", n + 1))
        .collect();
    let wit = exporting(&format!("type t0 = u32; {doubled} f: func(t: t12);"));
    let loaded = functions(&wit, r#"(func (export "a:b/i@0.1.0#f") (param i32))"#);
    let needle = "#f` cannot be a tool: it takes or returns types with more than 1500 parts";
    assert_refused(loaded, Error::is_definition, needle);
}

pub(crate) fn command(change: impl FnOnce(&mut Command)) -> ComponentKind {
    let mut command = Command::new("tool");
    change(&mut command);
    ComponentKind::Command(command)
}

#[test]
fn program_runs_as_a_tool() {
    let module = program(command_module()).expect("it loads");
    assert_calls(&module, "program_runs_as_a_tool", ample());
    // Of a status, WASI 0.2 only passes on if it is 0.
    let failed = call(&module, "tool", r#"{"args": ["fail"]}"#, ample()).result;
    let data = json!({ "status": 1, "stdout": "partly\n", "stderr": "it went wrong" });
    let expected = HandlerError::new("it went wrong (exit status 1)").with_data(data);
    assert_eq!(failed, CallResult::Outcome(Outcome::Error(expected)));
    for (is_ok, end) in [(true, "ok"), (false, "error")] {
        let component = program(command_component(is_ok)).expect("it loads");
        assert_eq!(ending(&call(&component, "tool", "{}", ample()).result), end);
    }
}

#[test]
fn settings_define_argv_stdin_and_output() {
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
        assert_eq!(value(&component, "tool", arguments, ample()), expected, "{arguments}");
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
    let read = value(&component, "tool", r#"{"args": ["note"]}"#, Limits::default());
    assert_eq!(read, json!("milk"));
}

/// The settings of a command are not kept with its code.
#[test]
fn command_settings_share_one_cached_artifact() {
    let scratch = Scratch::new();
    for (argv, is_cached, expected) in [("a", false, "a"), ("b", true, "b")] {
        let kind =
            command(|command| command.argv = Some(vec!["write".to_owned(), argv.to_owned()]));
        let (engine, bytes) = (scratch.engine(), ComponentBytes::new(command_module(), kind));
        let component = wait(async move { Component::load(&engine, bytes).await });
        let component = component.expect("it loads");
        assert_eq!(component.is_cached(), is_cached);
        let description = &component.tools()[0].definition().description;
        assert!(description.contains(&format!("tool write {argv}`")), "{description}");
        assert_eq!(value(&component, "tool", "{}", Limits::default()), json!(expected));
    }
    let engine = scratch.engine();
    let bytes = ComponentBytes::new(component("math"), ComponentKind::Functions);
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
        (component("math"), Some("functions")),
        (command_component(true), Some("command")),
        (command_module(), Some("command")),
        (toolcell_test_guests::bytes("hello"), None),
        (functions_component("package a:b; world plain {}", ""), None),
    ] {
        assert_eq!(Inspection::of(&bytes).expect("a component").proposal(), proposal);
        let Some(proposal) = proposal else { continue };
        let error = load(&ENGINE, bytes).expect_err("it has no tools");
        let hint = format!("`as = \"{proposal}\"`");
        assert!(error.is_component() && error.hint().contains(&hint), "{error:?}");
    }
    let not_a_command = program(component("math"));
    assert_refused(not_a_command, Error::is_component, "does not export `wasi:cli/run@0.2`");
    let not_functions = functions_of(command_component(true));
    assert_refused(not_functions, Error::is_component, "it exports no function");
}

/// Language runtimes bring imports that most functions never use.
#[test]
fn ungranted_function_import_is_denied_at_use() {
    let component = functions_of(component("keys")).expect("it loads");
    // The results: an error, whose variant is the first case.
    for (tool, expected) in [("idle", 7), ("fault", 10)] {
        assert_eq!(value(&component, tool, "{}", Limits::default()), json!(expected), "{tool}");
    }
}

/// A broken module, or one that imports or uses more than the host has, is refused, also if its
/// metadata says otherwise.
#[test]
fn unadaptable_modules_are_refused() {
    let whole = command_module();
    let cut_off = program(whole[..whole.len() - 9].to_vec());
    assert_refused(cut_off, Error::is_component, "malformed");
    for (text, needle) in
        rows::<(&str, &str)>("sandbox/load/kinds", "unadaptable_modules_are_refused")
    {
        assert_refused(program(module(text)), Error::is_component, needle);
    }
    // A custom section that an encoder would read, `component-type`, with unusable content.
    let name = b"component-type:x";
    let custom = [&[0, name.len() as u8 + 4, name.len() as u8][..], name, &[1, 2, 3]].concat();
    let component = program([whole, custom].concat()).expect("it loads");
    let said = value(&component, "tool", r#"{"args": ["write", "x"]}"#, Limits::default());
    assert_eq!(said, json!("x"));
}

#[test]
fn later_wasi_versions_are_refused_by_name() {
    for name in ["wasi:cli/stdin@0.3.0", "wasi:sockets/types@0.3.0", "wasi:http/handler@0.3.1"] {
        let error = load(&ENGINE, importing(name)).expect_err("it is refused");
        let told = format!("WASI 0.3 (`{name}`)");
        assert!(error.is_component() && error.to_string().contains(&told), "{error}");
        assert!(error.hint().contains("for WASI 0.2"), "{}", error.hint());
    }
}
