//! Lists the parts of a component: its producers, its modules, and the bytes of each kind of
//! section.
//!
//! [`Contents::of`] takes the bytes of a component, or of a preview 1 module, and reads them once;
//! nothing is compiled or run. `toolcell` shows the result to a user who wants to know what a
//! component is made of. Producers are languages, compilers and libraries as the component itself
//! names them, so they are a claim.
//! Each name is shortened and has no control characters. At most 100 modules and 100 producers are
//! listed. The sizes of the sections add up to the bytes of the component. Bytes that are not a
//! component are an error.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use toolcell_contract::error::Error;
use wasmparser::{KnownCustom, Name, NameSectionReader, Parser, Payload, ProducersSectionReader};

use crate::engine::compile::{preview1, scan};

/// The most modules, and the most producers, that are listed.
const MAX_LISTED: usize = 100;

/// The name of the language in the producers.
const PYTHON: &str = "Python";

/// The parts of a component.
///
/// # Shape
/// As JSON: an object of its fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Contents {
    /// Languages, compilers and libraries, as the component's own `producers` sections name them.
    /// They are a claim.
    pub producers: Vec<Producer>,
    /// Its core modules, in the component's order.
    pub modules: Vec<Module>,
    /// Bytes by kind of section: the largest first, without empty ones.
    pub sections: Vec<Section>,
}

/// A program that took part in the build of a component.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Producer {
    /// Its part: `language`, `processed-by` or `sdk`.
    pub role: String,
    /// Its name, for example `Rust`.
    pub name: String,
    /// Its version; can be empty.
    pub version: String,
}

/// A core module of a component.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Module {
    /// The module's own name; can be empty.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Names of the component's imports that it calls.
    pub imports: BTreeSet<String>,
}

/// Bytes of one kind of section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Section {
    /// `code`, `data`, `debug_information`, `names`, `other_custom` or `structure`.
    pub kind: &'static str,
    /// Its size in bytes.
    pub size: u64,
}

impl Contents {
    /// Reads the parts from a component's bytes.
    ///
    /// # Errors
    /// [`Error::is_component`] if the bytes are not a component, or if it is over a bound.
    pub fn of(bytes: &[u8]) -> Result<Self, Error> {
        let component = preview1::component(bytes)?;
        scan::outline(&component)?;
        let mut contents = Self::default();
        let mut producers = BTreeSet::new();
        let mut sizes = BTreeMap::<&'static str, u64>::new();
        let mut add = |kind, size: u64| *sizes.entry(kind).or_default() += size;
        // A stack of the modules (by index) and components (`None`) whose end was not reached yet.
        let mut open = Vec::new();
        for payload in Parser::new(0).parse_all(&component) {
            #[expect(
                clippy::wildcard_enum_match_arm,
                reason = "what is not told apart is the structure"
            )]
            match payload.map_err(scan::malformed)? {
                Payload::ModuleSection { unchecked_range, .. } => {
                    contents
                        .modules
                        .push(Module { size: unchecked_range.len() as u64, ..Module::default() });
                    open.push(Some(contents.modules.len() - 1));
                }
                Payload::ComponentSection { .. } => open.push(None),
                Payload::End(_) => drop(open.pop()),
                Payload::CodeSectionStart { size, .. } => add("code", u64::from(size)),
                Payload::DataSection(section) => add("data", section.range().len() as u64),
                Payload::ImportSection(section) => {
                    let Some(module) = innermost(&mut contents.modules, &open) else { continue };
                    for import in section.into_imports() {
                        let from = import.map_err(scan::malformed)?.module;
                        if from.contains('@') {
                            module.imports.insert(scan::name(from));
                        }
                    }
                }
                Payload::CustomSection(section) => {
                    let size = section.data().len() as u64;
                    match section.as_known() {
                        KnownCustom::Producers(reader) => {
                            add("other_custom", size);
                            add_producers(&mut producers, reader);
                        }
                        KnownCustom::Name(reader) => {
                            add("names", size);
                            if let Some(module) = innermost(&mut contents.modules, &open) {
                                module.name = module_name(reader);
                            }
                        }
                        KnownCustom::ComponentName(_) => add("names", size),
                        _ if section.name().starts_with(".debug") => add("debug_information", size),
                        _ => add("other_custom", size),
                    }
                }
                _ => {}
            }
        }
        // The producers of componentize-py's components name only componentize-py and Rust.
        producers.extend(contents.modules.iter().filter_map(|module| python(&module.name)));
        contents.modules.truncate(MAX_LISTED);
        contents.producers = producers.into_iter().take(MAX_LISTED).collect();
        let structure = (component.len() as u64).saturating_sub(sizes.values().sum());
        sizes.insert("structure", structure);
        sizes.retain(|_, size| *size > 0);
        contents.sections = sizes.into_iter().map(|(kind, size)| Section { kind, size }).collect();
        contents.sections.sort_by_key(|section| std::cmp::Reverse(section.size));
        Ok(contents)
    }

    /// Returns true if the component contains a Python interpreter. This is a claim, as the
    /// producers are.
    #[must_use]
    pub fn is_python(&self) -> bool {
        self.producers.iter().any(|producer| producer.role == "language" && producer.name == PYTHON)
    }

    /// Returns the bytes of a kind of section; 0 if the component has none.
    #[must_use]
    pub fn size(&self, kind: &str) -> u64 {
        self.sections.iter().find(|section| section.kind == kind).map_or(0, |section| section.size)
    }

    /// Returns the modules that have an import of the component, as indices into `modules`. A
    /// module may name an older patch version of the import.
    pub fn callers<'a>(&'a self, import: &'a str) -> impl Iterator<Item = usize> + 'a {
        let wanted = without_patch(import);
        let has =
            move |module: &Module| module.imports.iter().any(|name| without_patch(name) == wanted);
        self.modules.iter().enumerate().filter(move |(_, module)| has(module)).map(|(at, _)| at)
    }
}

/// Returns `wasi:cli/stdin@0.2` for `wasi:cli/stdin@0.2.6`.
fn without_patch(name: &str) -> &str {
    let version = name.find('@').unwrap_or(name.len());
    match name.rfind('.') {
        Some(patch) if patch > version => &name[..patch],
        _ => name,
    }
}

/// Returns the part that the parser is in, if it is a module.
fn innermost<'a>(modules: &'a mut [Module], open: &[Option<usize>]) -> Option<&'a mut Module> {
    open.last().copied().flatten().and_then(|at| modules.get_mut(at))
}

/// Adds the producers of a section. A malformed section is skipped: it only claims who made the
/// component.
fn add_producers(producers: &mut BTreeSet<Producer>, reader: ProducersSectionReader<'_>) {
    for field in reader.into_iter().flatten().take(MAX_LISTED) {
        for value in field.values.into_iter().flatten().take(MAX_LISTED) {
            let [role, name, version] = [field.name, value.name, value.version].map(scan::name);
            producers.insert(Producer { role, name, version });
        }
    }
}

/// Returns Python as the language if this module is CPython's library.
fn python(module: &str) -> Option<Producer> {
    let version = module.strip_prefix("libpython")?.strip_suffix(".so")?;
    Some(Producer {
        role: "language".to_owned(),
        name: PYTHON.to_owned(),
        version: version.to_owned(),
    })
}

fn module_name(reader: NameSectionReader<'_>) -> String {
    let mut names = reader.into_iter().flatten();
    let name = names.find_map(|name| {
        if let Name::Module { name, .. } = name { Some(scan::name(name)) } else { None }
    });
    name.unwrap_or_default()
}
