//! Scans untrusted bytes before the compiler reads them.
//!
//! Each load and inspection calls [`outline`] with the bytes of a component. It returns the names
//! of the imports and exports, or an error: not a component, malformed, or over a bound. For
//! formats that are passed by mistake, such as a core module, text or an archive, the error says
//! what to do. [`bounds`] does the same without the check of the format, for modules that will be
//! converted.
//! The scan is linear in the bytes, allocates little and runs nothing. It bounds the properties
//! that cost a compiler more than linear time, or the host memory for each instance: functions and
//! their size, locals, types, instances, nesting, and items of tables.

use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::error::Error;
use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW1;
use wasmparser::{ComponentTypeRef, ElementItems, Parser, Payload, TypeBounds};

use super::config;
use crate::engine::Engine;

/// Functions with a body, over all modules.
const MAX_FUNCTIONS: u64 = 200_000;
/// Bytes of one function body: compile time grows with its square.
const MAX_BODY: u64 = 512 << 10;
/// Local variables of one function: compile time and memory grow with their product with the
/// branches.
const MAX_LOCALS: u64 = 10_000;
/// Globals, exports and items of element segments, over all modules: each costs a few bytes of the
/// host per instance, outside of every memory. Language runtimes have some tens of thousands.
const MAX_ITEMS: u64 = 200_000;
/// [`MAX_ITEMS`] times the core instances that the component can have: some 50 MiB of the host in
/// the worst case.
const MAX_INSTANCE_ITEMS: u64 = 3_000_000;
/// Types, over all modules and components. Language runtimes and tools alike have some two hundred.
const MAX_TYPES: u64 = 20_000;
/// Bytes of the types of all components. The content of a type is not counted: reading it takes a
/// stack as deep as its nesting, so the compiler's process does that.
const MAX_TYPE_BYTES: u64 = 1 << 20;
/// Instances of modules and components that the component makes, each multiplied by the instances
/// of its container. The compiler processes them one by one.
const MAX_INSTANCES: u64 = 10_000;
/// Modules and components, nested and side by side.
const MAX_PARTS: u64 = 256;
/// Levels of nested components.
const MAX_NESTING: u64 = 8;
/// Bytes of an import's or export's name that are kept for messages.
const NAME_BYTES: usize = 120;
/// Imports of a core module that are checked to recognise its host.
const MODULE_IMPORTS: usize = 1000;
/// Prefix of custom sections that would name another world to the component encoder.
pub(super) const METADATA: &str = "component-type";
/// The custom section that identifies modules of Go.
const GO: &str = "go:buildid";

/// The names of a component's imports and exports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Outline {
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
}

/// Reads a component.
///
/// # Errors
/// [`Error::is_component`] if the bytes are not a component, or if it is over a bound.
pub(super) fn outline(bytes: &[u8]) -> Result<Outline, Error> {
    if enforced!(Format) && bytes.len() as u64 <= Engine::MAX_COMPONENT {
        check_format(bytes)?;
    }
    bounds(bytes)
}

