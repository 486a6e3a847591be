//! `toolcell init`: writes a commented `toolcell.toml` that names the components of its folder.
//!
//! [`init`] looks at the `.wasm` files of the folder. A component, and a program for WASI preview 1
//! (an older interface of WebAssembly programs), gets a section under its file's name, without
//! grants; one that does not describe its tools itself also gets the key `as`. The most used
//! settings follow as examples that are commented out. The file is created and never overwritten;
//! the next commands are printed. The new file is a valid configuration, and so is each of its
//! examples.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::json;
use toolcell::component::Inspection;
use toolcell::grants::toml_text;
use toolcell::{Definition, Engine};
use toolcell_config::text::quoted;

use crate::args::InitArgs;
use crate::config;
use crate::host::Cli;
use crate::os::env;
use crate::print::{ExitStatus, Failure, Result, counted};

/// The file, with `COMPONENTS` for the sections of components and `NAME` for the component of the
/// examples.
const TEMPLATE: &str = include_str!("../init.toml");
/// The component of the examples if the folder has none.
const EXAMPLE: &str = "# No component was found in this folder. This is how one is named:\n#[components.notes]\n#path = \"notes.wasm\"\n";
/// The first bytes of a component in binary form. A core module has another version.
const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// A file that gets a section.
struct FoundFile {
    /// The path in the configuration.
    file: String,
    /// The value of `as`, if the file does not describe its tools itself: `functions` or `command`.
    kind: Option<&'static str>,
}

/// Writes the file, and prints the next commands.
pub(crate) fn init(cli: &Cli, args: &InitArgs) -> Result<ExitStatus> {
    let Cli { printer, global, .. } = cli;
    let path =
        global.config.clone().or_else(env::config).unwrap_or_else(|| PathBuf::from(config::NAME));
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = components(folder).map_err(|error| {
        let message =
            anyhow!(error).context(format!("cannot read the folder `{}`", folder.display()));
        Failure::file(message, "make the folder first, or correct the path")
    })?;
    let config = match &global.config {
        Some(path) => format!(" --config {}", quoted(&path.to_string_lossy())),
        None => String::new(),
    };
    let next = ["check", "approve", "serve"].map(|command| format!("toolcell {command}{config}"));
    write(&path, &text(&found), &next[0])?;
    if args.json {
        let files: BTreeMap<_, _> = found.iter().map(|(name, found)| (name, &found.file)).collect();
        printer.json(
            &json!({ "file": path.to_string_lossy(), "components": files, "next_commands": next }),
        )?;
        return Ok(ExitStatus::Ok);
    }
    printer.note(format!("wrote `{}` with {}", path.display(), counted(found.len(), "component")));
    for (name, FoundFile { file, kind }) in &found {
        let kind = kind.map(|kind| format!(", used as `{kind}`")).unwrap_or_default();
        printer.labelled("component", format!("{name}: {file}{kind}"));
    }
    if found.is_empty() {
        printer.hint("name a component in it, as its example shows");
    }
    printer.labelled("next", "type these commands");
    printer.text(&next.join("\n"))?;
    Ok(ExitStatus::Ok)
}

/// Writes a file that does not exist yet. The hint for one that exists names the command `check`.
fn write(path: &Path, text: &str, check: &str) -> Result<()> {
    let written = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).and_then(
        |mut file| {
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            if written.is_err() {
                // An incomplete configuration would block the next `init`.
                let _ = fs::remove_file(path);
            }
            written
        },
    );
    written.map_err(|error| {
        let shown = path.display();
        if error.kind() == ErrorKind::AlreadyExists {
            let hint = format!("edit it, or move it away first; `{check}` validates it");
            return Failure::file(anyhow!("`{shown}` exists, and was not changed"), hint);
        }
        let message = anyhow!(error).context(format!("cannot write `{shown}`"));
        let hint = "use a folder that you can write to, or name the file with `--config FILE`";
        Failure::file(message, hint)
    })
}

/// Returns the folder's components and its programs for WASI preview 1, by name. A configuration
/// accepts a file once, so links to a file that is there already are left out.
fn components(folder: &Path) -> std::io::Result<BTreeMap<String, FoundFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.extend(component(&entry?.path()));
    }
    files.sort_by(|one, other| one.file.cmp(&other.file));
    let mut there = BTreeSet::new();
    files.retain(|found| {
        fs::canonicalize(folder.join(&found.file)).map_or(true, |file| there.insert(file))
    });
    let mut found = BTreeMap::new();
    for file in files {
        found.insert(name(&file.file, &found), file);
    }
    Ok(found)
}

/// Returns the file if it is a component or a program; none if it cannot be read.
fn component(path: &Path) -> Option<FoundFile> {
    let file = path.file_name()?.to_str()?.to_owned();
    path.extension().filter(|extension| *extension == "wasm")?;
    // Reading a pipe of this name would wait for its writer.
    let is_readable = |file: &fs::Metadata| file.is_file() && file.len() <= Engine::MAX_COMPONENT;
    fs::metadata(path).ok().filter(is_readable)?;
    let bytes = fs::read(path).ok()?;
    let kind = Inspection::of(&bytes).ok().and_then(|examination| examination.proposal());
    // A damaged component is included too: `check` reports its fault.
    (bytes.starts_with(&COMPONENT) || kind.is_some()).then_some(FoundFile { file, kind })
}

/// Returns the name for a file's component: the stem of the file's name in the characters of
/// component names, with a number if the name is taken.
fn name(file: &str, taken: &BTreeMap<String, FoundFile>) -> String {
    let stem = file.strip_suffix(".wasm").unwrap_or(file);
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let plain: String = stem
        .chars()
        .map(|char| if is_plain(&char) { char } else { '-' })
        .take(Definition::MAX_NAME)
        .collect();
    // A word that begins with `-` is an option of a command.
    let plain = plain.trim_start_matches('-');
    let plain = if plain.is_empty() { "component" } else { plain };
    let numbered = (2..).map(|number| {
        let end = format!("-{number}");
        format!("{}{end}", &plain[..plain.len().min(Definition::MAX_NAME - end.len())])
    });
    let mut names = std::iter::once(plain.to_owned()).chain(numbered);
    names.find(|name| !taken.contains_key(name)).unwrap_or_default()
}

/// Returns the text of the configuration.
fn text(found: &BTreeMap<String, FoundFile>) -> String {
    let section = |(name, FoundFile { file, kind }): (&String, &FoundFile)| {
        let kind = kind.map(|kind| format!("as = {}\n", toml_text(kind))).unwrap_or_default();
        format!("[components.{name}]\npath = {}\n{kind}", toml_text(file))
    };
    let sections: Vec<_> = found.iter().map(section).collect();
    let about = "# Components by the name under which they run. A path is relative to this file.\n";
    let sections = if sections.is_empty() {
        EXAMPLE.to_owned()
    } else {
        format!("{about}{}", sections.join("\n"))
    };
    let name = found.keys().next().map_or("notes", String::as_str);
    // `NAME` is replaced first: a component may be called `COMPONENTS`.
    TEMPLATE.replace("NAME", name).replacen("COMPONENTS\n", &format!("{sections}\n"), 1)
}
