//! Reads files, never more of them than is of use.
//!
//! In: paths and `-`. Out: a component's bytes, a call's arguments, a list of calls, a configuration and what belongs to it,
//! a secret's value, a person's answer.
//! Invariants: the size is known or bounded before anything is read; only regular files are opened, so that nothing
//! waits for a writer or asks a device, also where a path becomes another thing while it is opened.

use std::fmt;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, BufRead as _, Read};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use rustix::fs::OFlags;
use toolcell::defence::{Defence, stands};
use toolcell::{MAX_COMPONENT, names};

use crate::failure::Failure;
use crate::paste::quoted;
use crate::signature::MAX_SIGNATURE;
use crate::units::Size;

/// Entries of a directory that are compared with a name that is not there.
const MAX_NEIGHBOURS: usize = 1000;

/// What to give where a component is wanted.
const COMPONENT_HINT: &str = "give the file of a component, for instance `calculator.wasm`";
/// What to give where arguments are wanted.
const ARGUMENTS_HINT: &str = "give a file that holds a JSON object, or `-` for standard input";
/// What to give where calls are wanted.
const CALLS_HINT: &str = "give a file that holds a JSON array of calls or one call a line, or `-` for standard input";

/// Bytes of a list of calls: kilobytes for each of 100,000, and what a small machine can keep twice.
const MAX_CALLS_TEXT: u64 = 256 << 20;

/// What to give where a signature is wanted.
const SIGNATURE_HINT: &str = "give the file that `ssh-keygen -Y sign` makes";

/// What to give where a configuration is wanted.
const CONFIG_HINT: &str = "give a TOML file, for instance `toolcell.toml`";

/// Bytes of a configuration: thousands of components.
const MAX_CONFIG: u64 = 4 << 20;
/// Bytes of a lock, which has every definition in it.
const MAX_LOCK: u64 = 64 << 20;
/// Bytes of a line that a person types: more than a terminal passes on.
const MAX_ANSWER: u64 = 16 << 10;
/// Bytes of a secret: far more than any key or token.
const MAX_SECRET: u64 = 64 << 10;
/// The permission of others than the owner to write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Of a directory: only who owns a file replaces it.
const STICKY: u32 = 0o1000;
/// Every permission of group and others.
const OPEN_TO_OTHERS: u32 = 0o077;

/// Whether this process was started to ignore a signal. No, where the system does not tell.
pub(crate) fn ignores(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.unwrap_or_default() >> (signal - 1) & 1 == 1
}

/// The bytes of a component.
pub(crate) fn component(path: &Path) -> Result<Vec<u8>, Failure> {
    let file = open(path, COMPONENT_HINT)?;
    let known = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = Vec::new();
    let read = if known > MAX_COMPONENT { Ok(known) } else { read_bounded(&file, MAX_COMPONENT, &mut bytes) };
    match read.with_context(|| format!("cannot read `{}`", path.display())) {
        Ok(size) if size > MAX_COMPONENT => {
            let (shown, limit) = (path.display(), Size(MAX_COMPONENT));
            let message = if known > MAX_COMPONENT {
                anyhow!("`{shown}` is too large for a component: {}, the limit is {limit}", Size(known).rounded())
            } else {
                anyhow!("`{shown}` is too large for a component: it goes on after the limit of {limit}")
            };
            Err(Failure::file(message, "build in release mode and strip debug info"))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::file(error, COMPONENT_HINT)),
    }
}

/// A call's arguments as text.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// The text; of arguments that are too large only as much as shows it.
    pub(crate) text: String,
    /// The size in words, where they are too large.
    pub(crate) oversize: Option<String>,
}

