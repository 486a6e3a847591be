//! Reads one module: its imports, and for TypeScript the JavaScript that is left without types.
//!
//! It is a guest so that the program that builds tools runs no parser of its own on source text: it answers in a cell
//! without imports.

#![allow(unsafe_code, reason = "exports of a core module")]

use std::cell::RefCell;
use std::path::Path;

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};
use serde_json::{Value, json};

/// Faults that are reported of one module.
const MAX_FAULTS: usize = 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for this many bytes, and tells where.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_buffer(bytes: u32) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        *buffer = vec![0; bytes as usize];
        buffer.as_mut_ptr()
    })
}

/// Reads `{"name", "source"}` from the buffer. The answer is in the buffer then, and its length is returned:
/// `{"source", "imports", "lines"?}`, or `{"faults": [{"message", "line", "column"}]}`.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_evaluate() -> u32 {
    let given = BUFFER.take();
    let given: Value = serde_json::from_slice(&given).unwrap_or_default();
    let text = |name: &str| given[name].as_str().unwrap_or_default();
    let answer = match read(text("name"), text("source")) {
        Ok(answer) => answer,
        Err(faults) => json!({ "faults": faults }),
    };
    let answer = answer.to_string().into_bytes();
    let bytes = answer.len();
    BUFFER.set(answer);
    bytes as u32
}

/// Where the answer is.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_answer() -> *const u8 {
    BUFFER.with_borrow(|buffer| buffer.as_ptr())
}

fn read(name: &str, source: &str) -> Result<Value, Vec<Value>> {
    let is_typed = Path::new(name).extension().is_some_and(|extension| extension == "ts" || extension == "mts");
    let kind = if is_typed { SourceType::ts() } else { SourceType::mjs() };
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, kind).parse();
    checked(source, parsed.diagnostics)?;
    if !is_typed {
        return Ok(json!({ "source": source, "imports": imports(&parsed.module_record) }));
    }
    let mut program = parsed.program;
    let built = SemanticBuilder::new().with_enum_eval(true).build(&program);
    checked(source, built.diagnostics)?;
    let scoping = built.semantic.into_scoping();
    let options = TransformOptions::default();
    let done = Transformer::new(&allocator, Path::new(name), &options).build_with_scoping(scoping, &mut program);
    checked(source, done.diagnostics)?;
    let options = CodegenOptions {
        comments: CommentOptions::disabled(),
        source_map_path: Some(name.into()),
        ..CodegenOptions::default()
    };
    let written = Codegen::new().with_options(options).build(&program);
    let mut lines = vec![0_u32; written.code.lines().count() + 1];
    for token in written.map.iter().flat_map(|map| map.get_tokens()) {
        if let Some(line) = lines.get_mut(token.get_dst_line() as usize)
            && *line == 0
        {
            *line = token.get_src_line() + 1;
        }
    }
    // What is left of the imports, without those that were types only.
    let again = Parser::new(&allocator, allocator.alloc_str(&written.code), SourceType::mjs()).parse();
    Ok(json!({ "source": written.code, "imports": imports(&again.module_record), "lines": lines }))
}

fn imports(record: &oxc_syntax::module_record::ModuleRecord<'_>) -> Vec<String> {
    let mut names: Vec<_> = record.requested_modules.keys().map(|name| name.to_string()).collect();
    names.sort();
    names
}

/// The faults as JSON, lines and columns from 1.
fn checked(source: &str, found: impl IntoIterator<Item = OxcDiagnostic>) -> Result<(), Vec<Value>> {
    let faults: Vec<_> = found.into_iter().take(MAX_FAULTS).map(|fault| fault_json(source, &fault)).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn fault_json(source: &str, fault: &OxcDiagnostic) -> Value {
    let at = fault.labels.first().map_or(0, |label| label.offset() as usize);
    let before = source.get(..at).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|char| *char != '\n').count() + 1;
    json!({ "message": fault.message, "line": line, "column": column })
}
