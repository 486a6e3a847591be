//! Keeps the custom sections of a core module that a component needs, and drops the others.
//!
//! Custom sections hold data that is not executed. [`only_needed`] takes the module that a C
//! compiler made and returns it with two kinds of them: the function names, and the debug
//! information of the author's files. Functions of the SDK are renamed to the SDK's name, because
//! the host leaves those out of a backtrace. [`has_function`] says if a function is in the module,
//! by which the build notices a source without a tool. [`without_producers`] removes the section
//! that names the language of the WASI adapter.

use std::path::{Path, PathBuf};

use wasm_encoder::{CustomSection, Module, NameMap, NameSection, RawSection};
use wasmparser::{KnownCustom, Parser, Payload};

use super::lines;
use crate::{Error, Result};

/// The name by which the host recognizes functions of the SDK.
const SDK: &str = "toolcell_guest";
/// Prefixes of the names of functions of the SDK, of its bindings and of the C library's internals.
const PREFIXES: [&str; 5] =
    ["tc_", "exports_toolcell_tool_", "__wasm_export_", "toolcell_tool_", "__wasm_call_"];
/// Static functions of the SDK that the compiler does not inline.
const STATIC: [&str; 3] = ["raise_in_parts", "out_of_memory", "parsed"];

/// Returns the module with the custom sections that are needed: function names, and the debug
/// information of the author's `files`, paths below `folder`.
pub(super) fn only_needed(module: &[u8], folder: &Path, files: &[PathBuf]) -> Result<Vec<u8>> {
    let mut kept = sections(module, |_| false)?;
    let mut named = NameMap::new();
    for (index, name) in functions(module)? {
        named.append(index, display_name(name));
    }
    let mut names = NameSection::new();
    names.functions(&named);
    kept.section(&names);
    for (name, data) in lines::of_authors(module, folder, files)? {
        kept.section(&CustomSection { name: name.into(), data: data.into() });
    }
    Ok(kept.finish())
}

/// Returns the module without its `producers` section, which names the language of the adapter
/// instead of the tool's.
pub(super) fn without_producers(module: &[u8]) -> Result<Vec<u8>> {
    Ok(sections(module, |known| !matches!(known, KnownCustom::Producers(_)))?.finish())
}

/// Returns the sections of a module, of its custom sections those that `is_kept` accepts.
fn sections(module: &[u8], is_kept: fn(KnownCustom<'_>) -> bool) -> Result<Module> {
    let mut kept = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.map_err(Error::internal)?;
        let is_dropped =
            matches!(&payload, Payload::CustomSection(section) if !is_kept(section.as_known()));
        if let Some((id, range)) = payload.as_section().filter(|_| !is_dropped) {
            kept.section(&RawSection { id, data: module.get(range).unwrap_or_default() });
        }
    }
    Ok(kept)
}

/// Returns true if the module has a function of this name.
pub(super) fn has_function(module: &[u8], wanted: &str) -> Result<bool> {
    Ok(functions(module)?.iter().any(|(_, name)| *name == wanted))
}

/// Returns the functions that have a name, by index.
fn functions(module: &[u8]) -> Result<Vec<(u32, &str)>> {
    let mut functions = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::CustomSection(section) = payload.map_err(Error::internal)?
            && let KnownCustom::Name(names) = section.as_known()
        {
            functions.extend(crate::lines::functions(names));
        }
    }
    Ok(functions)
}

fn display_name(name: &str) -> &str {
    let is_own = PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || STATIC.contains(&name);
    if is_own { SDK } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_is_found_by_its_whole_name() {
        let (mut functions, mut names, mut module) =
            (NameMap::new(), NameSection::new(), Module::new());
        functions.append(0, "tc_register");
        names.functions(&functions);
        module.section(&names);
        let module = module.finish();
        assert!(has_function(&module, "tc_register").expect("a module"));
        for other in ["tc_regist", "tc_register_greet", ""] {
            assert!(!has_function(&module, other).expect("a module"), "{other}");
        }
        assert!(!has_function(&Module::new().finish(), "tc_register").expect("a module"));
    }
}
