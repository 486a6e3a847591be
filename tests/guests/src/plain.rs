//! Components outside of the contract: plain functions, and command-line programs.

use std::fmt::Write as _;

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::assemble;

/// An allocator that never frees, for the values that the host writes.
const ALLOCATOR: &str = include_str!("wat/allocator.wat");

/// Returns a component with the exports of the world `plain` of a WIT text, implemented by the text
/// of a module. The module gets a memory and an allocator.
pub fn functions_component(wit: &str, module: &str) -> Vec<u8> {
    // The module's text comes first: it can begin with imports.
    let text = format!("(module {module} {ALLOCATOR})");
    let mut module = self::module(&text);
    let mut resolve = Resolve::default();
    let package =
        resolve.push_str("plain.wit", wit).unwrap_or_else(|error| panic!("{error:#}\n{wit}"));
    let world = resolve.select_world(&[package], Some("plain")).expect("the world");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata");
    assemble::wrap(&module)
}

/// Number of arguments of the function of [`echoing`] beside its value: so many that all are passed
/// by a pointer.
pub const ECHO_PADDING: usize = 16;

/// Returns a component with a function `echo` that returns its argument `value`: a record of a
/// `value` of this type and a number `pad`. Its tool is `echo_echo`.
///
/// Neither the arguments nor the result fit into registers. So both are at a pointer, and the
/// function returns the pointer that it gets.
pub fn echoing(declarations: &str, ty: &str) -> Vec<u8> {
    let mut padding = String::new();
    for number in 0..ECHO_PADDING {
        let _ = write!(padding, ", a{number}: u8");
    }
    let wit = format!(
        "package test:plain@0.1.0; interface echo {{ {declarations}
         record wrapped {{ value: {ty}, pad: u64 }}
         echo: func(value: wrapped{padding}) -> wrapped; }}
         world plain {{ export echo; }}"
    );
    let module =
        r#"(func (export "test:plain/echo@0.1.0#echo") (param i32) (result i32) (local.get 0))"#;
    functions_component(&wit, module)
}

/// Returns a component that exports `wasi:cli/run`, which returns `ok` or an error.
pub fn command_component(is_ok: bool) -> Vec<u8> {
    let wit = "package wasi:cli@0.2.6; interface run { run: func() -> result; } world plain { export run; }";
    let module = format!(
        r#"(func (export "wasi:cli/run@0.2.6#run") (result i32) (i32.const {}))"#,
        u8::from(!is_ok)
    );
    functions_component(wit, &module)
}

/// Assembles a core module from its text.
pub fn module(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns a program for WASI preview 1. The first letter of its first argument selects what it
/// does: `c` copies its standard input, `n` copies the file `note.txt` of its first directory, `w`
/// writes its second argument, `f` fails with status 3, `l` writes a line and loops, `b` writes 4
/// MiB, `t` writes a line and traps, `u` writes two letters and a byte that is not UTF-8, `p` fails
/// and names a path.
pub fn command_module() -> Vec<u8> {
    module(include_str!("wat/program.wat"))
}
