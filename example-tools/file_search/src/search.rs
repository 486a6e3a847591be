//! The walk through a folder, and the look into its files.
//!
//! Invariants: always the same order; bounded in files, bytes, depth and matches; no symbolic link
//! is followed; what cannot be read is counted and does not end the search.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use toolcell_guest::Failure;

use crate::pattern;

/// Most entries of directories that one search looks at: what a call has time for.
const MAX_ENTRIES: usize = 50_000;
/// Deepest folder: deeper than a person nests, and no endless walk.
const MAX_DEPTH: usize = 32;
/// Largest file that is searched for a text, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Most bytes that one search reads.
const MAX_READ: u64 = 64 << 20;
/// Longest part of a line that is shown, in characters.
const MAX_LINE: usize = 300;

/// What to find.
pub(crate) struct Query<'a> {
    pub(crate) text: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) ignore_case: bool,
    pub(crate) most: usize,
}

/// A file, or a line in it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Match {
    /// From the directory that was granted.
    pub(crate) path: String,
    /// Counted from 1. Null where only a name was wanted.
    pub(crate) line: Option<usize>,
    /// The line, cut after 300 characters.
    pub(crate) text: Option<String>,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Found {
    /// By path, then by line.
    pub(crate) matches: Vec<Match>,
    /// How many files of the wanted name were looked at.
    pub(crate) files: usize,
    /// How many files and folders could not be looked into: too large, no text, too deep, or not
    /// readable.
    pub(crate) unread: usize,
    /// Whether there may be more: a limit was reached.
    pub(crate) stopped: bool,
}

impl Query<'_> {
    /// Searches a folder below the root.
    pub(crate) fn search(&self, root: &Path, folder: &str) -> Result<Found, Failure> {
        let start = if folder.is_empty() { root.to_owned() } else { root.join(folder) };
        let first = entries(&start).map_err(|error| {
            let hint = format!(
                "ask the operator to grant this tool a directory with the name `{}`",
                root.display()
            );
            Failure::new(format!("`{}` cannot be searched: {error}; {hint}", start.display()))
        })?;
        let mut found = Found::default();
        let (mut seen, mut read) = (0, 0);
        // Last in, first out: what comes first is pushed last.
        let mut waiting: Vec<(PathBuf, usize)> =
            first.into_iter().rev().map(|path| (path, 1)).collect();
        while let Some((path, depth)) = waiting.pop() {
            seen += 1;
            if found.matches.len() >= self.most || seen > MAX_ENTRIES || read > MAX_READ {
                found.stopped = true;
                break;
            }
            match fs::symlink_metadata(&path).map(|about| (about.file_type(), about.len())) {
                Ok((kind, _)) if kind.is_dir() => match entries(&path) {
                    Ok(below) if depth < MAX_DEPTH => {
                        waiting.extend(below.into_iter().rev().map(|path| (path, depth + 1)));
                    }
                    Ok(_) | Err(_) => found.unread += 1,
                },
                Ok((kind, length)) if kind.is_file() => {
                    read += self.look(&path, root, length, &mut found)
                }
                Ok(_) => {}
                Err(_) => found.unread += 1,
            }
        }
        Ok(found)
    }

    /// Looks at one file. Gives the bytes that it read.
    fn look(&self, path: &Path, root: &Path, length: u64, found: &mut Found) -> u64 {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !self
            .name
            .is_none_or(|wanted| pattern::matches(&self.folded(wanted), &self.folded(&name)))
        {
            return 0;
        }
        found.files += 1;
        let shown = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
        let Some(wanted) = self.text else {
            found.matches.push(Match { path: shown, line: None, text: None });
            return 0;
        };
        if length > MAX_FILE {
            found.unread += 1;
            return 0;
        }
        let Ok(text) = text_of(path) else {
            found.unread += 1;
            return length;
        };
        let wanted = self.folded(wanted);
        for (index, line) in
            text.lines().enumerate().filter(|(_, line)| self.folded(line).contains(&wanted))
        {
            if found.matches.len() >= self.most {
                found.stopped = true;
                break;
            }
            let text = line.chars().take(MAX_LINE).collect();
            found.matches.push(Match {
                path: shown.clone(),
                line: Some(index + 1),
                text: Some(text),
            });
        }
        length
    }

    fn folded(&self, text: &str) -> String {
        if self.ignore_case { text.to_lowercase() } else { text.to_owned() }
    }
}

/// What lies in a folder, in the order of names.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)?.take(MAX_ENTRIES) {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// A file's text, also of one that grows while it is read.
fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
