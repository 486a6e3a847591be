//! Removes unused parts of the core module of a JavaScript tool.
//!
//! The snapshot calls [`trim`] with the module and the interfaces that the tools do not need. It
//! removes three things: imports of these interfaces, so that the component does not require them;
//! the bodies of functions that only the loading called; and headers of data segments, by joining
//! segments. A removed import or function becomes a function that traps, which nothing calls.
//!
//! The module is named after the SDK, and its functions have no names. The host leaves frames of
//! the SDK out of a backtrace, so that an author sees no frames of the runtime.

mod reached;
mod segments;

use std::collections::BTreeSet;
use std::convert::Infallible;

use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, Function, FunctionSection, ImportSection, Instruction,
    Module, NameSection,
};
use wasmparser::{
    CodeSectionReader, DataSectionReader, ExportSectionReader, FunctionBody, FunctionSectionReader,
    ImportSectionReader, Parser, Payload, TypeRef,
};

use crate::{Error, Result};

/// The name of the trimmed module.
const NAME: &str = "toolcell_guest";
/// Prefix of core exports that only the builder uses.
const BUILDER: &str = "toolcell_js_";

/// Writes the module without the unused parts. The functions of the interfaces `unused` are never
/// called.
pub(crate) fn trim(module: &[u8], unused: &BTreeSet<String>) -> Result<Vec<u8>> {
    let mut trimmer = Trimmer::of(module, unused)?;
    let mut written = Module::new();
    trimmer
        .parse_core_module(&mut written, Parser::new(0), module)
        .map_err(|error| Error::internal(format!("{error:?}")))?;
    let mut names = NameSection::new();
    names.module(NAME);
    written.section(&names);
    Ok(written.finish())
}

/// The decision for each function, while the module is rewritten.
struct Trimmer<'a> {
    unused: &'a BTreeSet<String>,
    /// For each imported function: its type, and true if it stays.
    imports: Vec<(u32, bool)>,
    /// The number of functions that the module defines.
    defined: u32,
    /// For each function, true if it can be called.
    reached: Vec<bool>,
    /// The number of bodies written so far.
    bodies: usize,
    /// The data in fewer segments, if possible: the number of empty ones, and the others.
    data: Option<(usize, Vec<segments::Segment>)>,
}

/// The body of a function that is never called.
fn trap() -> Function {
    let mut body = Function::new([]);
    body.instruction(&Instruction::Unreachable).instruction(&Instruction::End);
    body
}

impl<'a> Trimmer<'a> {
    fn of(module: &[u8], unused: &'a BTreeSet<String>) -> Result<Self> {
        let reached = reached::reachable(module, |name| !name.starts_with(BUILDER))
            .map_err(Error::internal)?;
        let mut found =
            Self { unused, imports: Vec::new(), defined: 0, reached, bodies: 0, data: None };
        for payload in Parser::new(0).parse_all(module) {
            #[expect(
                clippy::wildcard_enum_match_arm,
                reason = "the other sections say nothing about imports"
            )]
            match payload.map_err(Error::internal)? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import.map_err(Error::internal)?;
                        if let TypeRef::Func(ty) = import.ty {
                            found.imports.push((ty, !unused.contains(import.module)));
                        }
                    }
                }
                Payload::FunctionSection(section) => found.defined = section.count(),
                Payload::DataSection(section) => {
                    found.data = segments::join_active(section).map_err(Error::internal)?
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn kept_imports(&self) -> u32 {
        self.imports.iter().filter(|(_, stays)| *stays).count() as u32
    }

    /// Returns the types of the removed imports.
    fn removed_types(&self) -> impl Iterator<Item = u32> {
        self.imports.iter().filter(|(_, stays)| !stays).map(|(ty, _)| *ty)
    }
}

type Result2 = Result<(), reencode::Error<Infallible>>;

impl Reencode for Trimmer<'_> {
    type Error = Infallible;

    fn function_index(&mut self, index: u32) -> Result<u32, reencode::Error<Infallible>> {
        let before = |stays: bool, index: usize| {
            self.imports[..index].iter().filter(|(_, kept)| *kept == stays).count() as u32
        };
        Ok(match self.imports.get(index as usize) {
            Some((_, true)) => before(true, index as usize),
            Some((_, false)) => self.kept_imports() + self.defined + before(false, index as usize),
            None => index - self.imports.len() as u32 + self.kept_imports(),
        })
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: ImportSectionReader<'_>,
    ) -> Result2 {
        for import in section.into_imports() {
            let import = import?;
            if !self.unused.contains(import.module) {
                utils::parse_import(self, imports, import)?;
            }
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result2 {
        utils::parse_function_section(self, functions, section)?;
        for ty in self.removed_types() {
            functions.function(ty);
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result2 {
        utils::parse_code_section(self, code, section)?;
        for _ in self.removed_types() {
            code.function(&trap());
        }
        Ok(())
    }

    fn parse_function_body(&mut self, code: &mut CodeSection, body: FunctionBody<'_>) -> Result2 {
        let function = self.imports.len() + self.bodies;
        self.bodies += 1;
        if self.reached.get(function).is_none_or(|reached| *reached) {
            return utils::parse_function_body(self, code, body);
        }
        code.function(&trap());
        Ok(())
    }

    fn data_count(&mut self, count: u32) -> Result<u32, reencode::Error<Infallible>> {
        Ok(self.data.as_ref().map_or(count, |(empty, segments)| (empty + segments.len()) as u32))
    }

    fn parse_data_section(
        &mut self,
        data: &mut DataSection,
        section: DataSectionReader<'_>,
    ) -> Result2 {
        let Some((empty, segments)) = self.data.take() else {
            return utils::parse_data_section(self, data, section);
        };
        for _ in 0..empty {
            data.passive([]);
        }
        for segments::Segment { place, bytes } in segments {
            data.active(0, &ConstExpr::i32_const(place), bytes);
        }
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut wasm_encoder::ExportSection,
        section: ExportSectionReader<'_>,
    ) -> Result2 {
        for export in section {
            let export = export?;
            if !export.name.starts_with(BUILDER) {
                utils::parse_export(self, exports, export)?;
            }
        }
        Ok(())
    }
}
