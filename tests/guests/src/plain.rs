//! Components outside of the contract: plain functions, and command-line programs.

use std::fmt::Write as _;

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::assemble;

/// An allocator that never frees, for the values that the host writes.
const ALLOCATOR: &str = r#"
  (memory (export "memory") 16)
  (global $heap (mut i32) (i32.const 65536))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (local.get $at))"#;

/// Returns a component with the exports of the world `plain` of a WIT text, implemented by the text
/// of a module. The module gets a memory and an allocator.
///
/// # Panics
/// If a text is not valid.
#[must_use]
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
///
/// # Panics
/// If the type is not valid WIT.
#[must_use]
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
///
/// # Panics
/// Never: its text is valid.
#[must_use]
pub fn command_component(is_ok: bool) -> Vec<u8> {
    let wit = "package wasi:cli@0.2.6; interface run { run: func() -> result; } world plain { export run; }";
    let module = format!(
        r#"(func (export "wasi:cli/run@0.2.6#run") (result i32) (i32.const {}))"#,
        u8::from(!is_ok)
    );
    functions_component(wit, &module)
}

/// Assembles a core module from its text.
///
/// # Panics
/// If the text is not valid.
#[must_use]
pub fn module(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns a program for WASI preview 1. The first letter of its first argument selects what it
/// does: `c` copies its standard input, `n` copies the file `note.txt` of its first directory, `w`
/// writes its second argument, `f` fails with status 3, `l` writes a line and loops, `b` writes 4
/// MiB, `t` writes a line and traps, `u` writes two letters and a byte that is not UTF-8, `p` fails
/// and names a path.
///
/// # Panics
/// Never: its text is valid.
#[must_use]
pub fn command_module() -> Vec<u8> {
    module(
        r#"(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 4)
  (data (i32.const 2048) "partly\n")
  (data (i32.const 2064) "it went wrong\n")
  (data (i32.const 2096) "note.txt")
  (data (i32.const 2112) "ok\ff")
  (data (i32.const 2128) "open /docs/in.txt: No such file or directory\n")
  (func $say (param $fd i32) (param $at i32) (param $bytes i32)
    (i32.store (i32.const 512) (local.get $at))
    (i32.store (i32.const 516) (local.get $bytes))
    (drop (call $write (local.get $fd) (i32.const 512) (i32.const 1) (i32.const 520))))
  (func $copy (param $fd i32) (local $bytes i32)
    (loop $more
      (i32.store (i32.const 512) (i32.const 65536))
      (i32.store (i32.const 516) (i32.const 32768))
      (if (call $read (local.get $fd) (i32.const 512) (i32.const 1) (i32.const 520)) (then (call $exit (i32.const 9))))
      (local.set $bytes (i32.load (i32.const 520)))
      (if (local.get $bytes) (then
        (call $say (i32.const 1) (i32.const 65536) (local.get $bytes))
        (br $more)))))
  (func $note
    (if (call $open (i32.const 3) (i32.const 0) (i32.const 2096) (i32.const 8) (i32.const 0)
        (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 524))
      (then (call $say (i32.const 2) (i32.const 2096) (i32.const 8)) (call $exit (i32.const 8))))
    (call $copy (i32.load (i32.const 524))))
  (func $length (param $at i32) (result i32) (local $bytes i32)
    (loop $more
      (if (i32.load8_u (i32.add (local.get $at) (local.get $bytes))) (then
        (local.set $bytes (i32.add (local.get $bytes) (i32.const 1)))
        (br $more))))
    (local.get $bytes))
  (func (export "_start") (local $what i32) (local $rounds i32)
    (drop (call $sizes (i32.const 0) (i32.const 4)))
    (drop (call $args (i32.const 16) (i32.const 1024)))
    (if (i32.ge_u (i32.load (i32.const 0)) (i32.const 2)) (then
      (local.set $what (i32.load8_u (i32.load (i32.const 20))))))
    (if (i32.eq (local.get $what) (i32.const 99)) (then (call $copy (i32.const 0))))
    (if (i32.eq (local.get $what) (i32.const 110)) (then (call $note)))
    (if (i32.eq (local.get $what) (i32.const 119)) (then
      (call $say (i32.const 1) (i32.load (i32.const 24)) (call $length (i32.load (i32.const 24))))))
    (if (i32.eq (local.get $what) (i32.const 102)) (then
      (call $say (i32.const 1) (i32.const 2048) (i32.const 7))
      (call $say (i32.const 2) (i32.const 2064) (i32.const 14))
      (call $exit (i32.const 3))))
    (if (i32.eq (local.get $what) (i32.const 108)) (then
      (call $say (i32.const 1) (i32.const 2048) (i32.const 7))
      (loop $ever (br $ever))))
    (if (i32.eq (local.get $what) (i32.const 112)) (then
      (call $say (i32.const 2) (i32.const 2128) (i32.const 45))
      (call $exit (i32.const 1))))
    (if (i32.eq (local.get $what) (i32.const 116)) (then
      (call $say (i32.const 1) (i32.const 2048) (i32.const 7))
      unreachable))
    (if (i32.eq (local.get $what) (i32.const 117)) (then (call $say (i32.const 1) (i32.const 2112) (i32.const 3))))
    (if (i32.eq (local.get $what) (i32.const 98)) (then
      (loop $more
        (call $say (i32.const 1) (i32.const 65536) (i32.const 32768))
        (local.set $rounds (i32.add (local.get $rounds) (i32.const 1)))
        (br_if $more (i32.lt_u (local.get $rounds) (i32.const 128))))))))"#,
    )
}
