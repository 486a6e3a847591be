//! Converts programs for WASI preview 1 to components.
//!
//! WASI preview 1 is the older interface of WebAssembly programs: they are core modules with an
//! export `_start`, not components. Inspection and load pass all bytes through [`component`]. It
//! returns for such a program the component that wasmtime's own adapter makes of it, and all other
//! bytes unchanged. A program that imports the predecessor of preview 1, or preview 1 and something
//! that it does not have, is refused with a hint, such as the build to use.
//! Invariants: a module passes the bounds of the scan before anything else is done with it.
//! Metadata of a module that would direct the encoder is removed. A panic of the encoder is a
//! refusal.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use toolcell_contract::{controls::enforced, error::Error, panic_guard::dispose};
use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW1;
use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER as ADAPTER;
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use super::config::proposals;
use super::scan::{self, METADATA};

/// The module of imports before preview 1 had its name.
const UNSTABLE: &str = "wasi_unstable";
/// The first bytes of a core module.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";
/// Imports that a refusal names.
const MAX_NAMED: usize = 3;
/// The export that makes a module a command.
const START: &str = "_start";

/// Converts a command for WASI preview 1 to a component; returns other bytes unchanged.
///
/// # Errors
/// [`Error::is_component`] for a command that is too large or cannot be adapted.
pub(super) fn component(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    if !bytes.starts_with(MODULE) || !is_command(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    scan::bounds(bytes)?;
    has_known_imports(bytes).map_err(|error| proposals_error(bytes).unwrap_or(error))?;
    let module = without_metadata(bytes)?;
    let adapted = catch_unwind(AssertUnwindSafe(|| {
        ComponentEncoder::default()
            .validate(true)
            .module(&module)?
            .adapter(PREVIEW1, ADAPTER)?
            .encode()
    }));
    match adapted {
        Ok(Ok(component)) => Ok(Cow::Owned(component)),
        Ok(Err(error)) => Err(proposals_error(bytes).unwrap_or_else(|| {
            Error::malformed(format!("the WASI preview 1 module cannot be adapted: {error:#}"))
        })),
        Err(panic) => {
            dispose(panic);
            Err(Error::malformed("the WASI preview 1 module cannot be adapted"))
        }
    }
}

/// Returns the error for a module that needs proposals which are off.
fn proposals_error(bytes: &[u8]) -> Option<Error> {
    proposals::missing(bytes).map(Error::proposals)
}

/// Returns true if a module can be started, and imports WASI preview 1, its predecessor, or
/// nothing, as far as its bytes can be read.
fn is_command(bytes: &[u8]) -> bool {
    let (mut is_wasi, mut is_other, mut starts) = (false, false, false);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload {
            Ok(Payload::ImportSection(section)) => {
                for import in section.into_imports().flatten() {
                    let has_known_name = [PREVIEW1, UNSTABLE].contains(&import.module);
                    is_wasi |= has_known_name;
                    is_other |= !has_known_name;
                }
            }
            Ok(Payload::ExportSection(section)) => {
                starts |= section.into_iter().flatten().any(|export| export.name == START);
            }
            Ok(Payload::CodeSectionStart { .. }) | Err(_) => break,
            Ok(_) => {}
        }
    }
    starts && (is_wasi || !is_other)
}

/// Returns an error if the module imports something that WASI preview 1 does not have: it was made
/// for another host.
fn has_known_imports(bytes: &[u8]) -> Result<(), Error> {
    let mut known = BTreeSet::new();
    for payload in Parser::new(0).parse_all(ADAPTER) {
        if let Ok(Payload::ExportSection(section)) = payload {
            known.extend(section.into_iter().flatten().map(|export| export.name));
        }
    }
    let mut unknown = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        if let Payload::ImportSection(section) = payload.map_err(scan::malformed)? {
            let imports = section.into_imports().flatten();
            unknown.extend(
                imports.filter(|import| import.module != PREVIEW1 || !known.contains(import.name)),
            );
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let named = unknown.iter().take(MAX_NAMED);
    let named: Vec<_> = named
        .map(|import| format!("`{}`", scan::name(&format!("{}::{}", import.module, import.name))))
        .collect();
    let more = unknown.len() - named.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let named = named.join(", ");
    let found = format!("a module that imports {named}{more}, which WASI preview 1 does not have");
    let hint = if unknown.iter().any(|import| import.module == UNSTABLE) {
        "build it again for `wasm32-wasip1` or `wasm32-wasip2`: this build is for WASI as it was before preview 1"
    } else {
        "use a build for WASI: this one is made for a host of its own, a browser for example"
    };
    Err(Error::not_a_component(found, hint))
}

/// Returns the module without the custom sections that tools write for an encoder.
fn without_metadata(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut module = MODULE.to_vec();
    let mut copied = MODULE.len();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| Error::malformed(error.to_string()))?;
        let is_metadata = matches!(&payload, Payload::CustomSection(section) if section.name().starts_with(METADATA))
            && enforced!(ModuleMetadata);
        let Some((_, range)) = payload.as_section() else { continue };
        // From the end of the section before, since the id and the size are part of the section.
        let section = bytes.get(copied..range.end).unwrap_or_default();
        if !is_metadata {
            module.extend_from_slice(section);
        }
        copied = range.end;
    }
    Ok(module)
}
