//! Parses one module: returns its imports, and for TypeScript the JavaScript without types. For a
//! CommonJS module it returns the requires and the exports.
//!
//! It is a guest, so that the program that builds tools does not parse source text itself; it runs
//! in a cell without imports.

#![allow(unsafe_code, reason = "exports of a core module")]

mod commonjs;
mod defined;
mod free;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_syntax::module_record::{ExportImportName, ImportImportName, ModuleRecord};
use oxc_transformer::{TransformOptions, Transformer};
use serde_json::{Value, json};

/// Errors that are reported for one module.
const MAX_FAULTS: usize = 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Allocates a buffer of this many bytes and returns its address.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_buffer(bytes: u32) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        *buffer = vec![0; bytes as usize];
        buffer.as_mut_ptr()
    })
}

/// Reads `{"name", "source", "package"?}` from the buffer; `package` is true for a file of an npm
/// package. Writes the answer into the buffer and returns its length. The answer is one of:
/// - `{"source", "imports", "dynamic", "free", "lines"?}`; `imports` has the imported names by
///   specifier, `dynamic` the calls of `import()`: `{"specifier"?, "line", "column"}`, and `free`
///   the names that the module does not define: `{"name", "line", "column", "is_asked"}`;
/// - `{"source", "dynamic", "free", "commonjs": {"requires", "exports", "passes_on"}}` for a
///   CommonJS module: specifiers, names, and the specifiers of modules whose exports are exported
///   again;
/// - `{"faults": [{"message", "line", "column"}]}`.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_evaluate() -> u32 {
    let given = BUFFER.take();
    let given: Value = serde_json::from_slice(&given).unwrap_or_default();
    let text = |name: &str| given[name].as_str().unwrap_or_default();
    let is_package = given["package"].as_bool().unwrap_or_default();
    let answer = match read(text("name"), text("source"), is_package) {
        Ok(answer) => answer,
        Err(faults) => json!({ "faults": faults }),
    };
    let answer = answer.to_string().into_bytes();
    let bytes = answer.len();
    BUFFER.set(answer);
    bytes as u32
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_answer() -> *const u8 {
    BUFFER.with_borrow(|buffer| buffer.as_ptr())
}

fn read(name: &str, source: &str, is_package: bool) -> Result<Value, Vec<Value>> {
    let extension = Path::new(name).extension().unwrap_or_default();
    let is_typed = extension == "ts" || extension == "mts";
    let kind = if is_typed { SourceType::ts() } else { SourceType::mjs() };
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, kind).parse();
    if extension == "cjs"
        || (is_package && extension == "js" && !parsed.module_record.has_module_syntax)
    {
        let parsed = Parser::new(&allocator, source, SourceType::cjs()).parse();
        checked(source, parsed.diagnostics)?;
        let says = commonjs::read(&parsed.program);
        let (free, dynamic) = (
            free::names(source, &parsed.program, is_package),
            dynamic(source, &parsed.module_record),
        );
        let text = defined::in_text(source, &parsed.program);
        return Ok(json!({ "source": text, "commonjs": says, "dynamic": dynamic, "free": free }));
    }
    checked(source, parsed.diagnostics)?;
    let dynamic = dynamic(source, &parsed.module_record);
    if !is_typed {
        let free = free::names(source, &parsed.program, is_package);
        let source =
            if is_package { defined::in_text(source, &parsed.program) } else { source.to_owned() };
        let imports = imports(&parsed.module_record);
        return Ok(
            json!({ "source": source, "imports": imports, "dynamic": dynamic, "free": free }),
        );
    }
    let mut program = parsed.program;
    let built = SemanticBuilder::new().with_build_nodes(true).with_enum_eval(true).build(&program);
    checked(source, built.diagnostics)?;
    let free = free::of(source, &built.semantic, is_package);
    let scoping = built.semantic.into_scoping();
    let options = TransformOptions::default();
    let done = Transformer::new(&allocator, Path::new(name), &options)
        .build_with_scoping(scoping, &mut program);
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
    // Parsed again for the remaining imports, without those of types only.
    let again =
        Parser::new(&allocator, allocator.alloc_str(&written.code), SourceType::mjs()).parse();
    let imports = imports(&again.module_record);
    Ok(
        json!({ "source": written.code, "imports": imports, "dynamic": dynamic, "lines": lines, "free": free }),
    )
}

/// Returns the calls of `import()` with their places. The specifier is null if it is not a plain
/// literal.
fn dynamic(source: &str, record: &ModuleRecord<'_>) -> Vec<Value> {
    let found = record.dynamic_imports.iter().map(|import| {
        let (line, column) = place(source, import.span.start as usize);
        json!({ "specifier": plain(import.module_request.source_text(source)), "line": line, "column": column })
    });
    found.collect()
}

/// Returns the text of a quoted literal without escapes.
fn plain(literal: &str) -> Option<&str> {
    let quote = literal.chars().next().filter(|first| "\"'`".contains(*first))?;
    let text = literal.strip_prefix(quote)?.strip_suffix(quote)?;
    (!text.contains(['\\', '\n', quote]) && !(quote == '`' && text.contains("${"))).then_some(text)
}

/// Returns the imported names by specifier.
fn imports(record: &ModuleRecord<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = record
        .requested_modules
        .keys()
        .map(|specifier| (specifier.to_string(), BTreeSet::new()))
        .collect();
    for entry in &record.import_entries {
        if let ImportImportName::Name(name) = &entry.import_name {
            names
                .entry(entry.module_request.name.to_string())
                .or_default()
                .insert(name.name.to_string());
        }
    }
    for entry in &record.indirect_export_entries {
        if let (Some(module), ExportImportName::Name(name)) =
            (&entry.module_request, &entry.import_name)
        {
            names.entry(module.name.to_string()).or_default().insert(name.name.to_string());
        }
    }
    names
}

/// Returns an error with the diagnostics as JSON, if there are any. Lines and columns count from 1.
fn checked(source: &str, found: impl IntoIterator<Item = OxcDiagnostic>) -> Result<(), Vec<Value>> {
    let faults: Vec<_> =
        found.into_iter().take(MAX_FAULTS).map(|fault| fault_json(source, &fault)).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn fault_json(source: &str, fault: &OxcDiagnostic) -> Value {
    let at = fault.labels.first().map_or(0, |label| label.offset() as usize);
    let (line, column) = place(source, at);
    json!({ "message": fault.message, "line": line, "column": column })
}

/// Returns the line and the column of a byte offset, from 1.
fn place(source: &str, at: usize) -> (usize, usize) {
    let before = source.get(..at).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    (line, before.chars().rev().take_while(|char| *char != '\n').count() + 1)
}
