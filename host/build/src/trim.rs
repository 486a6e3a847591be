//! Takes imports out of a core module that are never called, so that the component does not ask for them.
//!
//! Each becomes a function that traps. All functions are named after the SDK: the host leaves those out of a backtrace, so
//! that it has no frames of the runtime.

use std::convert::Infallible;

use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{CodeSection, Function, FunctionSection, ImportSection, Instruction, Module, NameMap, NameSection};
use wasmparser::{
    CodeSectionReader, ExportSectionReader, FunctionSectionReader, ImportSectionReader, Parser, Payload, TypeRef,
};

use crate::Error;

/// What every function is called.
const NAME: &str = "toolcell_guest";
/// Core exports that are for the builder only.
const BUILDER: &str = "toolcell_js_";

/// Interfaces whose functions are never called.
pub(crate) struct Unused {
    pub(crate) interfaces: Vec<&'static str>,
}

/// Writes the module without them.
pub(crate) fn trim(module: &[u8], unused: &Unused) -> Result<Vec<u8>, Error> {
    let mut trimmer = Trimmer::of(module, unused)?;
    let mut written = Module::new();
    trimmer
        .parse_core_module(&mut written, Parser::new(0), module)
        .map_err(|error| Error::internal(format!("{error:?}")))?;
    let mut functions = NameMap::new();
    for index in 0..trimmer.imports.len() as u32 + trimmer.defined {
        functions.append(index, NAME);
    }
    let mut names = NameSection::new();
    names.functions(&functions);
    written.section(&names);
    Ok(written.finish())
}

/// What becomes of each function.
struct Trimmer<'a> {
    unused: &'a Unused,
    /// For each imported function: its type, and whether it stays.
    imports: Vec<(u32, bool)>,
    /// Functions that the module defines.
    defined: u32,
}

impl<'a> Trimmer<'a> {
    fn of(module: &[u8], unused: &'a Unused) -> Result<Self, Error> {
        let mut found = Self { unused, imports: Vec::new(), defined: 0 };
        for payload in Parser::new(0).parse_all(module) {
            #[expect(clippy::wildcard_enum_match_arm, reason = "the other sections say nothing about imports")]
            match payload.map_err(Error::internal)? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import.map_err(Error::internal)?;
                        if let TypeRef::Func(ty) = import.ty {
                            found.imports.push((ty, !unused.interfaces.contains(&import.module)));
                        }
                    }
                }
                Payload::FunctionSection(section) => found.defined = section.count(),
                _ => {}
            }
        }
        Ok(found)
    }

    fn kept(&self) -> u32 {
        self.imports.iter().filter(|(_, stays)| *stays).count() as u32
    }

    /// Types of the imports that go.
    fn gone(&self) -> impl Iterator<Item = u32> {
        self.imports.iter().filter(|(_, stays)| !stays).map(|(ty, _)| *ty)
    }
}

type Result2 = Result<(), reencode::Error<Infallible>>;

impl Reencode for Trimmer<'_> {
    type Error = Infallible;

    fn function_index(&mut self, index: u32) -> Result<u32, reencode::Error<Infallible>> {
        let before =
            |stays: bool, index: usize| self.imports[..index].iter().filter(|(_, kept)| *kept == stays).count() as u32;
        Ok(match self.imports.get(index as usize) {
            Some((_, true)) => before(true, index as usize),
            Some((_, false)) => self.kept() + self.defined + before(false, index as usize),
            None => index - self.imports.len() as u32 + self.kept(),
        })
    }

    fn parse_import_section(&mut self, imports: &mut ImportSection, section: ImportSectionReader<'_>) -> Result2 {
        for import in section.into_imports() {
            let import = import?;
            if !self.unused.interfaces.contains(&import.module) {
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
        for ty in self.gone() {
            functions.function(ty);
        }
        Ok(())
    }

    fn parse_code_section(&mut self, code: &mut CodeSection, section: CodeSectionReader<'_>) -> Result2 {
        utils::parse_code_section(self, code, section)?;
        for _ in self.gone() {
            let mut body = Function::new([]);
            body.instruction(&Instruction::Unreachable).instruction(&Instruction::End);
            code.function(&body);
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
