//! Collects the modules of a JavaScript or TypeScript tool: the first one, and what it imports.
//!
//! Invariant: no file outside of the project's folder is read, symbolic links included.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::machine::{Compiled, Machine, Stopped};
use crate::{Error, ErrorKind, Fault};

/// Reads modules and strips types: `guest-sdk/js/typescript`, built by `cargo xtask js-runtime`.
const READER: &[u8] = include_bytes!("../runtime/modules.wasm");
/// The reader.
static COMPILED: Compiled = Compiled::new();
/// The module that the runtime brings.
const SDK: &str = "toolcell";
/// What an import may leave out, or say in place of `.ts`.
const ENDINGS: [&str; 3] = [".ts", ".js", ".mjs"];
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

/// What the reader answers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Module {
        source: String,
        imports: BTreeSet<String>,
        #[serde(default)]
        lines: Vec<u32>,
    },
    Faults {
        faults: Vec<Fault>,
    },
}

/// Reads the module `entry` of a project and all that it imports.
pub(crate) fn collect(project: &Path, entry: &str) -> Result<Modules, Error> {
    let root = project.canonicalize().map_err(|error| Error::file("read the folder", project, &error))?;
    let mut reader = Machine::start(READER, &COMPILED)?;
    let mut found = Modules { entry: entry.to_owned(), ..Modules::default() };
    let mut open = vec![entry.to_owned()];
    while let Some(name) = open.pop() {
        if found.modules.contains_key(&name) {
            continue;
        }
        let (source, imports, lines) = read(&mut reader, &root, &name)?;
        let mut meanings = BTreeMap::new();
        for specifier in imports.into_iter().filter(|specifier| specifier != SDK) {
            let target = resolve(&root, &name, &specifier)?;
            open.push(target.clone());
            meanings.insert(specifier, target);
        }
        if !lines.is_empty() {
            found.lines.insert(name.clone(), lines);
        }
        found.imports.insert(name.clone(), meanings);
        found.modules.insert(name, source);
    }
    Ok(found)
}

type Module = (String, BTreeSet<String>, Vec<u32>);

fn read(reader: &mut Machine, root: &Path, name: &str) -> Result<Module, Error> {
    let path = root.join(name);
    let size = fs::metadata(&path).map_err(|error| Error::file("read", &path, &error))?.len();
    if size > MAX_SOURCE {
        let message = format!("`{name}` is too large: {size} bytes, and at most {MAX_SOURCE} are read");
        return Err(Error::new(ErrorKind::Source, message, "split it into modules"));
    }
    let source = fs::read_to_string(&path).map_err(|error| Error::file("read", &path, &error))?;
    let answer = reader.ask(json!({ "name": name, "source": source }).to_string().as_bytes());
    let answer = answer.map_err(|stopped| match stopped {
        Stopped::Fuel => Error::new(ErrorKind::Source, format!("`{name}` takes too long to read"), "simplify it"),
        Stopped::Other(error) => error,
    })?;
    match serde_json::from_slice(&answer).map_err(Error::internal)? {
        Read::Module { source, imports, lines } => Ok((source, imports, lines)),
        Read::Faults { faults } => {
            Err(Error::faults(faults.into_iter().map(|fault| Fault { file: name.to_owned(), ..fault }).collect()))
        }
    }
}

/// The path in the project of what a module imports.
fn resolve(root: &Path, from: &str, specifier: &str) -> Result<String, Error> {
    let fault = |message: String, hint: &str| Err(Error::new(ErrorKind::Source, format!("{from}: {message}"), hint));
    if !specifier.starts_with("./") && !specifier.starts_with("../") {
        let message = format!("cannot import `{specifier}`: it is not a path");
        return fault(message, "import files of the project by path, `./name.js` for instance, and `toolcell`");
    }
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let Some(wanted) = plain(&folder.join(specifier)) else {
        return fault(format!("`{specifier}` is outside of the project"), "move the file into the project's folder");
    };
    let stem = wanted.strip_suffix(".js").or(wanted.strip_suffix(".mjs")).unwrap_or(&wanted);
    let others = ENDINGS.iter().flat_map(|ending| [format!("{stem}{ending}"), format!("{wanted}/index{ending}")]);
    let Some(target) = std::iter::once(wanted.clone()).chain(others).find(|name| root.join(name).is_file()) else {
        return fault(format!("there is no file `{wanted}`, which it imports"), "correct the path, or write the file");
    };
    match root.join(&target).canonicalize() {
        Ok(real) if real.starts_with(root) => Ok(target),
        _ => fault(format!("`{specifier}` is outside of the project"), "copy the file into the project's folder"),
    }
}

/// The path without `.` and `..`. `None` if it leaves the project.
fn plain(path: &Path) -> Option<String> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    plain.to_str().map(str::to_owned)
}
