//! Builds a project: detects its language, and writes its component.
//!
//! `toolcell build`, `test` and `dev` call [`build_with`] with a project folder or a single source
//! file. The language follows from the files: `Cargo.toml` means Rust, otherwise the first of a
//! list of main files, such as `src/tool.ts` or `tool.py`. The matching module of `languages`
//! compiles the source. The component, which is the WebAssembly file with the tools, replaces
//! `NAME.wasm` in the folder atomically, so that it is never half written. The result is a
//! [`BuildOutput`] with the path, the tools' names and the warnings. A file that is not WebAssembly
//! is never overwritten; this is checked before the build starts.

pub(crate) mod create;
pub(crate) mod language;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcell::Engine;
use wasm_metadata::AddMetadata;

use crate::languages::js::{modules, snapshot};
use crate::languages::{c, python, rust, tools};
use crate::{Error, ErrorKind, Language, Result};

/// Candidates for the main file of a project, in this order.
const ENTRIES: [(&str, Language); 10] = [
    ("Cargo.toml", Language::Rust),
    ("src/tool.ts", Language::TypeScript),
    ("src/tool.js", Language::JavaScript),
    ("tool.ts", Language::TypeScript),
    ("tool.js", Language::JavaScript),
    ("tool.mjs", Language::JavaScript),
    ("src/tool.py", Language::Python),
    ("tool.py", Language::Python),
    ("src/tool.c", Language::C),
    ("tool.c", Language::C),
];

/// A component that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildOutput {
    /// The file.
    pub component: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// The language of its source.
    pub language: Language,
    /// The names of its tools. Empty for Python and Rust, where the build does not read them.
    pub tools: Vec<String>,
    /// Warnings: of the C compiler, about parts of the tools' schemas that are not enforced, and
    /// about Python packages that do not work in a component. May be empty.
    pub warnings: String,
    /// The duration of the build.
    pub time: Duration,
}

/// Builds the project in a folder, or a single JavaScript, TypeScript, Python or C file `source`,
/// and writes the component to `out`. By default, it is written to `NAME.wasm` in the project's
/// folder, where `NAME` is the folder's name.
///
/// The output of cargo goes to standard error.
///
/// # Errors
/// [`ErrorKind::Usage`] if `source` is a file of another language, [`ErrorKind::File`] if the
/// folder has no project or the component cannot be written, [`ErrorKind::Source`] if the author's
/// source has a fault, [`ErrorKind::Toolchain`] if a compiler is missing or has the wrong version,
/// [`ErrorKind::Internal`] for a bug in this crate.
pub fn build(source: &Path, out: Option<&Path>) -> Result<BuildOutput, Error> {
    build_with(source, out, &|_| {})
}

/// As [`build`], and calls `tell` at the start of each step of a Python or C build with a message
/// for a person: the search for the compiler, and its run.
///
/// # Errors
/// As [`build`].
pub fn build_with(
    source: &Path,
    out: Option<&Path>,
    tell: &dyn Fn(&str),
) -> Result<BuildOutput, Error> {
    let begun = Instant::now();
    let (folder, entry, language) = project(source)?;
    let out = match out {
        Some(out) => out.to_owned(),
        None => folder.join(format!("{}.wasm", name(&folder, source)?)),
    };
    check_output(&out)?;
    let (mut tools, mut warnings) = (Vec::new(), String::new());
    let component = match language {
        Language::JavaScript | Language::TypeScript => {
            let modules = modules::collect(&folder, &entry)?;
            let made = snapshot::snapshot(&modules)?;
            let said = [modules.absent.warnings(), made.warnings].concat();
            (tools, warnings) = (made.tools, said.join("\n"));
            let name = if language == Language::TypeScript { "TypeScript" } else { "JavaScript" };
            described(&made.component, name, &["QuickJS-ng"])?
        }
        Language::C => {
            let (component, said) = c::build(&folder, &entry, source.is_dir(), tell)?;
            check_size(&component)?;
            let hint = "correct the name, `TC_JSON` or `TC_NEEDS` of the tool in `TOOLCELL_TOOL`";
            let (names, unenforced) = tools::names(&component, hint)?;
            let texts = std::iter::once(said).chain(unenforced).filter(|text| !text.is_empty());
            (tools, warnings) = (names, texts.collect::<Vec<_>>().join("\n"));
            described(&component, "C", &[])?
        }
        Language::Python => {
            let component;
            (component, warnings) = python::build(&folder, &entry, tell)?;
            component
        }
        Language::Rust => rust::build(&folder)?,
    };
    let size = check_size(&component)?;
    write(&out, &component)?;
    Ok(BuildOutput { size, component: out, language, tools, warnings, time: begun.elapsed() })
}

