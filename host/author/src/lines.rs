//! Finds the source lines of a trap in the debug information (DWARF) of a component.
//!
//! When a tool traps, the engine reports the positions of the functions on the stack.
//! [`source_lines`] takes the component's bytes and these positions, and returns places in the
//! author's files, innermost first, inlined functions included. Lines of the standard library and
//! of packages are left out. The list has at most 24 places, and it is empty if the component has
//! no debug information. The command line prints it below the error of a call; the runner of test
//! cases adds it to a failure. Names come from an untrusted file, so they are shortened and made
//! printable.
//!
//! Not here: limits on the work. Debug information can be crafted to cost any amount of time and
//! memory. For an untrusted component, call this in a process with limits on both.

use std::ops::Range;

use addr2line::{Context, LookupResult};
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use serde::{Deserialize, Serialize};
use toolcell::outcome::Frame;
use wasmparser::{Encoding, KnownCustom, Name, NameSectionReader, Parser, Payload, TypeRef};

/// Maximum number of places that are returned.
const MAX_PLACES: usize = 24;
/// Maximum characters of a file or function name.
const CHARS: usize = 160;
/// Bytes of a name. A longer one is not demangled, because an untrusted component could make that
/// expensive.
const MANGLED_BYTES: usize = 512;
/// Path fragments of files that are not the author's: the standard library, packages, and the C
/// library.
const LIBRARIES: [&str; 8] = [
    "/rustc/",
    "/.cargo/registry/",
    "/.cargo/git/",
    "/rustlib/",
    "guest-sdk/",
    "toolcell-guest/",
    "/lib/libc/",
    "/wasi-libc/",
];

/// A place in the source of a tool.
///
/// # Shape
/// As JSON: `{"file", "line", "function"?}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceLine {
    /// The file, as it was passed to the compiler: usually a path from the folder of the project.
    /// At most 160 printable characters.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function, if the debug information has its name. At most 160 printable characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.function {
            Some(function) => write!(f, "{function} ({}:{})", self.file, self.line),
            None => write!(f, "{}:{}", self.file, self.line),
        }
    }
}

/// Formats the places for display. A run of equal ones, as in a recursion, is shown once.
#[must_use]
pub fn shown_lines(lines: &[SourceLine]) -> Vec<String> {
    let folded = |equal: &[SourceLine]| match equal {
        [line, _, _, ..] => vec![line.to_string(), format!("… {} more times", equal.len() - 1)],
        _ => equal.iter().map(ToString::to_string).collect(),
    };
    lines.chunk_by(|one, other| one == other).flat_map(folded).collect()
}

/// Formats the places for display below a message, one a line, as the SDKs do for an exception.
pub(crate) fn format_lines(lines: &[SourceLine]) -> String {
    let lines = shown_lines(lines).into_iter();
    lines
        .map(|line| format!("\n    {}{line}", if line.starts_with('…') { "" } else { "at " }))
        .collect()
}

/// Returns the places of these positions in the author's files, innermost first: at most 24. The
/// list is empty if the component has no debug information, or if it cannot be read.
///
/// The debug information determines the time and memory that this takes. For an untrusted
/// component, call this in a process with limits on both.
#[must_use]
pub fn source_lines(component: &[u8], frames: &[Frame]) -> Vec<SourceLine> {
    let modules = modules(component);
    let lookups: Vec<_> =
        modules.iter().filter_map(|module| Some((module, module.lookup()?))).collect();
    let places = frames.iter().flat_map(|frame| {
        let found = lookups.iter().find_map(|(module, lookup)| module.places(lookup, *frame));
        found.unwrap_or_default()
    });
    places.take(MAX_PLACES).collect()
}

pub(crate) type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Returns the debug information in the custom sections of a module.
pub(crate) fn dwarf<'a>(sections: &[(&str, &'a [u8])]) -> gimli::Result<Dwarf<Reader<'a>>> {
    Dwarf::load(|id| {
        let found = sections.iter().find(|(name, _)| *name == id.name());
        Ok(EndianSlice::new(found.map_or(&[][..], |(_, data)| *data), LittleEndian))
    })
}

/// A core module: its code and its debug information.
#[derive(Default)]
struct Module<'a> {
    /// The offset of the code section's content in the file. Addresses in the debug information are
    /// relative to it.
    code: usize,
    /// The index of its first function that is not imported.
    first: u32,
    /// The range of each function's code in the file.
    bodies: Vec<Range<usize>>,
    sections: Vec<(&'a str, &'a [u8])>,
    /// The names of its functions.
    names: Vec<(u32, &'a str)>,
}

