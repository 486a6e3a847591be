//! The modules of a JavaScript or TypeScript tool: found from the first one on, their types stripped, and what they import
//! resolved to files of the project and of its npm packages.
//!
//! Out: the modules as the runtime takes them. Invariant: no file outside of the project's folder is read.

mod commonjs;
mod package;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::machine::{Compiled, Machine, Stopped};
use crate::{Error, ErrorKind, Fault};
use resolve::{Resolver, Wanted};

/// Reads modules and strips types: `guest-sdk/js/typescript`, built by `cargo xtask js-runtime`.
const READER: &[u8] = include_bytes!("../runtime/modules.wasm");
/// The reader.
static COMPILED: Compiled = Compiled::new();
/// The module that the runtime brings.
const SDK: &str = "toolcell";
/// Bytes of one file of source.
const MAX_SOURCE: u64 = 8 << 20;

/// Modules as the runtime takes them, by their paths in the project.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Modules {
    entry: String,
    modules: BTreeMap<String, String>,
    /// For each module, what its specifiers mean.
    imports: BTreeMap<String, BTreeMap<String, String>>,
    /// For each module that was TypeScript, the source's line for each line.
    lines: BTreeMap<String, Vec<u32>>,
}

/// One file of the project or of a package.
struct File {
    text: Text,
    /// What its specifiers mean: names of files.
    meanings: BTreeMap<String, String>,
}

/// What is in a file.
enum Text {
    Module {
        source: String,
        /// The names that it imports, by specifier.
        imports: BTreeMap<String, BTreeSet<String>>,
        lines: Vec<u32>,
    },
    CommonJs {
        source: String,
        says: CommonJs,
    },
    Json(String),
}

/// What a CommonJS module says of itself.
#[derive(Default, Deserialize)]
struct CommonJs {
    /// The specifiers that it requires.
    requires: BTreeSet<String>,
    /// The names that it exports.
    exports: BTreeSet<String>,
    /// The specifiers of modules whose exports it exports too.
    passes_on: BTreeSet<String>,
}

/// What the reader answers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Module {
        source: String,
        imports: BTreeMap<String, BTreeSet<String>>,
        #[serde(default)]
        lines: Vec<u32>,
    },
    CommonJs {
        source: String,
        commonjs: CommonJs,
    },
    Faults {
        faults: Vec<Fault>,
    },
}

/// Reads the module `entry` of a project and all that it imports.
pub(crate) fn collect(project: &Path, entry: &str) -> Result<Modules, Error> {
    let root = project.canonicalize().map_err(|error| Error::file("read the folder", project, &error))?;
    let mut reader = Machine::start(READER, &COMPILED)?;
    let mut resolver = Resolver::new(&root);
    let mut files = BTreeMap::new();
    let mut open = vec![entry.to_owned()];
    while let Some(name) = open.pop() {
        if files.contains_key(&name) {
            continue;
        }
        let text = if name == resolve::EMPTY { Text::empty() } else { read(&mut reader, &root, &name)? };
        let mut meanings = BTreeMap::new();
        for specifier in text.specifiers().filter(|specifier| *specifier != SDK) {
            match (resolver.resolve(&name, specifier, text.wanted()), &text) {
                (Ok(target), _) => {
                    open.push(target.clone());
                    meanings.insert(specifier.clone(), target);
                }
                // It may be one that the package does without: `require` throws, if the module comes to it.
                (Err(_), Text::CommonJs { .. }) => {}
                (Err(error), _) => return Err(error),
            }
        }
        files.insert(name, File { text, meanings });
    }
    Ok(written(&files, entry))
}

/// The files as modules.
fn written(files: &BTreeMap<String, File>, entry: &str) -> Modules {
    let mut done = Modules { entry: entry.to_owned(), ..Modules::default() };
    let names = commonjs::names(files);
    for (name, file) in files {
        let mut meanings = file.meanings.clone();
        let source = match &file.text {
            Text::Module { source, lines, .. } => {
                for target in meanings.values_mut().filter(|target| names.contains_key(target.as_str())) {
                    *target = commonjs::front(target);
                }
                if !lines.is_empty() {
                    done.lines.insert(name.clone(), lines.clone());
                }
                source.clone()
            }
            Text::CommonJs { source, says } => commonjs::module(name, source, &says.requires, &file.meanings, files),
            Text::Json(text) => format!("export default JSON.parse({});", json!(text)),
        };
        done.imports.insert(name.clone(), meanings);
        done.modules.insert(name.clone(), source);
    }
    for (name, exports) in names {
        let front = commonjs::front(name);
        done.imports.insert(front.clone(), BTreeMap::from([(name.to_owned(), name.to_owned())]));
        done.modules.insert(front, commonjs::front_module(name, &exports));
    }
    done
}

impl Text {
    /// What a package has in place of a module that it does without in browsers.
    fn empty() -> Self {
        Self::CommonJs { source: String::new(), says: CommonJs::default() }
    }

    fn specifiers(&self) -> impl Iterator<Item = &String> {
        let (imports, requires) = match self {
            Self::Module { imports, .. } => (Some(imports), None),
            Self::CommonJs { says, .. } => (None, Some(&says.requires)),
            Self::Json(_) => (None, None),
        };
        imports.into_iter().flat_map(BTreeMap::keys).chain(requires.into_iter().flatten())
    }

    fn wanted(&self) -> Wanted {
        if matches!(self, Self::CommonJs { .. }) { Wanted::Require } else { Wanted::Import }
    }
}

fn read(reader: &mut Machine, root: &Path, name: &str) -> Result<Text, Error> {
    let path = root.join(name);
    let size = fs::metadata(&path).map_err(|error| Error::file("read", &path, &error))?.len();
    if size > MAX_SOURCE {
        let message = format!("`{name}` is too large: {size} bytes, and at most {MAX_SOURCE} are read");
        return Err(Error::new(ErrorKind::Source, message, "split it into modules"));
    }
    let source = fs::read_to_string(&path).map_err(|error| Error::file("read", &path, &error))?;
    if path.extension().is_some_and(|extension| extension == "json") {
        return match serde_json::from_str::<serde::de::IgnoredAny>(&source) {
            Ok(_) => Ok(Text::Json(source)),
            Err(error) => Err(Error::faults(vec![package::fault(name, &error)])),
        };
    }
    let given = json!({ "name": name, "source": source, "package": resolve::is_of_package(name) });
    let answer = reader.ask(given.to_string().as_bytes());
    let answer = answer.map_err(|stopped| match stopped {
        Stopped::Fuel => Error::new(ErrorKind::Source, format!("`{name}` takes too long to parse"), "simplify it"),
        Stopped::Other(error) => error,
    })?;
    match serde_json::from_slice(&answer).map_err(Error::internal)? {
        Read::Module { source, imports, lines } => Ok(Text::Module { source, imports, lines }),
        Read::CommonJs { source, commonjs: says } => Ok(Text::CommonJs { source, says }),
        Read::Faults { faults } => {
            Err(Error::faults(faults.into_iter().map(|fault| Fault { file: name.to_owned(), ..fault }).collect()))
        }
    }
}