/// Returns the path of the component that [`build`] writes for a project.
///
/// # Errors
/// As [`build`].
pub fn component_of(source: &Path) -> Result<PathBuf, Error> {
    let (folder, _, _) = project(source)?;
    Ok(folder.join(format!("{}.wasm", name(&folder, source)?)))
}

/// Returns the folder, the main file, and the language.
fn project(source: &Path) -> Result<(PathBuf, String, Language)> {
    if source.is_file() {
        let folder = source
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let name = source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let language = match source.extension().and_then(|extension| extension.to_str()) {
            Some("ts" | "mts") => Language::TypeScript,
            Some("js" | "mjs") => Language::JavaScript,
            Some("py") => Language::Python,
            Some("c") => Language::C,
            _ => {
                let message =
                    format!("`{}` is not JavaScript, TypeScript, Python or C", source.display());
                return Err(Error::usage(
                    message,
                    "name the folder of a project, or a file `.js`, `.ts`, `.py` or `.c`",
                ));
            }
        };
        return Ok((folder.to_owned(), name.to_owned(), language));
    }
    if let Some((entry, language)) =
        ENTRIES.into_iter().find(|(entry, _)| source.join(entry).is_file())
    {
        return Ok((source.to_owned(), entry.to_owned(), language));
    }
    if !source.try_exists().map_err(Error::file("open", source))? {
        let message = format!("`{}` does not exist", source.display());
        return Err(Error::new(
            ErrorKind::File,
            message,
            "correct the path, or make a project with `toolcell new NAME --language js`",
        ));
    }
    let others: Vec<_> = ENTRIES[1..].iter().map(|(entry, _)| format!("`{entry}`")).collect();
    let message = format!(
        "there is no project in `{}`: no {} or `Cargo.toml`",
        source.display(),
        others.join(", ")
    );
    Err(Error::new(
        ErrorKind::File,
        message,
        "make one with `toolcell new NAME --language js`, or name its folder",
    ))
}

/// Returns the component's name: that of the folder, or of the file that was passed.
fn name(folder: &Path, source: &Path) -> Result<String> {
    let named = if source.is_file() {
        source.with_extension("")
    } else {
        folder.canonicalize().map_err(Error::file("read the folder", folder))?
    };
    Ok(named
        .file_name()
        .map_or_else(|| "tool".to_owned(), |name| name.to_string_lossy().into_owned()))
}

/// Returns the component with a `producers` section: the language of its source, its SDK, and this
/// crate.
fn described(component: &[u8], language: &str, sdk: &[&str]) -> Result<Vec<u8>> {
    let mut added = AddMetadata::default();
    added.language = vec![(language.to_owned(), String::new())];
    added.processed_by =
        vec![(env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
    added.sdk = sdk.iter().map(|sdk| ((*sdk).to_owned(), String::new())).collect();
    added.to_wasm(component).map_err(Error::internal)
}

/// Returns the size of a component. Refuses one that is too large to be loaded.
fn check_size(component: &[u8]) -> Result<u64> {
    let (size, most) = (component.len() as u64, Engine::MAX_COMPONENT);
    if size > most {
        let message = format!("the component has {size} bytes, and at most {most} can be loaded");
        let hint = "use fewer packages or only the parts that the tool needs, and embed less data";
        return Err(Error::source(message, hint));
    }
    Ok(size)
}

/// Refuses, before the build starts, to overwrite a file that is not WebAssembly.
fn check_output(path: &Path) -> Result<()> {
    let Ok(there) = fs::metadata(path) else { return Ok(()) };
    let is_wasm = || {
        let mut start = [0; 4];
        let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == *b"\0asm"
    };
    let problem = if !there.is_file() {
        "is not a file"
    } else if there.len() > 0 && !is_wasm() {
        "is not WebAssembly, and would be replaced by the component"
    } else {
        return Ok(());
    };
    let message = format!("`{}` {problem}", path.display());
    Err(Error::new(ErrorKind::File, message, "name another file for the component with `--output`"))
}

/// Replaces the file atomically, so that it is never half written.
fn write(path: &Path, component: &[u8]) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    // A link of this name, which a project can contain, would lead the write elsewhere.
    let _ = fs::remove_file(&beside);
    let written = fs::File::create_new(&beside)
        .and_then(|mut file| file.write_all(component))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        Error::file("write", path)(error)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn component_is_not_written_through_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let numbered = format!("a.wasm.{}", std::process::id());
        let [other, file, beside] =
            ["other", "a.wasm", &numbered].map(|name| folder.path().join(name));
        fs::write(&other, "old").expect("written");
        for link in [&file, &beside] {
            symlink(&other, link).expect("linked");
        }
        write(&file, b"new").expect("written");
        assert_eq!(fs::read(&other).expect("read"), b"old");
        assert!(fs::symlink_metadata(&file).expect("there").is_file());
        assert_eq!(fs::read(&file).expect("read"), b"new");
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 2);
    }
}
