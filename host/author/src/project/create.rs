//! Creates a new project: a small one that works, from templates in this crate.
//!
//! `toolcell new` calls [`create`] with a folder and a language. It writes a source file with one
//! tool, test cases with their schema, a README and files for editors, and returns the list of
//! files. The last part of the folder's path is the project's name and replaces `NAME` in the
//! templates. A Rust project also gets a copy of the guest SDK and a `Cargo.lock`, so that it
//! builds with the versions that belong to this program. The folder must be new or empty, and no
//! existing file is overwritten.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind as IoError, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use regex::Regex;
use rust_embed::RustEmbed;

use crate::languages::{c, python, venv};
use crate::{Error, ErrorKind, Language, Result};

/// A file of a template: its path, and its text with `NAME` for the project's name.
type File = (&'static str, &'static str);

const SHARED: [File; 2] = [
    ("cases.yaml", include_str!("../templates/cases.yaml")),
    ("cases.schema.json", include_str!("../templates/cases.schema.json")),
];
const EDITOR: File = ("toolcell.d.ts", include_str!("../templates/toolcell.d.ts"));
const JAVASCRIPT: [File; 4] = [
    ("src/tool.js", include_str!("../templates/js/tool.js")),
    ("jsconfig.json", include_str!("../templates/tsconfig.json")),
    (".gitignore", "*.wasm\nnode_modules/\n"),
    EDITOR,
];
const TYPESCRIPT: [File; 4] = [
    ("src/tool.ts", include_str!("../templates/ts/tool.ts")),
    ("tsconfig.json", include_str!("../templates/tsconfig.json")),
    (".gitignore", "*.wasm\nnode_modules/\n"),
    EDITOR,
];
const PYTHON: [File; 3] = [
    ("tool.py", include_str!("../templates/python/tool.py")),
    // Pyright and Pylance look here for the types of modules that are not installed.
    ("typings/toolcell/__init__.pyi", include_str!("../templates/python/toolcell.pyi")),
    (".gitignore", "*.wasm\n.venv/\n__pycache__/\n"),
];
const RUST: [File; 3] = [
    ("src/lib.rs", include_str!("../templates/rust/lib.rs")),
    ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.txt")),
    (".gitignore", "/target\n*.wasm\n"),
];
const C: [File; 4] = [
    ("src/tool.c", include_str!("../templates/c/tool.c")),
    ("toolcell.h", c::HEADER),
    ("compile_flags.txt", include_str!("../templates/c/compile_flags.txt")),
    (".gitignore", "*.wasm\n.venv/\n"),
];
/// The folder of the SDK in a Rust project.
const RUST_SDK: &str = "toolcell-guest";
/// The packages of the SDK. Cargo refuses another package of the same name.
const RUST_PACKAGES: [&str; 2] = [RUST_SDK, "toolcell-guest-macros"];
/// The lock file of a Rust project, with the versions that this repository tests. `NAME` and
/// `VERSION` stand for the project's name and the version of the SDK.
const RUST_LOCK: &str = include_str!("../templates/rust/project.lock");
const README: &str = include_str!("../templates/README.md");
/// The set-up section of a project's README, with `INSTALL` for the command that installs the
/// compiler.
const PYTHON_SETUP: &str = include_str!("../templates/python/setup.md");
const C_SETUP: &str = include_str!("../templates/c/setup.md");
/// The names that a project can have.
const NAME: &str = "^[a-z][a-z0-9_-]{0,63}$";

/// The guest SDK for Rust. A project gets a copy, so that it builds with the version that belongs
/// to this program.
#[derive(RustEmbed)]
#[folder = "rust"]
struct RustSdk;

/// A project that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewProject {
    /// Its folder.
    pub directory: PathBuf,
    /// Its files, relative to the folder. A name that ends in `/` is a folder whose files are not
    /// the author's.
    pub files: Vec<String>,
}