/// Reads a component or a module.
///
/// # Errors
/// [`Error::is_component`] if it is malformed or over a bound.
pub(super) fn bounds(bytes: &[u8]) -> Result<Outline, Error> {
    let size = bytes.len() as u64;
    bounded("bytes of the component", size, bound!(ComponentBytes, Engine::MAX_COMPONENT))?;
    let mut outline = Outline::default();
    let (mut functions, mut parts, mut items) = (0_u64, 0_u64, 0_u64);
    let (mut types, mut type_bytes) = (0_u64, 0_u64);
    // `open`: for each module or component whose end was not reached yet, the instances that it
    // makes, itself included. `heaviest`: the most that any finished one makes, which an instance
    // may be of.
    let (mut open, mut heaviest) = (Vec::new(), 1_u64);
    for payload in Parser::new(0).parse_all(bytes) {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "all other sections are the compiler's to judge"
        )]
        match payload.map_err(malformed)? {
            Payload::Version { .. } => {
                parts += 1;
                open.push(1_u64);
                bounded(
                    "modules and components inside of the component",
                    parts,
                    bound!(Parts, MAX_PARTS),
                )?;
                let levels = open.len() as u64;
                bounded("nesting of components", levels, bound!(Nesting, MAX_NESTING))?;
            }
            Payload::End(_) => heaviest = heaviest.max(open.pop().unwrap_or_default()),
            Payload::CodeSectionStart { count, .. } => {
                functions += u64::from(count);
                bounded("functions of the component", functions, bound!(Functions, MAX_FUNCTIONS))?;
            }
            Payload::GlobalSection(section) => items += u64::from(section.count()),
            Payload::ExportSection(section) => items += u64::from(section.count()),
            Payload::ElementSection(section) => {
                for element in section {
                    items += u64::from(match element.map_err(malformed)?.items {
                        ElementItems::Functions(functions) => functions.count(),
                        ElementItems::Expressions(_, expressions) => expressions.count(),
                    });
                }
            }
            Payload::InstanceSection(section) => {
                add_instances(&mut open, u64::from(section.count()))?
            }
            Payload::ComponentInstanceSection(section) => {
                add_instances(&mut open, u64::from(section.count()).saturating_mul(heaviest))?;
            }
            Payload::TypeSection(section) => types += u64::from(section.count()),
            Payload::CoreTypeSection(section) => {
                types += u64::from(section.count());
                type_bytes += section.range().len() as u64;
            }
            Payload::ComponentTypeSection(section) => {
                types += u64::from(section.count());
                type_bytes += section.range().len() as u64;
            }
            Payload::CodeSectionEntry(body) => {
                let size = body.range().len() as u64;
                bounded("bytes of one function", size, bound!(FunctionBytes, MAX_BODY))?;
                let mut locals = 0;
                for group in body.get_locals_reader().map_err(malformed)? {
                    locals += u64::from(group.map_err(malformed)?.0);
                }
                bounded("local variables of one function", locals, bound!(Locals, MAX_LOCALS))?;
            }
            Payload::ComponentImportSection(section) if open.len() == 1 => {
                for import in section {
                    let import = import.map_err(malformed)?;
                    // The name of a known type, as in a world that defines types of its own, gives
                    // no access.
                    if !matches!(import.ty, ComponentTypeRef::Type(TypeBounds::Eq(_))) {
                        outline.imports.push(name(import.name.name));
                    }
                }
            }
            Payload::ComponentExportSection(section) if open.len() == 1 => {
                for export in section {
                    outline.exports.push(name(export.map_err(malformed)?.name.name));
                }
            }
            _ => {}
        }
    }
    bounded("globals, exports and table items of the component", items, bound!(Items, MAX_ITEMS))?;
    bounded("types of the component", types, bound!(Types, MAX_TYPES))?;
    bounded("bytes of the component's types", type_bytes, bound!(Types, MAX_TYPE_BYTES))?;
    // The most core instances that a cell has room for.
    let instances = heaviest.min(u64::from(config::CORE_INSTANCES));
    bounded(
        "globals, exports and table items of the component, times its instances",
        items.saturating_mul(instances),
        bound!(ItemsOfInstances, MAX_INSTANCE_ITEMS),
    )?;
    Ok(outline)
}

/// Recognises formats that people pass by mistake.
fn check_format(bytes: &[u8]) -> Result<(), Error> {
    const BUILD: &str = "build a component: `toolcell build`, or `cargo build --release --target wasm32-wasip2` for a crate";
    let text = bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace()) == Some(b'(');
    let (found, hint) = match bytes {
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => return Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => module(bytes),
        [0, b'a', b's', b'm', _, _, _, _, ..] => ("WebAssembly of an unknown version", BUILD),
        [0x7f, b'E', b'L', b'F', ..] => (
            "native or precompiled code",
            "give the component itself: the host compiles it and loads no compiled code",
        ),
        [b'P', b'K', 3, 4, ..] => ("a zip archive", "unpack it first"),
        [0x1f, 0x8b, ..] => ("gzip-compressed", "decompress it first"),
        _ if bytes.get(257..262) == Some(b"ustar") => ("a tar archive", "unpack it first"),
        [] => ("an empty file", BUILD),
        _ if text => ("WebAssembly text", "assemble it first: `wasm-tools parse`"),
        _ => ("an unknown format", BUILD),
    };
    Err(Error::not_a_component(found, hint))
}

