//! Removes unused parts of the core module of a JavaScript tool.
//!
//! The snapshot calls [`trim`] with the module and the interfaces that the tools do not need. It
//! removes three things: imports of these interfaces, so that the component does not require them;
//! the bodies of functions that only the loading called; and headers of data segments, by joining
//! segments. A removed import or function becomes a function that traps, which nothing calls.
//!
//! The module is named after the SDK, and its functions have no names. The host leaves frames of
//! the SDK out of a backtrace, so that an author sees no frames of the runtime.

mod segments;

use std::collections::BTreeSet;
use std::convert::Infallible;

use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ExportSection, Function, FunctionSection, ImportSection,
    Instruction, Module, NameSection,
};
use wasmparser::{
    CodeSectionReader, CustomSectionReader, DataSectionReader, Export, FunctionBody,
    FunctionSectionReader, ImportSectionReader, Parser, Payload, TypeRef,
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
    trimmer.parse_core_module(&mut written, Parser::new(0), module).map_err(failed)?;
    let mut names = NameSection::new();
    names.module(NAME);
    written.section(&names);
    Ok(written.finish())
}

/// The result of writing a part of a module anew.
type Reencoded<T = ()> = Result<T, reencode::Error<Infallible>>;

fn failed(error: reencode::Error<Infallible>) -> Error {
    Error::internal(format!("{error:?}"))
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
        let (mut imports, mut bodies, mut data) = (Vec::new(), Vec::new(), None);
        for payload in Parser::new(0).parse_all(module) {
            #[expect(
                clippy::wildcard_enum_match_arm,
                reason = "the other sections have no function and no data"
            )]
            match payload.map_err(Error::internal)? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import.map_err(Error::internal)?;
                        if let TypeRef::Func(ty) = import.ty {
                            imports.push((ty, !unused.contains(import.module)));
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => bodies.push(body),
                Payload::DataSection(section) => {
                    data = segments::join_active(section).map_err(Error::internal)?
                }
                _ => {}
            }
        }
        let reached = reachable(module, imports.len(), &bodies).map_err(failed)?;
        Ok(Self { unused, imports, defined: bodies.len() as u32, reached, bodies: 0, data })
    }

    fn kept_imports(&self) -> u32 {
        self.imports.iter().filter(|(_, stays)| *stays).count() as u32
    }

    /// Returns the types of the removed imports.
    fn removed_types(&self) -> impl Iterator<Item = u32> {
        self.imports.iter().filter(|(_, stays)| !stays).map(|(ty, _)| *ty)
    }
}

impl Reencode for Trimmer<'_> {
    type Error = Infallible;

    fn function_index(&mut self, index: u32) -> Reencoded<u32> {
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
    ) -> Reencoded {
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
    ) -> Reencoded {
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
    ) -> Reencoded {
        utils::parse_code_section(self, code, section)?;
        for _ in self.removed_types() {
            code.function(&trap());
        }
        Ok(())
    }

    fn parse_function_body(&mut self, code: &mut CodeSection, body: FunctionBody<'_>) -> Reencoded {
        let function = self.imports.len() + self.bodies;
        self.bodies += 1;
        if self.reached.get(function).is_none_or(|reached| *reached) {
            return utils::parse_function_body(self, code, body);
        }
        code.function(&trap());
        Ok(())
    }

    fn data_count(&mut self, count: u32) -> Reencoded<u32> {
        Ok(self.data.as_ref().map_or(count, |(empty, segments)| (empty + segments.len()) as u32))
    }

    fn parse_data_section(
        &mut self,
        data: &mut DataSection,
        section: DataSectionReader<'_>,
    ) -> Reencoded {
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

    fn parse_export(&mut self, exports: &mut ExportSection, export: Export<'_>) -> Reencoded {
        if export.name.starts_with(BUILDER) {
            return Ok(());
        }
        utils::parse_export(self, exports, export)
    }
}

/// Returns for each function true if it can be called: the `imported` ones first, then those with
/// these bodies. It follows references from the exports that stay, the start function, the tables
/// and the globals through the bodies of functions. A function in a table counts as called, since an
/// indirect call names no function.
fn reachable(module: &[u8], imported: usize, bodies: &[FunctionBody<'_>]) -> Reencoded<Vec<bool>> {
    let mut references = References(Vec::new());
    references.parse_core_module(&mut Module::new(), Parser::new(0), module)?;
    let mut reached = vec![false; imported + bodies.len()];
    while let Some(function) = references.0.pop() {
        let function = function as usize;
        let Some(seen) = reached.get_mut(function).filter(|seen| !**seen) else { continue };
        *seen = true;
        if let Some(body) = function.checked_sub(imported).and_then(|at| bodies.get(at)) {
            utils::parse_function_body(&mut references, &mut CodeSection::new(), body.clone())?;
        }
    }
    Ok(reached)
}

/// Collects the functions that a part of a module refers to, while it is written anew. The written
/// form is dropped.
struct References(Vec<u32>);

impl Reencode for References {
    type Error = Infallible;

    fn function_index(&mut self, index: u32) -> Reencoded<u32> {
        self.0.push(index);
        Ok(index)
    }

    fn parse_export(&mut self, exports: &mut ExportSection, export: Export<'_>) -> Reencoded {
        if export.name.starts_with(BUILDER) {
            return Ok(());
        }
        utils::parse_export(self, exports, export)
    }

    /// The body of a function counts only if the function can be called.
    fn parse_code_section(&mut self, _: &mut CodeSection, _: CodeSectionReader<'_>) -> Reencoded {
        Ok(())
    }

    /// A name of a function is no reference.
    fn parse_custom_section(&mut self, _: &mut Module, _: CustomSectionReader<'_>) -> Reencoded {
        Ok(())
    }
}
