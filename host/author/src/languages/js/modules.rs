//! Collects the modules of a JavaScript or TypeScript tool, starting at its entry file.
//!
//! [`collect`] takes the project folder and the entry. It parses each file, strips TypeScript's
//! types, resolves the imports to files of the project and of its npm packages, and continues with
//! those. It returns [`Modules`], the form that the JavaScript runtime evaluates: sources by path,
//! the target of each import, and warnings about names that the runtime lacks. Syntax errors and
//! imports without a target are errors with file, line and column; a `require` or `import()`
//! without one fails only when that line runs. No file outside of the project's folder is read. One
//! file has at most 8 MiB, all together 64 MiB.

mod commonjs;
mod missing_names;
mod package;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::machine::{Embedded, Machine, Stopped};
use crate::{Error, Fault, Result};
use missing_names::Absent;
use package::ImportKind;
use resolve::Resolver;

/// The reader, which parses modules and strips types: `guest-sdk/js/typescript`, built by `cargo
/// xtask js-runtime`.
static READER: Embedded = Embedded::new(include_bytes!("../../../runtime/modules.wasm.zlib"));
/// The specifier of the SDK, which is part of the runtime.
const SDK: &str = "toolcell";
/// Bytes of one file of source.
const MAX_SOURCE: u64 = 8 << 20;
/// Bytes of all files of source.
const MAX_SOURCES: u64 = 64 << 20;
/// Maximum number of packages of which files for other platforms than browsers are tried.
const MAX_PAGES: usize = 8;

/// Modules in the runtime's format, by their paths in the project.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Modules {
    pub(crate) entry: String,
    modules: BTreeMap<String, String>,
    /// For each module, the target of each specifier.
    imports: BTreeMap<String, BTreeMap<String, String>>,
    /// For each module that was TypeScript, the line of the source for each line of the output.
    lines: BTreeMap<String, Vec<u32>>,
    /// Names and imports that the runtime does not have.
    #[serde(skip)]
    pub(crate) absent: Absent,
    /// What CommonJS modules require in vain, by their packages.
    #[serde(skip)]
    unmet: BTreeSet<(String, String)>,
}

/// One file of the project or of a package.
struct File {
    text: Text,
    /// The target of each specifier: a file's name.
    meanings: BTreeMap<String, String>,
    /// The reasons why the other specifiers of a CommonJS module have no target.
    missing: BTreeMap<String, String>,
}

/// The content of a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Module {
        source: String,
        /// The names that it imports, by specifier.
        imports: BTreeMap<String, BTreeSet<String>>,
        dynamic: Vec<Dynamic>,
        #[serde(default)]
        lines: Vec<u32>,
    },
    CommonJs {
        source: String,
        #[serde(rename = "commonjs")]
        facts: CommonJs,
        dynamic: Vec<Dynamic>,
    },
    #[serde(skip)]
    Json(String),
}

/// The imports and exports of a CommonJS module, as far as its text shows them.
#[derive(Default, Deserialize)]
struct CommonJs {
    /// The specifiers that it requires.
    requires: BTreeSet<String>,
    /// The names that it exports.
    exports: BTreeSet<String>,
    /// The specifiers of modules whose exports it re-exports.
    passes_on: BTreeSet<String>,
}

/// A call of `import()`. `specifier` is `None` if it is computed.
#[derive(Deserialize)]
struct Dynamic {
    specifier: Option<String>,
    line: u32,
}

/// The reader's answer.
#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Text {
        #[serde(flatten)]
        text: Text,
        free: Vec<Free>,
    },
    Faults {
        faults: Vec<Fault>,
    },
}

/// A global name that a module uses, and the line of its first use.
#[derive(Deserialize)]
struct Free {
    name: String,
    line: u32,
    /// True if the module tests for the name before it uses it.
    is_asked: bool,
}