impl<'a> Module<'a> {
    fn lookup(&self) -> Option<Context<Reader<'a>>> {
        let found = self.sections.iter().find(|(name, _)| *name == SectionId::DebugInfo.name());
        found.filter(|(_, data)| !data.is_empty())?;
        Context::from_dwarf(dwarf(&self.sections).ok()?).ok()
    }

    /// Returns the author's places of this position, if the module has such a position.
    fn places(&self, lookup: &Context<Reader<'a>>, frame: Frame) -> Option<Vec<SourceLine>> {
        let mut places = places(lookup, self.address(frame)?);
        // If the debug information has lines only, the outermost function's name comes from the
        // name section.
        if let Some(Some(SourceLine { function: function @ None, .. })) = places.last_mut() {
            let name = self.names.iter().find(|(index, _)| *index == frame.function);
            *function = name.map(|(_, name)| last_segment(name));
        }
        Some(places.into_iter().flatten().collect())
    }

    /// Returns the address of this position in the debug information, if the module has such a
    /// position.
    fn address(&self, frame: Frame) -> Option<u64> {
        let body =
            self.bodies.get(usize::try_from(frame.function.checked_sub(self.first)?).ok()?)?;
        let position = body
            .start
            .checked_add(usize::try_from(frame.offset).ok()?)
            .filter(|at| body.contains(at))?;
        u64::try_from(position.checked_sub(self.code)?).ok()
    }
}

/// Returns the core modules of a component that can be read, or the file itself if it is one.
fn modules(component: &[u8]) -> Vec<Module<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Module<'_>> = None;
    for payload in Parser::new(0).parse_all(component) {
        let Ok(payload) = payload else { break };
        match (payload, &mut open) {
            (Payload::Version { encoding: Encoding::Module, .. }, _) => {
                open = Some(Module::default())
            }
            (Payload::ImportSection(section), Some(module)) => {
                let imports = section.into_imports().flatten();
                let functions = imports
                    .filter(|import| matches!(import.ty, TypeRef::Func(_) | TypeRef::FuncExact(_)));
                module.first = u32::try_from(functions.count()).unwrap_or(u32::MAX);
            }
            (Payload::CodeSectionStart { range, .. }, Some(module)) => module.code = range.start,
            (Payload::CodeSectionEntry(body), Some(module)) => module.bodies.push(body.range()),
            (Payload::CustomSection(section), Some(module))
                if section.name().starts_with(".debug_") =>
            {
                module.sections.push((section.name(), section.data()));
            }
            (Payload::CustomSection(section), Some(module)) => {
                if let KnownCustom::Name(names) = section.as_known() {
                    module.names = functions(names);
                }
            }
            (Payload::End(_), open) => found.extend(open.take()),
            _ => {}
        }
    }
    found
}

/// Returns the names of functions, as far as they can be read.
pub(crate) fn functions<'a>(names: NameSectionReader<'a>) -> Vec<(u32, &'a str)> {
    let maps = names
        .flatten()
        .filter_map(|name| if let Name::Function(map) = name { Some(map) } else { None });
    maps.flat_map(|map| map.into_iter().flatten().map(|naming| (naming.index, naming.name)))
        .collect()
}

/// Returns the places of one address: an inlined function before the one that it is inlined into.
/// `None` stands for a place that is not the author's.
fn places(lookup: &Context<Reader<'_>>, address: u64) -> Vec<Option<SourceLine>> {
    // Split debug information in other files is not followed.
    let LookupResult::Output(Ok(mut frames)) = lookup.find_frames(address) else {
        return Vec::new();
    };
    let LookupResult::Output(unit) = lookup.find_dwarf_and_unit(address) else { return Vec::new() };
    let folder = unit
        .and_then(|unit| unit.comp_dir)
        .map(|folder| folder.to_string_lossy())
        .unwrap_or_default();
    let mut places = Vec::new();
    while let Ok(Some(frame)) = frames.next()
        && places.len() < MAX_PLACES
    {
        let place = frame
            .location
            .and_then(|place| Some((place.file?, place.line.filter(|line| *line > 0)?)));
        let place = place.filter(|(file, _)| !LIBRARIES.iter().any(|part| file.contains(part)));
        let Some((file, line)) = place else {
            places.push(None);
            continue;
        };
        let file = file.strip_prefix(&*folder).map_or(file, |file| file.trim_start_matches('/'));
        let function = frame.function.and_then(|name| Some(last_segment(&name.raw_name().ok()?)));
        places.push(Some(SourceLine {
            file: plain(file.trim_start_matches("./")),
            line,
            function,
        }));
    }
    places
}

/// Returns the last part of a path, demangled if it is Rust's: `Deep<T>::pick` of `_RN…`.
fn last_segment(name: &str) -> String {
    if name.len() > MANGLED_BYTES {
        return plain(name);
    }
    let name = format!("{:#}", rustc_demangle::demangle(name));
    plain(name.rsplit("::").find(|part| !part.starts_with("{closure")).unwrap_or(&name))
}