/// What was typed, or where it points to: `@FILE` or `-`.
pub(crate) fn arguments(typed: &str, limit: u64) -> Result<Arguments, Failure> {
    let mut bytes = Vec::new();
    let (source, size) = if typed == "-" {
        let read = read_bounded(io::stdin().lock(), limit, &mut bytes).context("cannot read standard input");
        let size = read.map_err(|error| Failure::file(error, "pipe a JSON object into it"))?;
        ("standard input".to_owned(), (size > limit).then(|| format!("more than {limit}")))
    } else if let Some(path) = typed.strip_prefix('@').map(Path::new) {
        let source = format!("`{}`", path.display());
        let file = open(path, ARGUMENTS_HINT)?;
        let known = file.metadata().map_or(0, |metadata| metadata.len());
        let read = read_bounded(file, limit, &mut bytes).with_context(|| format!("cannot read {source}"));
        let size = read.map_err(|error| Failure::file(error, ARGUMENTS_HINT))?;
        (source, (size > limit).then(|| if known > limit { known.to_string() } else { format!("more than {limit}") }))
    } else {
        return Ok(Arguments { text: typed.to_owned(), oversize: None });
    };
    // Too large it may be cut within a character: that is shown, and not complained about.
    let bytes = if size.is_some() { String::from_utf8_lossy(&bytes).into_owned().into_bytes() } else { bytes };
    Ok(Arguments { text: text(bytes, &source)?, oversize: size })
}

/// A list of calls as text, and where it comes from, in words.
pub(crate) fn calls(path: &Path) -> Result<(String, String), Failure> {
    let mut bytes = Vec::new();
    let is_input = path == Path::new("-");
    let source = if is_input { "standard input".to_owned() } else { format!("`{}`", path.display()) };
    let read = if is_input {
        read_bounded(io::stdin().lock(), MAX_CALLS_TEXT, &mut bytes)
    } else {
        read_bounded(open(path, CALLS_HINT)?, MAX_CALLS_TEXT, &mut bytes)
    };
    match read.with_context(|| format!("cannot read {source}")) {
        Ok(size) if size > MAX_CALLS_TEXT => {
            let message = anyhow!("{source} is too large for a list of calls: the limit is {}", Size(MAX_CALLS_TEXT));
            Err(Failure::file(message, "make several batches of it"))
        }
        Ok(_) => Ok((text(bytes, &source)?, source)),
        Err(error) => Err(Failure::file(error, CALLS_HINT)),
    }
}

/// The text of a configuration. One that others could have written is not read.
pub(crate) fn config(path: &Path) -> Result<String, Failure> {
    own_text(path, "configuration", MAX_CONFIG, "name a configuration of your own with `--config FILE`")
}

/// The text of a crate's `Cargo.toml`.
pub(crate) fn manifest(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let file = open(path, "name the file of a component instead")?;
    read_bounded(file, MAX_CONFIG, &mut bytes).map_err(|error| not_opened(path, error))?;
    text(bytes, &format!("`{}`", path.display()))
}

/// The text of a lock, if there is one. One that others could have written is not read.
pub(crate) fn lock(path: &Path) -> Result<Option<String>, Failure> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    own_text(path, "lock", MAX_LOCK, "remove it, and approve anew").map(Some)
}

/// The file of a signature, if there is one; of one that is too large, enough to see that.
pub(crate) fn signature(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let file = open(path, SIGNATURE_HINT)?;
    let mut bytes = Vec::new();
    read_bounded(file, MAX_SIGNATURE, &mut bytes).map_err(|error| not_opened(path, error))?;
    Ok(Some(bytes))
}

/// Text that decides what tools may do. It is refused unless this user or root owns it and no other user can write to it.
fn own_text(path: &Path, what: &str, limit: u64, instead: &str) -> Result<String, Failure> {
    let shown = path.display();
    let file = open(path, CONFIG_HINT)?;
    let metadata = file.metadata().map_err(|error| not_opened(path, error))?;
    owned(path, &metadata, instead)?;
    let mut bytes = Vec::new();
    match read_bounded(file, limit, &mut bytes).with_context(|| format!("cannot read `{shown}`")) {
        Ok(size) if size > limit => {
            let message = anyhow!("`{shown}` is too large for a {what}: the limit is {}", Size(limit));
            Err(Failure::file(message, instead))
        }
        Ok(_) => String::from_utf8(bytes)
            .map_err(|_| Failure::file(anyhow!("`{shown}` is not UTF-8 text"), "TOML is UTF-8: convert it first")),
        Err(error) => Err(Failure::file(error, instead)),
    }
}