/// Reads the module `entry` of a project and all modules that it imports.
pub(crate) fn collect(project: &Path, entry: &str) -> Result<Modules> {
    let mut modules = collected(project, entry, &BTreeSet::new())?;
    let mut pages = BTreeSet::new();
    // Some packages use names of web pages. Their files for other platforms may not, but these may
    // need Node: each package is tried by itself.
    for page in modules.absent.of_a_page().into_iter().take(MAX_PAGES) {
        pages.insert(page.clone());
        if let Ok(others) = collected(project, entry, &pages)
            && others.absent.of_a_page().len() < modules.absent.of_a_page().len()
            && others.unmet.is_subset(&modules.unmet)
        {
            modules = others;
        } else {
            pages.remove(&page);
        }
    }
    Ok(modules)
}

/// Reads the modules. `pages` are packages whose browser files are not used.
fn collected(project: &Path, entry: &str, pages: &BTreeSet<String>) -> Result<Modules> {
    let root = project.canonicalize().map_err(Error::file("read the folder", project))?;
    let mut reader = Machine::start(&READER, READER.wasm()?)?;
    let mut resolver = Resolver::new(&root, pages);
    let mut files = BTreeMap::new();
    let mut open = vec![entry.to_owned()];
    let (mut bytes, mut absent, mut unmet) = (0, Absent::default(), BTreeSet::new());
    while let Some(name) = open.pop() {
        if files.contains_key(&name) {
            continue;
        }
        let text = if name == resolve::EMPTY {
            Text::empty()
        } else {
            read(&mut reader, &root, &name, &mut bytes, &mut absent)?
        };
        let (mut meanings, mut missing) = (BTreeMap::new(), BTreeMap::new());
        for specifier in text.specifiers().into_iter().filter(|specifier| *specifier != SDK) {
            match (resolver.resolve(&name, specifier, text.import_kind()), &text) {
                (Ok(target), _) => {
                    open.push(target.clone());
                    meanings.insert(specifier.clone(), target);
                }
                // The module may not need it: `require` throws when this line runs.
                (Err(error), Text::CommonJs { .. }) => {
                    unmet.insert((resolve::package_of(&name).to_owned(), specifier.clone()));
                    missing.insert(specifier.clone(), without(&name, &error));
                }
                (Err(error), _) => return Err(error),
            }
        }
        for Dynamic { specifier, line } in text.dynamic() {
            let Some(specifier) = specifier else {
                absent.add_import(
                    &name,
                    *line,
                    "`import()` finds a module only by a name in quotes",
                );
                continue;
            };
            if specifier == SDK || meanings.contains_key(specifier) {
                continue;
            }
            match resolver.resolve(&name, specifier, ImportKind::Import) {
                Ok(target) => {
                    open.push(target.clone());
                    meanings.insert(specifier.clone(), target);
                }
                // The module may not need it: the promise is rejected when this line runs.
                Err(error) => absent.add_import(
                    &name,
                    *line,
                    &format!("{}; {}", without(&name, &error), error.hint()),
                ),
            }
        }
        files.insert(name, File { text, meanings, missing });
    }
    Ok(Modules { absent, unmet, ..render(&files, entry)? })
}

/// Returns the text of an error without the file name at its start.
fn without(file: &str, error: &Error) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{file}: ")).unwrap_or(&text).to_owned()
}

/// Writes the files as modules. A CommonJS module that is imported gets a second module, its front.
fn render(files: &BTreeMap<String, File>, entry: &str) -> Result<Modules> {
    let mut done = Modules { entry: entry.to_owned(), ..Modules::default() };
    let names = commonjs::names(files)?;
    for (name, file) in files {
        let mut meanings = file.meanings.clone();
        for (specifier, target) in &mut meanings {
            if !file.requires(specifier) && names.contains_key(target.as_str()) {
                *target = commonjs::front_name(target);
            }
        }
        let source = match &file.text {
            Text::Module { source, lines, .. } => {
                if !lines.is_empty() {
                    done.lines.insert(name.clone(), lines.clone());
                }
                source.clone()
            }
            Text::CommonJs { source, facts, .. } => {
                commonjs::module(name, source, &facts.requires, file, files)
            }
            Text::Json(text) => format!("export default JSON.parse({});", json!(text)),
        };
        done.imports.insert(name.clone(), meanings);
        done.modules.insert(name.clone(), source);
    }
    for (name, exports) in names {
        let front = commonjs::front_name(name);
        done.imports.insert(front.clone(), BTreeMap::from([(name.to_owned(), name.to_owned())]));
        done.modules.insert(front, commonjs::front_module(name, &exports));
    }
    Ok(done)
}

