//! Builds a C project: compiles the author's files with the SDK, and wraps the result as a
//! component.
//!
//! [`build`] takes a folder and the path of its main file, such as `tool.c`. It writes the headers
//! and sources of the SDK into a temporary folder, runs the compiler on them and on the author's C
//! files, and returns the bytes of the component with the compiler's warnings. The compiler makes a
//! core module (plain WebAssembly); this module adds the description of the interface and the
//! adapter for WASI, the system interface of WebAssembly. A message of a failed compiler becomes an
//! error with the places in the author's files. A source without any `TOOLCELL_TOOL` is an error.
//!
//! Not here: the choice of the compiler and its arguments, in [`compiler`].

mod compiler;
mod lines;
mod names;

use std::fs;
use std::path::{Path, PathBuf};

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW1,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use self::compiler::Compiler;
pub(crate) use self::compiler::PACKAGE;
use super::scratch::Scratch;
use crate::{Error, Fault, Result};

const WORLD: &str = "toolbox-with-grants";
const WIT: [(&str, &str); 2] = [
    ("io.wit", include_str!("../../wit/deps/io.wit")),
    ("toolcell.wit", include_str!("../../wit/toolcell.wit")),
];
/// The header that authors include.
pub(crate) const HEADER: &str = include_str!("../../c/toolcell.h");
/// The files that `#include` finds: the headers, and the parts of `toolcell.c`.
const INCLUDED: [(&str, &str); 8] = [
    ("toolcell.h", HEADER),
    ("generated/toolbox_with_grants.h", include_str!("../../c/generated/toolbox_with_grants.h")),
    ("memory.inc", include_str!("../../c/memory.inc")),
    ("values.inc", include_str!("../../c/values.inc")),
    ("json.inc", include_str!("../../c/json.inc")),
    ("endings.inc", include_str!("../../c/endings.inc")),
    ("exports.inc", include_str!("../../c/exports.inc")),
    ("host.inc", include_str!("../../c/host.inc")),
];
/// The sources that are compiled besides the author's files.
const SOURCES: [(&str, &str); 2] = [
    ("toolcell.c", include_str!("../../c/toolcell.c")),
    ("generated/toolbox_with_grants.c", include_str!("../../c/generated/toolbox_with_grants.c")),
];
/// The function of the SDK that each tool calls. The linker drops it if no tool calls it.
const REGISTERS: &str = "tc_register";
/// Turns off warnings in generated code, which an author cannot act on.
const GENERATED: &str = "#pragma clang diagnostic ignored \"-Weverything\"\n";

/// Builds the component from the file `entry`, a path below `folder`. In a project, the other C
/// files of the same folder are compiled too. Returns the component and the compiler's warnings.
pub(crate) fn build(
    folder: &Path,
    entry: &str,
    is_project: bool,
    tell: &dyn Fn(&str),
) -> Result<(Vec<u8>, String)> {
    let typed = folder;
    let folder = folder.canonicalize().map_err(Error::file("read the folder", folder))?;
    let scratch = Scratch::new("c")?;
    tell("looking for a C compiler");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let compiler = Compiler::find(&path, (&folder, typed), &scratch)?;
    for (path, text) in INCLUDED {
        scratch.write(&format!("sdk/{path}"), text)?;
    }
    let authors =
        if is_project { files_beside(&folder, entry)? } else { vec![argument(Path::new(entry))] };
    let mut sources = authors.clone();
    for (path, text) in SOURCES {
        let text =
            if path == "toolcell.c" { text.to_owned() } else { format!("{GENERATED}{text}") };
        sources.push(scratch.write(&format!("sdk/{path}"), &text)?);
    }
    let module = scratch.join("tool.wasm");
    let mut command = compiler.command();
    // Keeps the output reproducible: the SDK is in another folder at each build.
    command.arg(format!("-fmacro-prefix-map={}=toolcell", scratch.join("sdk").display()));
    command
        .current_dir(&folder)
        .arg("-I")
        .arg(scratch.join("sdk"))
        .arg("-o")
        .arg(&module)
        .args(&sources);
    tell(&super::makes("the C compiler", entry));
    let done = command.output().map_err(|error| compiler::missing(typed, &error.to_string()))?;
    // The header is in the temporary folder, whose path means nothing to the author.
    let own = format!("{}/", scratch.join("sdk").display());
    let said = String::from_utf8_lossy(&done.stderr).replace(&own, "");
    if !done.status.success() {
        return Err(compiler_error(&said));
    }
    let module = fs::read(&module).map_err(Error::file("read", &module))?;
    let component = component(&module, &folder, &authors)?;
    if !names::has_function(&module, REGISTERS)? {
        let message = format!("the source of `{entry}` has no tool");
        return Err(Error::source(
            message,
            "write TOOLCELL_TOOL(…) after a function, as in toolcell.h",
        ));
    }
    Ok((component, said))
}