/// Names the host that a core module was built for, and the build that makes a component. Checks
/// for metadata for the component encoder first: only with it `wasm-tools component new` makes a
/// component that has tools.
fn module(bytes: &[u8]) -> (&'static str, &'static str) {
    let (mut imports, mut has_metadata, mut is_go) = (Vec::new(), false, false);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload {
            Ok(Payload::ImportSection(section)) => {
                let modules = section.into_imports().flatten().map(|import| import.module);
                imports.extend(modules.take(MODULE_IMPORTS));
            }
            Ok(Payload::CustomSection(section)) => {
                has_metadata |= section.name().starts_with(METADATA);
                is_go |= section.name() == GO;
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    let imports_of = |hosts: &[&str]| imports.iter().any(|module| hosts.contains(module));
    let is_bindgen = imports
        .iter()
        .any(|module| module.starts_with("__wbindgen_") || module.ends_with("_bg.js"));
    if has_metadata {
        (
            "a core WebAssembly module",
            "wrap it: `wasm-tools component new`, or build for `wasm32-wasip2`",
        )
    } else if imports_of(&["gojs", "go"]) {
        (
            "a core WebAssembly module that Go built for a JavaScript host",
            "build it for WASI, `GOOS=wasip1 GOARCH=wasm go build -o tool.wasm`, and use it with `as = \"command\"`",
        )
    } else if is_bindgen || imports_of(&["wbg"]) {
        (
            "a core WebAssembly module that wasm-bindgen made for a JavaScript host",
            "build the crate for `wasm32-wasip2`, without wasm-bindgen",
        )
    } else if is_go && imports_of(&[PREVIEW1]) {
        (
            "a core WebAssembly module that Go built as a library: its `//go:wasmexport` functions cannot be tools",
            "build it as a program, without `-buildmode=c-shared`, and use it with `as = \"command\"`",
        )
    } else if imports_of(&[PREVIEW1]) {
        (
            "a core WebAssembly module that is a library for WASI preview 1",
            "build it for `wasm32-wasip2`, or as a program with `_start`, which `as = \"command\"` makes a tool",
        )
    } else {
        let found = if imports.is_empty() {
            "a core WebAssembly module"
        } else {
            "a core WebAssembly module that is made for a host of its own, for example a browser"
        };
        (
            found,
            "build a component from its source: `toolcell build`, or a build for `wasm32-wasip2`",
        )
    }
}

/// Adds instances to the innermost open module or component.
fn add_instances(open: &mut [u64], instances: u64) -> Result<(), Error> {
    let Some(made) = open.last_mut() else { return Ok(()) };
    *made = made.saturating_add(instances);
    bounded("instances of the component", *made, bound!(MultipliedInstances, MAX_INSTANCES))
}

fn bounded(what: &'static str, got: u64, limit: u64) -> Result<(), Error> {
    if got > limit { Err(Error::too_large(what, got, limit)) } else { Ok(()) }
}

pub(super) fn malformed(error: wasmparser::BinaryReaderError) -> Error {
    Error::malformed(error.to_string()).with_source(error)
}

/// Returns a name for messages: shortened, without control characters.
pub(super) fn name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(NAME_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn file_formats_are_recognised() {
        for (text, found) in rows::<(&str, &str)>("engine/compile/scan", "formats") {
            let bytes: Vec<_> = text.chars().map(|byte| u8::try_from(byte).unwrap()).collect();
            let error = outline(&bytes).unwrap_err();
            assert!(error.is_component() && error.to_string().ends_with(found), "{error}");
            assert!(!error.hint().is_empty());
        }
    }

    #[test]
    fn core_module_error_names_its_host_and_remedy() {
        let module = |text: &str| toolcell_test_guests::module(&format!("(module {text})"));
        let import = |from: &str| module(&format!(r#"(import "{from}" "f" (func))"#));
        let table = rows::<(Option<&str>, &str, &str, &str)>("engine/compile/scan", "core_modules");
        for (imported, section, found, hint) in table {
            let mut bytes = imported.map_or_else(|| module(""), import);
            bytes.extend(section.bytes());
            let error = outline(&bytes).unwrap_err();
            assert!(error.to_string().contains(found), "{imported:?}: {error}");
            assert!(error.hint().contains(hint), "{imported:?}: {}", error.hint());
        }
    }

    #[test]
    fn truncated_component_is_malformed() {
        assert!(outline(b"\0asm\x0d\0\x01\0\x01\xff").unwrap_err().is_component());
    }
}