/// Shortens an untrusted text and replaces unprintable characters, so that it fits on one line.
fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().take(CHARS).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use gimli::write::{
        Address, AttributeValue, Dwarf as DwarfWriter, EndianVec, LineProgram, LineString,
        Sections, Unit,
    };
    use gimli::{
        DW_AT_comp_dir, DW_AT_high_pc, DW_AT_low_pc, DW_AT_name, Encoding, Format, LineEncoding,
    };
    use wasm_encoder::{
        CodeSection, CustomSection, Function, FunctionSection, Instruction, Module, TypeSection,
    };

    use super::*;

    /// The start of the second of two functions in the code section, and its size in bytes.
    const BODY: (u64, u64) = (6, 3);

    /// A module whose second function traps, with debug information of a file of these names.
    fn module(folder: &str, file: &str, line: u64) -> Vec<u8> {
        let encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 4 };
        let name = |text: &str| LineString::String(text.as_bytes().to_vec());
        let mut program = LineProgram::new(
            encoding,
            LineEncoding::default(),
            name(folder),
            None,
            name(file),
            None,
        );
        let file_id = program.add_file(name(file), program.default_directory(), None);
        program.begin_sequence(Some(Address::Constant(BODY.0)));
        program.row().file = file_id;
        program.row().line = line;
        program.generate_row();
        program.end_sequence(BODY.1);
        let mut dwarf = DwarfWriter::new();
        let unit = dwarf.units.add(Unit::new(encoding, program));
        let unit = dwarf.units.get_mut(unit);
        let root = unit.root();
        let root = unit.get_mut(root);
        root.set(DW_AT_name, AttributeValue::String(file.into()));
        root.set(DW_AT_comp_dir, AttributeValue::String(folder.into()));
        root.set(DW_AT_low_pc, AttributeValue::Address(Address::Constant(BODY.0)));
        root.set(DW_AT_high_pc, AttributeValue::Udata(BODY.1));
        let mut sections = Sections::new(EndianVec::new(LittleEndian));
        dwarf.write(&mut sections).expect("debug information");

        let (mut types, mut functions, mut code) =
            (TypeSection::new(), FunctionSection::new(), CodeSection::new());
        types.ty().function([], []);
        for _ in 0..2 {
            functions.function(0);
            let mut body = Function::new([]);
            body.instruction(&Instruction::Unreachable).instruction(&Instruction::End);
            code.function(&body);
        }
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&code);
        let each = sections.for_each(|id, data| {
            module.section(&CustomSection { name: id.name().into(), data: data.slice().into() });
            Ok::<_, gimli::Error>(())
        });
        each.expect("sections");
        module.finish()
    }

    fn line_texts(module: &[u8], frames: &[Frame]) -> Vec<String> {
        source_lines(module, frames).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn position_has_its_source_line() {
        for (folder, file, shows) in [
            ("/ada/tool", "src/tool.c", &["src/tool.c:7"][..]),
            ("/ada/tool", "/ada/tool/src/tool.c", &["src/tool.c:7"]),
            (".", "./tool.c", &["tool.c:7"]),
            ("/tool", "a\u{1b}[2J\u{202e}.c", &["a?[2J?.c:7"]),
            ("/rustc/0123", "library/core/src/panicking.rs", &[]),
            ("/ada/.cargo/registry/src/index/serde-1.0.0", "src/lib.rs", &[]),
        ] {
            assert_eq!(
                line_texts(&module(folder, file, 7), &[Frame::new(1, 1)]),
                shows,
                "{folder} {file}"
            );
        }
    }

    #[test]
    fn position_without_debug_info_has_no_line() {
        let module = module("/tool", "tool.c", 7);
        for (function, offset) in [(0, 1), (1, 3), (1, u64::MAX), (2, 0), (u32::MAX, 0)] {
            assert_eq!(
                line_texts(&module, &[Frame::new(function, offset)]),
                [""; 0],
                "{function} {offset}"
            );
        }
        assert_eq!(line_texts(&module[..module.len() / 2], &[Frame::new(1, 1)]), [""; 0]);
        assert_eq!(line_texts(b"\0asm", &[Frame::new(1, 1)]), [""; 0]);
    }

    #[test]
    fn places_are_bounded_in_number_and_length() {
        assert_eq!(
            line_texts(&module("/tool", "tool.c", 7), &[Frame::new(1, 1); 100]).len(),
            MAX_PLACES
        );
        let long = line_texts(&module("/tool", &"x".repeat(5000), 7), &[Frame::new(1, 1)]);
        assert_eq!(long, [format!("{}:7", "x".repeat(CHARS))]);
    }

    #[test]
    fn damaged_debug_info_does_not_panic() {
        let module = module("/tool", "tool.c", 7);
        let mut random = fastrand::Rng::with_seed(7);
        let mut seen = 0;
        for _ in 0..2000 {
            let mut damaged = module.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(40..damaged.len());
                damaged[at] = random.u8(..);
            }
            seen += line_texts(&damaged, &[Frame::new(1, 1)]).len();
        }
        // Some of the damage has no effect.
        assert!(seen > 0);
    }
}
