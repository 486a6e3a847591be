//! Reads standard input and the files that the command line names, up to a limit for each kind.
//!
//! [`arguments`] returns the arguments of a call, entered on the command line or from `@FILE` or
//! `-` (standard input); of arguments that are too large, only a part is read, and the size is
//! reported. [`calls`] reads the list of a batch, at most 256 MiB; [`manifest`] reads a crate's
//! `Cargo.toml`; [`answer`] reads a line that a person types. A text must be UTF-8; its byte order
//! mark is removed. [`ignores`] says if this process was started with a signal ignored.
//!
//! Not here: opening the files, in [`toolcell_config::paths::files`], which refuses for example a
//! pipe that would block.

use std::fs;
use std::io::{self, BufRead as _, Read as _};
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context as _, anyhow};
use toolcell_config::paths::files::{not_opened, open, read_bounded};

use crate::print::{Failure, Result, Size};

/// The hint for a file of arguments.
const ARGUMENTS_HINT: &str = "give a file that holds a JSON object, or `-` for standard input";
/// The hint for a file of calls.
const CALLS_HINT: &str =
    "give a file that holds a JSON array of calls or one call a line, or `-` for standard input";

/// Bytes of a list of calls: kilobytes for each of 100,000 calls, and small enough for two copies
/// on a small machine.
const MAX_CALLS_TEXT: u64 = 256 << 20;

/// Bytes of a crate's manifest.
const MAX_MANIFEST: u64 = 4 << 20;
/// Bytes of a line that a person types: more than a terminal passes on.
const MAX_ANSWER: u64 = 16 << 10;

/// The signals that this process ignored at the first query, one bit each; none if the system does
/// not say.
static IGNORED: LazyLock<u64> = LazyLock::new(|| {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.unwrap_or_default()
});

/// Returns true if this process was started with the signal ignored; false if the system does not
/// say.
pub(crate) fn ignores(signal: i32) -> bool {
    *IGNORED >> (signal - 1) & 1 == 1
}

/// A call's arguments as text.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// The text. Of arguments that are too large, only the part that was read.
    pub(crate) text: String,
    /// The size in words, if the arguments are too large.
    pub(crate) oversize: Option<String>,
}

/// Returns the typed arguments, or the content of `@FILE` or of standard input for `-`.
pub(crate) fn arguments(typed: &str, limit: u64) -> Result<Arguments> {
    let (path, hint) = match typed.strip_prefix('@').map(Path::new) {
        Some(path) => (Some(path), ARGUMENTS_HINT),
        None if typed == "-" => (None, "pipe a JSON object into it"),
        None => return Ok(Arguments { text: typed.to_owned(), oversize: None }),
    };
    let (mut bytes, read, size, source) = bounded(path, limit, hint)?;
    let mut oversize = None;
    if read > limit {
        let known = size.filter(|size| *size > limit);
        oversize =
            Some(known.map_or_else(|| format!("more than {limit}"), |size| size.to_string()));
        // They may be cut within a character. That is not an error of its own.
        bytes = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
    }
    Ok(Arguments { text: text(bytes, &source)?, oversize })
}

/// Returns the source of the arguments in words.
pub(crate) fn place_of_arguments(typed: Option<&str>) -> String {
    match typed {
        Some("-") => "standard input".to_owned(),
        Some(typed) if typed.starts_with('@') => format!("`{}`", &typed[1..]),
        Some(_) | None => "the text of the arguments".to_owned(),
    }
}

/// Reads a list of calls. Returns its text, and its source in words.
pub(crate) fn calls(path: &Path) -> Result<(String, String)> {
    let file = Some(path).filter(|path| *path != Path::new("-"));
    let (bytes, read, _, source) = bounded(file, MAX_CALLS_TEXT, CALLS_HINT)?;
    if read > MAX_CALLS_TEXT {
        let limit = Size(MAX_CALLS_TEXT);
        let message = anyhow!("{source} is too large for a list of calls: the limit is {limit}");
        return Err(Failure::file(message, "make several batches of it"));
    }
    Ok((text(bytes, &source)?, source))
}

/// Reads a file, or standard input, up to one byte more than `limit`. Returns the bytes, their
/// number, the size of the file, and the source in words.
fn bounded(
    path: Option<&Path>,
    limit: u64,
    hint: &str,
) -> Result<(Vec<u8>, u64, Option<u64>, String)> {
    let mut bytes = Vec::new();
    let (source, size, read) = match path {
        Some(path) => {
            let file = open(path, hint)?;
            let size = file.metadata().ok().map(|file| file.len());
            (format!("`{}`", path.display()), size, read_bounded(file, limit, &mut bytes))
        }
        None => {
            let read = read_bounded(io::stdin().lock(), limit, &mut bytes);
            ("standard input".to_owned(), None, read)
        }
    };
    let read = read.with_context(|| format!("cannot read {source}"));
    let read = read.map_err(|error| Failure::file(error, hint))?;
    Ok((bytes, read, size, source))
}

/// Reads a crate's `Cargo.toml`.
pub(crate) fn manifest(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let file = open(path, "name the file of a component instead")?;
    read_bounded(file, MAX_MANIFEST, &mut bytes).map_err(|error| not_opened(path, error))?;
    text(bytes, &format!("`{}`", path.display()))
}

/// Reads a line from standard input; none at its end.
pub(crate) fn answer() -> Option<String> {
    let mut line = String::new();
    let read = io::stdin().lock().take(MAX_ANSWER).read_line(&mut line);
    read.is_ok_and(|read| read > 0).then_some(line)
}

/// Decodes the text of a JSON file. Removes the byte order mark, which is not part of JSON (RFC
/// 8259, section 8.1).
fn text(bytes: Vec<u8>, source: &str) -> Result<String> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let error =
            anyhow::Error::from(error.utf8_error()).context(format!("{source} is not UTF-8 text"));
        Failure::file(error, "convert it to UTF-8 first")
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}
