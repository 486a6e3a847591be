//! Walks a folder and searches the names and the text of its files.
//!
//! Invariants: the order is always the same; files, bytes, depth and matches are bounded; symbolic
//! links are not followed; entries that cannot be read are counted and do not end the search.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use toolcell_guest::Failure;

use crate::pattern;

/// Most directory entries that one search looks at. Bounds the time of a call.
const MAX_ENTRIES: usize = 50_000;
/// Deepest folder. Deeper than people nest folders; bounds the walk.
const MAX_DEPTH: usize = 32;
/// Bytes. Larger files are not searched for text.
const MAX_FILE: u64 = 1 << 20;
/// Bytes that one search reads at most.
const MAX_READ: u64 = 64 << 20;
/// Characters of a line that are shown at most.
const MAX_LINE: usize = 300;

/// The search criteria.
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
pub(crate) struct Matches {
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
    pub(crate) fn search(&self, root: &Path, folder: &str) -> Result<Matches, Failure> {
        let start = if folder.is_empty() { root.to_owned() } else { root.join(folder) };
        let first = entries(&start).map_err(|error| {
            let hint = format!(
                "ask the operator to grant this tool a directory with the name `{}`",
                root.display()
            );
            Failure::new(format!("`{}` cannot be searched: {error}; {hint}", start.display()))
        })?;
        let mut found = Matches::default();
        let (mut seen, mut read) = (0, 0);
        // A stack: entries are pushed in reverse, so that the first comes out first.
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

    /// Searches one file. Returns the number of bytes that count as read.
    fn look(&self, path: &Path, root: &Path, length: u64, found: &mut Matches) -> u64 {
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

/// Returns the paths in a folder, sorted.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)?.take(MAX_ENTRIES) {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Reads a file's text, at most [`MAX_FILE`] bytes, even if the file grows meanwhile.
fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
