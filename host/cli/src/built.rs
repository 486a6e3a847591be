//! Finds the component that `cargo build` or `toolcell build` wrote, for a project named by its
//! folder.
//!
//! A command whose operand is a folder, or `.`, calls [`component`]. For a folder with a
//! `Cargo.toml` it returns the newest `.wasm` file of the crate below the target folder, else the
//! file that `toolcell build` writes; for another project, only that file; `None` if the folder has
//! no project. A project that is not built is an error with the command that builds it. Nothing is
//! built here. [`is_of_project`] says if a file is the output of a project in a folder above it,
//! that is, if the user is its author.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::anyhow;
use serde::Deserialize;

use crate::config::{HintCommand, quoted};
use crate::os::{env, files};
use crate::print::{Failure, Result};

/// The current folder: the default operand of a command that names no component.
pub(crate) const CURRENT_DIR: &str = ".";

const TARGET: &str = "wasm32-wasip2";
/// Folders of cargo's own profiles.
const PROFILES: [&str; 2] = ["release", "debug"];

/// Folders above a component that may be its project: cargo writes to `target/TARGET/PROFILE`.
const MAX_PARENTS: usize = 4;

/// The parts of a `Cargo.toml` that are read.
#[derive(Deserialize)]
struct Manifest {
    package: Option<Package>,
    #[serde(default)]
    lib: Library,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Library {
    name: Option<String>,
    #[serde(default)]
    crate_type: Vec<String>,
}

/// Returns the component that was built last, if the path is the folder of a project.
///
/// # Errors
/// The project is not built, or its `Cargo.toml` cannot be read.
pub(crate) fn component(path: &Path, again: &HintCommand) -> Result<Option<PathBuf>> {
    let manifest = path.join("Cargo.toml");
    if !manifest.is_file() {
        return of_project(path, again);
    }
    let shown = manifest.display();
    let read: Manifest = toml::from_str(&files::manifest(&manifest)?).map_err(|error| {
        Failure::file(anyhow!("cannot read `{shown}`: {}", error.message()), "correct it")
    })?;
    let Some(package) = read.package else {
        let hint = "name the folder of one of its packages, or the file of a component";
        let message = anyhow!("`{shown}` is a workspace and has no package of its own");
        return Err(Failure::file(message, hint));
    };
    // A library's file has the name of its crate, a program's that of its package.
    let library = read.lib.name.unwrap_or_else(|| package.name.replace('-', "_"));
    let names = [format!("{library}.wasm"), format!("{}.wasm", package.name)];
    let written = || build_output(path).filter(|file| file.is_file());
    newest(path, &names).or_else(written).map(Some).ok_or_else(|| {
        let missing =
            anyhow!("the crate `{}` is not built: `{TARGET}` has no `{}`", package.name, names[0]);
        let is_component = read.lib.crate_type.iter().any(|kind| kind == "cdylib");
        let mut hint = format!("build it: `{}`", build(path));
        if !is_component && !path.join("src/main.rs").is_file() {
            hint = format!(
                "write `crate-type = [\"cdylib\"]` below `[lib]` in `{shown}`, then {hint}"
            );
        }
        Failure::file(missing, hint)
    })
}

/// Returns true if the file is the output of a project in a folder above it: then the user is its
/// author.
pub(crate) fn is_of_project(file: &Path, again: &HintCommand) -> bool {
    let Ok(file) = file.canonicalize() else { return false };
    let built = |folder: &Path| {
        component(folder, again).ok().flatten().and_then(|built| built.canonicalize().ok())
    };
    file.ancestors().skip(1).take(MAX_PARENTS).any(|folder| built(folder).as_ref() == Some(&file))
}

/// Returns the component of a project that is not a crate.
fn of_project(path: &Path, again: &HintCommand) -> Result<Option<PathBuf>> {
    let Some(file) = build_output(path) else { return Ok(None) };
    if file.is_file() {
        return Ok(Some(file));
    }
    let folder = path.to_string_lossy();
    let operand = Some(&*folder).filter(|folder| *folder != CURRENT_DIR);
    let build = again.command("build", &[], operand.as_slice());
    let missing = anyhow!("the project is not built: there is no `{}`", file.display());
    Err(Failure::file(missing, format!("build it: {build}")))
}

/// Returns the file that `toolcell build` writes, if the path is the folder of a project.
fn build_output(path: &Path) -> Option<PathBuf> {
    let file = toolcell_author::component_of(path).ok().filter(|_| path.is_dir())?;
    // Without the leading `./`, as a user types it.
    Some(file.strip_prefix(CURRENT_DIR).map(Path::to_owned).unwrap_or(file))
}

/// Returns the command that builds the crate.
fn build(path: &Path) -> String {
    let command = format!("cargo build --release --target {TARGET}");
    if path.as_os_str().is_empty() || path == Path::new(CURRENT_DIR) {
        return command;
    }
    format!("{command} --manifest-path {}", quoted(&path.join("Cargo.toml").to_string_lossy()))
}

/// Returns the most recently written file with one of these names, below the target folder of the
/// crate or of its workspace.
fn newest(path: &Path, names: &[String]) -> Option<PathBuf> {
    let folder = path.canonicalize().ok()?;
    let targets: Vec<PathBuf> = match env::cargo_target_dir() {
        Some(target) => vec![target],
        None => {
            let crates = folder.ancestors().filter(|folder| folder.join("Cargo.toml").is_file());
            crates.map(|folder| folder.join("target")).collect()
        }
    };
    let files =
        targets.iter().flat_map(|target| PROFILES.map(|profile| target.join(TARGET).join(profile)));
    let files = files.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let written = |file: PathBuf| -> Option<(SystemTime, PathBuf)> {
        let metadata = file.metadata().ok().filter(|metadata| metadata.is_file())?;
        Some((metadata.modified().ok()?, file))
    };
    files.filter_map(written).max().map(|(_, file)| relative_to_crate(path, &folder, file))
}

/// Returns the file relative to the crate's folder as it was named, if it lies there: a
/// configuration with such a path can be moved.
fn relative_to_crate(path: &Path, folder: &Path, file: PathBuf) -> PathBuf {
    match file.strip_prefix(folder) {
        Ok(rest) if path == Path::new(CURRENT_DIR) => rest.to_owned(),
        Ok(rest) => path.join(rest),
        Err(_) => file,
    }
}
