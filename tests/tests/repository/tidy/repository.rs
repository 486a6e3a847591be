//! The files that are checked: all that git tracks or would add.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{CORE, LIBRARY};
use crate::root;

pub(crate) struct File {
    /// The path from the repository's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn repository() -> Vec<File> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut paths = Vec::new();
    match listed {
        Ok(output) if output.status.success() => {
            paths.extend(
                String::from_utf8_lossy(&output.stdout).split_terminator('\0').map(str::to_owned),
            );
        }
        // An archive of the sources, or no git.
        _ => walk(root, "", &mut paths),
    }
    // Without files that are deleted but not committed, and files that are not text.
    let files: Vec<_> = paths
        .into_iter()
        .filter_map(|path| {
            fs::read_to_string(root.join(&path)).ok().map(|text| File { path, text })
        })
        .collect();
    assert!(files.len() > 100, "these are not all files");
    files
}

fn walk(folder: &Path, prefix: &str, paths: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && ![".git", "target"].contains(&name.as_str()) => {
                walk(&entry.path(), &format!("{prefix}{name}/"), paths);
            }
            // A file named `.git` belongs to git too: it tells where the repository of a work tree
            // lies. A link to a file counts as a file.
            Ok(_) if entry.path().is_file() && name != ".git" => {
                paths.push(format!("{prefix}{name}"))
            }
            _ => {}
        }
    }
}

/// Returns files with these paths and texts.
pub(crate) fn files_of<'a, T: Into<String>>(
    texts: impl IntoIterator<Item = (&'a str, T)>,
) -> Vec<File> {
    texts.into_iter().map(|(path, text)| File { path: path.into(), text: text.into() }).collect()
}

pub(crate) fn named<'a>(files: &'a [File], path: &str) -> Option<&'a File> {
    files.iter().find(|file| file.path == path)
}

pub(crate) fn rust(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.path.ends_with(".rs"))
}

/// Returns the files of the core library by module: `engine` for `engine.rs` and for all below
/// `engine/`.
pub(crate) fn core(files: &[File]) -> impl Iterator<Item = (&str, &File)> {
    rust(files).filter_map(|file| {
        let module = file.path.strip_prefix(CORE)?.split(['/', '.']).next()?;
        Some((module, file))
    })
}

/// Returns the files of the library and of the packages that it re-exports.
pub(crate) fn library(files: &[File]) -> impl Iterator<Item = &File> {
    rust(files).filter(|file| LIBRARY.iter().any(|folder| file.path.starts_with(folder)))
}

pub(crate) fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}