/// A file or directory of another user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) path: PathBuf,
    /// The owner's number.
    owner: u32,
}

impl Foreign {
    /// The same where it is called otherwise than by its path.
    pub(crate) fn of(&self, what: &str) -> String {
        format!("{what} belongs to another user (uid {})", self.owner)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of(&format!("`{}`", self.path.display())))
    }
}

/// What makes a file that was found another user's: the file, the link that leads to it, or its directory, whose owner can
/// replace it. Such a file is not for this user's tools, as a repository of another user is not for git (`safe.directory`).
pub(crate) fn foreign(path: &Path) -> Option<Foreign> {
    let me = rustix::process::geteuid().as_raw();
    let theirs = |path: &Path, found: io::Result<fs::Metadata>| {
        let owner = found.ok().map(|found| found.uid()).filter(|owner| is_others(*owner, me))?;
        Some(Foreign { path: path.to_owned(), owner })
    };
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = || {
        let directory = target.parent()?;
        let found = fs::metadata(directory).ok().filter(|found| found.mode() & STICKY == 0)?;
        theirs(directory, Ok(found))
    };
    theirs(path, fs::symlink_metadata(path)).or_else(|| theirs(&target, fs::metadata(&target))).or_else(directory)
}

/// Whether an owner is another user, who is not the machine's either.
fn is_others(owner: u32, me: u32) -> bool {
    ![0, me].contains(&owner)
}

/// Refuses a directory in which others could replace files.
pub(crate) fn own_directory(path: &Path, instead: &str) -> Result<(), Failure> {
    let metadata = fs::metadata(path).map_err(|error| not_opened(path, error))?;
    if metadata.mode() & STICKY != 0 { Ok(()) } else { owned(path, &metadata, instead) }
}

/// Refuses what others could have written.
fn owned(path: &Path, metadata: &fs::Metadata, instead: &str) -> Result<(), Failure> {
    let (shown, mode) = (path.display(), metadata.mode());
    if mode & WRITABLE_BY_OTHERS != 0 && stands(Defence::ConfigurationFile) {
        return Err(Failure::file(
            anyhow!(
                "others than you can write to `{shown}` (mode {:04o}), and could grant rights to tools",
                mode & 0o7777
            ),
            format!("`chmod go-w {}`", quoted(&path.to_string_lossy())),
        ));
    }
    if is_others(metadata.uid(), rustix::process::geteuid().as_raw()) {
        let foreign = Foreign { path: path.to_owned(), owner: metadata.uid() };
        return Err(Failure::file(anyhow!("{foreign}, who could grant rights to tools"), instead));
    }
    Ok(())
}

/// A line from the terminal, unless it is at its end.
pub(crate) fn answer() -> Option<String> {
    let mut line = String::new();
    let read = io::stdin().lock().take(MAX_ANSWER).read_line(&mut line);
    read.is_ok_and(|read| read > 0).then_some(line)
}