/// Creates a project in `folder`, which is new or empty. The project gets the folder's name.
///
/// # Errors
/// [`ErrorKind::Usage`] for a name with other characters than `a-z`, `0-9`, `-` and `_`, for a path
/// without a name at its end, and for the name of the SDK in Rust; [`ErrorKind::File`] if the
/// folder is not empty or cannot be written to. Files that were written before an error stay.
pub fn create(folder: &Path, language: Language) -> Result<NewProject, Error> {
    let Some(name) = folder.file_name() else {
        let message = format!("the name of a new folder is expected, not `{}`", folder.display());
        return Err(Error::usage(message, "give the project a name: `toolcell new greeter`"));
    };
    let name = &*name.to_string_lossy();
    if !Regex::new(NAME).is_ok_and(|allowed| allowed.is_match(name)) {
        let message = format!("`{}` cannot be the name of a project", name.escape_debug());
        let hint = "use at most 64 characters of a-z, 0-9, - and _, and begin with a letter";
        return Err(Error::usage(message, hint));
    }
    if language == Language::Rust && RUST_PACKAGES.contains(&name) {
        let message = format!(
            "`{name}` cannot be the name of a project in Rust: a package of the SDK in it has this name"
        );
        return Err(Error::usage(
            message,
            "choose another name: `toolcell new greeter --language rust`",
        ));
    }
    is_free(folder)?;
    let own: &[File] = match language {
        Language::JavaScript => &JAVASCRIPT,
        Language::TypeScript => &TYPESCRIPT,
        Language::Python => &PYTHON,
        Language::Rust => &RUST,
        Language::C => &C,
    };
    // The source comes first.
    let (source, _) = own[0];
    let mut files = Vec::new();
    let readme = README.replace("SOURCE", source).replace("SETUP\n", &setup(language));
    for (path, text) in own.iter().chain(&SHARED).copied().chain([("README.md", readme.as_str())]) {
        // The header has macros with a parameter `NAME`.
        let text = if path == "toolcell.h" { text.to_owned() } else { text.replace("NAME", name) };
        write(&folder.join(path), &text)?;
        files.push(path.to_owned());
    }
    if language == Language::Rust {
        write_rust_sdk(&folder.join(RUST_SDK))?;
        write(&folder.join("Cargo.lock"), &rust_lock(name))?;
        files.extend(["Cargo.lock".to_owned(), format!("{RUST_SDK}/")]);
    }
    files.sort();
    Ok(NewProject { directory: folder.to_owned(), files })
}

/// Returns the text on the programs that have to be installed first.
fn setup(language: Language) -> String {
    let (text, package) = match language {
        Language::Python => (PYTHON_SETUP, python::PACKAGE),
        Language::C => (C_SETUP, c::PACKAGE),
        Language::JavaScript | Language::TypeScript | Language::Rust => return String::new(),
    };
    text.replace("INSTALL", &venv::install(Path::new("."), package)) + "\n"
}

/// Returns the lock file with its packages in the order that cargo uses.
fn rust_lock(name: &str) -> String {
    let text = RUST_LOCK.replace("NAME", name).replace("VERSION", env!("CARGO_PKG_VERSION"));
    let mut parts: Vec<_> = text.trim_end().split("\n\n").collect();
    // The first part is not a package.
    parts[1..].sort_unstable();
    parts.join("\n\n") + "\n"
}

fn write_rust_sdk(folder: &Path) -> Result<()> {
    for path in RustSdk::iter() {
        let Some(file) = RustSdk::get(&path) else { continue };
        // Cargo does not package a folder that has a manifest of its own, so the manifest is stored
        // as `.txt`.
        let name = path.strip_suffix(".txt").unwrap_or(&path);
        let text = String::from_utf8_lossy(&file.data);
        let text = if name == path {
            text
        } else {
            text.replace("VERSION", env!("CARGO_PKG_VERSION")).into()
        };
        write(&folder.join(name), &text)?;
    }
    Ok(())
}

/// Returns an error if the folder exists and is not empty.
fn is_free(folder: &Path) -> Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let message =
                format!("the folder `{}` is not empty, and was not changed", folder.display());
            Err(Error::new(
                ErrorKind::File,
                message,
                "choose another name, or empty the folder first",
            ))
        }
        Err(error) if error.kind() == IoError::NotFound => Ok(()),
        Err(error) => Err(Error::file("make the folder", folder)(error)),
    }
}

/// Writes a file, which must not exist yet.
fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // A configuration in a folder that a group can write to is refused, whatever the umask is.
    let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
    made.map_err(Error::file("make the folder", folder))?;
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::file("write", path))
}