/// Returns the C files in the folder of `entry`, each as a path below `folder`.
fn files_beside(folder: &Path, entry: &str) -> Result<Vec<PathBuf>> {
    let below = Path::new(entry).parent().unwrap_or(Path::new(""));
    let place = folder.join(below);
    let fault = Error::file("read the folder", &place);
    let mut files = Vec::new();
    for found in fs::read_dir(&place).map_err(fault)? {
        let path = below.join(found.map_err(fault)?.file_name());
        if path.extension().is_some_and(|extension| extension == "c")
            && folder.join(&path).is_file()
        {
            files.push(argument(&path));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the path in a form that no compiler reads as an option.
fn argument(path: &Path) -> PathBuf {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        Path::new(".").join(path)
    } else {
        path.to_owned()
    }
}

/// Makes the component of the core module that was compiled from these files in this folder. It
/// imports only the interfaces that the module calls.
fn component(module: &[u8], folder: &Path, files: &[PathBuf]) -> Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    let mut package = None;
    for (name, text) in WIT {
        package = Some(resolve.push_str(name, text).map_err(Error::internal)?);
    }
    let world = resolve.select_world(package.as_slice(), Some(WORLD));
    let world = world.map_err(Error::internal)?;
    let mut module = names::only_needed(module, folder, files)?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(Error::internal)?;
    let adapter = names::without_producers(ADAPTER)?;
    let encoded = ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.adapter(PREVIEW1, &adapter))
        .and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| {
        let message = format!("the compiled module is not a tool: {error:#}");
        Error::source(message, "remove imports and exports of your own from the source")
    })
}

/// Returns the error for a failed compiler or linker, with the places in the author's files.
fn compiler_error(said: &str) -> Error {
    let faults = said.lines().filter_map(fault).collect();
    let hint = "correct the source where the compiler's message points";
    Error::source(format!("the compiler refused the source:\n{}", said.trim_end()), hint)
        .with_faults(faults)
}

/// Parses one line `FILE:LINE:COLUMN: error: MESSAGE`.
fn fault(line: &str) -> Option<Fault> {
    let (place, message) =
        line.split_once(": error: ").or_else(|| line.split_once(": fatal error: "))?;
    let (place, column) = place.rsplit_once(':')?;
    let (file, line) = place.rsplit_once(':')?;
    Some(Fault {
        file: file.to_owned(),
        line: line.parse().ok()?,
        column: column.parse().ok()?,
        message: message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_error_position_is_parsed() {
        let said = "src/tool.c:3:12: error: use of undeclared identifier 'x'\n    3 |     return x;\n      |            ^\n\
                    wasm-ld: error: tool.o: undefined symbol: helper\nsrc/a.c:1:10: fatal error: 'b.h' file not found\n";
        let error = compiler_error(said);
        let faults: Vec<_> = error.source_faults().iter().map(ToString::to_string).collect();
        assert_eq!(
            faults,
            [
                "src/tool.c:3:12: use of undeclared identifier 'x'",
                "src/a.c:1:10: 'b.h' file not found",
            ]
        );
        assert!(error.to_string().contains("    3 |     return x;"), "{error}");
        assert!(error.to_string().contains("undefined symbol: helper"), "{error}");
    }
}