impl File {
    /// Returns true if it gets the target of this specifier itself, not its front: by `require`.
    fn requires(&self, specifier: &str) -> bool {
        matches!(&self.text, Text::CommonJs { facts, .. } if facts.requires.contains(specifier))
    }
}

impl Text {
    /// Returns the module that replaces one that a package excludes in browsers.
    fn empty() -> Self {
        Self::CommonJs { source: String::new(), facts: CommonJs::default(), dynamic: Vec::new() }
    }

    fn dynamic(&self) -> &[Dynamic] {
        match self {
            Self::Module { dynamic, .. } | Self::CommonJs { dynamic, .. } => dynamic,
            Self::Json(_) => &[],
        }
    }

    fn specifiers(&self) -> Vec<&String> {
        match self {
            Self::Module { imports, .. } => imports.keys().collect(),
            Self::CommonJs { facts, .. } => facts.requires.iter().collect(),
            Self::Json(_) => Vec::new(),
        }
    }

    fn import_kind(&self) -> ImportKind {
        if matches!(self, Self::CommonJs { .. }) { ImportKind::Require } else { ImportKind::Import }
    }
}

/// Reads a file of the project, and adds its size to `bytes`.
fn read(
    reader: &mut Machine,
    root: &Path,
    name: &str,
    bytes: &mut u64,
    absent: &mut Absent,
) -> Result<Text> {
    let path = root.join(name);
    let real = path.canonicalize().map_err(Error::file("read", &path))?;
    if !real.starts_with(root) {
        let message = format!("`{name}` is outside of the project");
        return Err(Error::source(message, "copy the file into the project's folder"));
    }
    let size = fs::metadata(&path).map_err(Error::file("read", &path))?.len();
    *bytes += size;
    if *bytes > MAX_SOURCES {
        let message = format!("the modules have more than {MAX_SOURCES} bytes together");
        let hint = "import less: one function by its path, where a package offers it";
        return Err(Error::source(message, hint));
    }
    if size > MAX_SOURCE {
        let message =
            format!("`{name}` is too large: {size} bytes, and at most {MAX_SOURCE} are read");
        return Err(Error::source(message, "split it into modules"));
    }
    let source = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
    if path.extension().is_some_and(|extension| extension == "json") {
        return match serde_json::from_str::<serde::de::IgnoredAny>(&source) {
            Ok(_) => Ok(Text::Json(source)),
            Err(error) => Err(Error::faults(vec![package::fault(name, &error)])),
        };
    }
    let given = json!({ "name": name, "source": source, "package": resolve::is_of_package(name) });
    let answer = reader.exchange(given.to_string().as_bytes());
    let answer = answer.map_err(|stopped| match stopped {
        Stopped::Fuel => Error::source(
            format!("the modules up to `{name}` take too long to parse"),
            "import less",
        ),
        Stopped::Trap(_) => {
            let message = format!(
                "`{name}` cannot be parsed: it is nested too deeply or needs too much memory"
            );
            Error::source(message, "simplify the file, or import less")
        }
        Stopped::Other(error) => error,
    })?;
    match serde_json::from_slice(&answer).map_err(Error::internal)? {
        Read::Text { text, free } => {
            absent.add(name, matches!(text, Text::CommonJs { .. }), &free);
            Ok(text)
        }
        Read::Faults { faults } => Err(Error::faults(
            faults.into_iter().map(|fault| Fault { file: name.to_owned(), ..fault }).collect(),
        )),
    }
}