/// The value of a secret, without its last line's end; or what is wrong with its file, and what to do.
pub(crate) fn secret(path: &Path) -> Result<String, (String, String)> {
    let shown = path.display();
    let failed = |failure: Failure| (failure.message(), failure.hint().to_owned());
    let file = open(path, "give a file that holds the value").map_err(failed)?;
    let metadata = file.metadata().map_err(|error| failed(not_opened(path, error)))?;
    if metadata.mode() & OPEN_TO_OTHERS != 0 && stands(Defence::SecretFile) {
        let mode = metadata.mode() & 0o7777;
        let message = format!("others can read `{shown}` (mode {mode:04o})");
        return Err((message, format!("`chmod go= {}`", quoted(&path.to_string_lossy()))));
    }
    let mut bytes = Vec::new();
    let size = read_bounded(file, MAX_SECRET, &mut bytes).map_err(|error| failed(not_opened(path, error)))?;
    if size > MAX_SECRET {
        return Err((format!("`{shown}` is too large for a secret"), format!("the limit is {}", Size(MAX_SECRET))));
    }
    let mut value =
        String::from_utf8(bytes).map_err(|_| (format!("`{shown}` is not text"), "encode it first".to_owned()))?;
    let end = value.trim_end_matches(['\n', '\r']).len();
    value.truncate(end);
    Ok(value)
}

/// Text of JSON, without the mark of byte order, which is no part of it (RFC 8259, section 8.1).
fn text(bytes: Vec<u8>, source: &str) -> Result<String, Failure> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let error = anyhow::Error::from(error.utf8_error()).context(format!("{source} is not UTF-8 text"));
        Failure::file(error, "JSON is UTF-8: convert it first")
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// Whether the arguments are the name of a file, typed without its `@`.
pub(crate) fn is_forgotten_at(typed: &str) -> bool {
    Path::new(typed).is_file()
}

/// Reads up to one byte more than `limit`; says how many it were.
fn read_bounded(from: impl Read, limit: u64, into: &mut Vec<u8>) -> io::Result<u64> {
    from.take(limit + 1).read_to_end(into).map(|read| read as u64)
}

/// Opens a regular file; `hint` says what to give instead of anything else.
fn open(path: &Path, hint: &str) -> Result<File, Failure> {
    // Asked before it is opened: to open a device may do something.
    let found = fs::metadata(path).map_err(|error| not_opened(path, error))?;
    regular(path, found.file_type(), hint)?;
    open_what_is_there(path, hint)
}

/// The same of a path that was asked about before. What has taken its place since is neither waited for nor read.
fn open_what_is_there(path: &Path, hint: &str) -> Result<File, Failure> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| not_opened(path, error))?;
    let found = file.metadata().map_err(|error| not_opened(path, error))?;
    regular(path, found.file_type(), hint)?;
    Ok(file)
}

/// Refuses what is no regular file.
fn regular(path: &Path, kind: FileType, hint: &str) -> Result<(), Failure> {
    let shown = path.display();
    if kind.is_dir() {
        return Err(Failure::file(anyhow!("`{shown}` is a directory"), "give a file in it"));
    }
    if !kind.is_file() && stands(Defence::CommandFiles) {
        return Err(Failure::file(anyhow!("`{shown}` is {}, not a file", name_of(kind)), hint));
    }
    Ok(())
}

/// What is neither a file nor a directory, in words.
fn name_of(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

fn not_opened(path: &Path, error: io::Error) -> Failure {
    let hint = if error.kind() == io::ErrorKind::NotFound {
        nearest(path)
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        "make it readable: `chmod u+r` if it is yours".to_owned()
    } else {
        "check the path".to_owned()
    };
    Failure::file(anyhow::Error::from(error).context(format!("cannot open `{}`", path.display())), hint)
}

/// The file beside it that was probably meant.
fn nearest(path: &Path) -> String {
    let asked = path.file_name().unwrap_or_default().to_string_lossy();
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(dir) else {
        return format!("there is no directory `{}`", dir.display());
    };
    let names: Vec<_> = entries
        .take(MAX_NEIGHBOURS)
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    let with_ending = format!("{asked}.wasm");
    match names.iter().find(|name| **name == with_ending).map(String::as_str) {
        Some(name) => format!("did you mean `{}`?", path.with_file_name(name).display()),
        None => match names::nearest(&asked, names.iter().map(String::as_str)) {
            Some(name) => format!("did you mean `{}`?", path.with_file_name(name).display()),
            None => "check the path".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests;
