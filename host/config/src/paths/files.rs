//! Reads files, with a limit on their size.
//!
//! Each kind of file has a function: [`component`], [`configuration`], [`lock`], [`signature`],
//! [`secret`] and so on. It takes a path and returns the content, or an error with a hint such as
//! the most similar name. The size is known or bounded before anything is read. Only regular files
//! are opened, so that opening neither waits for a writer nor triggers a device, even if the path
//! is replaced while it is opened.
//!
//! Files that decide about the rights of tools are refused if other users could have written them,
//! and a secret if other users can access it. [`foreign`] tells which part of a found file belongs
//! to another user.

use std::fmt;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use toolcell::controls::enforced;
use toolcell::{Engine, names};

use super::atomic_file::directory_of;
use crate::error::Error;
use crate::text::hint_command::quoted;
use crate::text::units::Size;

/// Entries of a directory that are compared with a missing name.
const MAX_NEIGHBOURS: usize = 1000;

/// The hint where a component is expected.
const COMPONENT_HINT: &str = "give the file of a component, for instance `calculator.wasm`";
/// The hint where a signature is expected.
const SIGNATURE_HINT: &str = "give the file that `ssh-keygen -Y sign` makes";

/// The hint where a configuration is expected.
const CONFIG_HINT: &str = "give a TOML file, for instance `toolcell.toml`";
/// The hint where an issuer's keys are expected.
const ISSUER_HINT: &str = "give the file that holds the issuer's JWK set";
/// The hint where certificate authorities are expected.
const AUTHORITIES_HINT: &str =
    "give a file of certificates, each a block that begins with `-----BEGIN CERTIFICATE-----`";
/// The hint for a path without a better one.
const CHECK_PATH: &str = "check the path";
/// The hint for a lock that cannot be used.
const LOCK_HINT: &str = "remove it, and approve anew";

/// Maximum bytes of a configuration. Enough for thousands of components.
const MAX_CONFIG: u64 = 4 << 20;
/// Maximum bytes of a lock, which contains every definition.
const MAX_LOCK: u64 = 64 << 20;
/// Maximum bytes of a secret. Far larger than any key or token.
const MAX_SECRET: u64 = 64 << 10;
/// Maximum bytes of a signature's file. A usual one has about 300.
pub(crate) const MAX_SIGNATURE: u64 = 4 << 10;
/// The write permissions of group and others.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The sticky bit: only its owner can replace a file in such a directory.
const STICKY: u32 = 0o1000;
/// All permissions of group and others.
const OPEN_TO_OTHERS: u32 = 0o077;

/// Reads a component.
pub fn component(path: &Path) -> Result<Vec<u8>, Error> {
    let file = open(path, COMPONENT_HINT)?;
    let hint = "build in release mode and strip debug info";
    read(path, &file, "component", Engine::MAX_COMPONENT, hint)
}

/// Reads a configuration. Refuses a file that other users could have written.
pub fn configuration(path: &Path) -> Result<String, Error> {
    let instead = "name a configuration of your own with `--config FILE`";
    own_text(path, "configuration", MAX_CONFIG, CONFIG_HINT, instead)
}

/// Reads the public keys of an issuer. Refuses a file that other users could have written.
pub(crate) fn issuer_keys(path: &Path) -> Result<String, Error> {
    let instead = "give the issuer's JWK set as a file of yours that no other user can write to";
    own_text(path, "JWK set", MAX_CONFIG, ISSUER_HINT, instead)
}

/// Reads trusted certificate authorities. Refuses a file that other users could have written.
pub fn authorities(path: &Path) -> Result<String, Error> {
    let instead = "give a file of certificates of yours that no other user can write to";
    own_text(path, "file of certificates", MAX_CONFIG, AUTHORITIES_HINT, instead)
}

fn is_absent(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Reads a lock, if the file exists. Refuses a file that other users could have written.
pub fn lock(path: &Path) -> Result<Option<String>, Error> {
    if is_absent(path) {
        return Ok(None);
    }
    own_text(path, "lock", MAX_LOCK, LOCK_HINT, LOCK_HINT).map(Some)
}

/// Reads a signature, if the file exists. Of a file that is too large, returns just enough to
/// detect that.
pub fn signature(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    if is_absent(path) {
        return Ok(None);
    }
    let file = open(path, SIGNATURE_HINT)?;
    let mut bytes = Vec::new();
    read_bounded(file, MAX_SIGNATURE, &mut bytes).map_err(|error| not_opened(path, error))?;
    Ok(Some(bytes))
}

/// Reads text that decides about the rights of tools. Refuses a file unless this user or root owns
/// it and no other user can write to it. `hint` is for a path that is not a regular file, `instead`
/// for a file of another user.
fn own_text(
    path: &Path,
    what: &str,
    limit: u64,
    hint: &str,
    instead: &str,
) -> Result<String, Error> {
    let file = open(path, hint)?;
    let metadata = file.metadata().map_err(|error| not_opened(path, error))?;
    owned(path, &metadata, instead)?;
    let bytes = read(path, &file, what, limit, hint)?;
    utf8(path, bytes, "convert the file to UTF-8")
}

/// Reads a file of at most `limit` bytes. `what` names its kind, and `hint` is for one that is too
/// large, which is not read.
fn read(path: &Path, file: &File, what: &str, limit: u64, hint: &str) -> Result<Vec<u8>, Error> {
    let known = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = Vec::new();
    if known <= limit {
        // One byte more than the file has, so that the read that finds the end does not grow the
        // buffer.
        bytes.reserve_exact(known as usize + 1);
        read_bounded(file, limit, &mut bytes).map_err(|error| {
            Error::caused(format!("cannot read `{}`", path.display()), error, CHECK_PATH)
        })?;
    }
    let size = known.max(bytes.len() as u64);
    if size > limit {
        let (shown, size, limit) = (path.display(), Size(size).rounded(), Size(limit));
        let message = format!("`{shown}` is too large for a {what}: {size}, the limit is {limit}");
        return Err(Error::file(message, hint));
    }
    Ok(bytes)
}

fn utf8(path: &Path, bytes: Vec<u8>, hint: &str) -> Result<String, Error> {
    String::from_utf8(bytes)
        .map_err(|_| Error::file(format!("`{}` is not UTF-8 text", path.display()), hint))
}

/// A file or directory of another user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignFile {
    /// The file, the link or the directory.
    pub path: PathBuf,
    /// The owner's user id.
    pub(crate) owner: u32,
}

impl ForeignFile {
    /// Describes it under another name than its path.
    pub fn of(&self, what: &str) -> String {
        format!("{what} belongs to another user (uid {})", self.owner)
    }
}

impl fmt::Display for ForeignFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of(&format!("`{}`", self.path.display())))
    }
}

/// Returns the part of a found file that belongs to another user: the file, the link that leads to
/// it, or its directory, whose owner can replace it. Such a file must not control this user's
/// tools, as a repository of another user does not control git (`safe.directory`).
pub fn foreign(path: &Path) -> Option<ForeignFile> {
    let me = rustix::process::geteuid().as_raw();
    let theirs = |path: &Path, found: io::Result<fs::Metadata>| {
        let owner =
            found.ok().map(|found| found.uid()).filter(|owner| is_untrusted_owner(*owner, me))?;
        Some(ForeignFile { path: path.to_owned(), owner })
    };
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = || {
        let directory = target.parent()?;
        let found = fs::metadata(directory).ok().filter(|found| found.mode() & STICKY == 0)?;
        theirs(directory, Ok(found))
    };
    theirs(path, fs::symlink_metadata(path))
        .or_else(|| theirs(&target, fs::metadata(&target)))
        .or_else(directory)
}

/// Returns true if the owner is neither this user nor root.
fn is_untrusted_owner(owner: u32, me: u32) -> bool {
    ![0, me].contains(&owner)
}

/// Refuses a directory in which other users could replace files.
pub(crate) fn own_directory(path: &Path, instead: &str) -> Result<(), Error> {
    let metadata = fs::metadata(path).map_err(|error| not_opened(path, error))?;
    if metadata.mode() & STICKY != 0 { Ok(()) } else { owned(path, &metadata, instead) }
}

/// Refuses a file or directory that other users could have written.
fn owned(path: &Path, metadata: &fs::Metadata, instead: &str) -> Result<(), Error> {
    let (shown, mode) = (path.display(), metadata.mode());
    if mode & WRITABLE_BY_OTHERS != 0 && enforced!(ConfigurationFile) {
        return Err(Error::file(
            format!(
                "other users can write to `{shown}` (mode {:04o}), and could use it to grant rights",
                mode & 0o7777
            ),
            format!("`chmod go-w {}`", quoted(&path.to_string_lossy())),
        ));
    }
    if is_untrusted_owner(metadata.uid(), rustix::process::geteuid().as_raw()) {
        let foreign = ForeignFile { path: path.to_owned(), owner: metadata.uid() };
        return Err(Error::file(format!("{foreign}, who could use it to grant rights"), instead));
    }
    Ok(())
}

/// Reads the value of a secret, without its final line break. The error is the problem with the
/// file, and a hint.
pub fn secret(path: &Path) -> Result<String, (String, String)> {
    let mut value = secret_text(path).map_err(|failure| (failure.to_string(), failure.hint()))?;
    let end = value.trim_end_matches(['\n', '\r']).len();
    value.truncate(end);
    Ok(value)
}

fn secret_text(path: &Path) -> Result<String, Error> {
    let hint = "give a file that holds the value";
    let file = open(path, hint)?;
    let mode = file.metadata().map_err(|error| not_opened(path, error))?.mode();
    if mode & OPEN_TO_OTHERS != 0 && enforced!(SecretFile) {
        let message =
            format!("other users have access to `{}` (mode {:04o})", path.display(), mode & 0o7777);
        let hint = format!("`chmod go= {}`", quoted(&path.to_string_lossy()));
        return Err(Error::file(message, hint));
    }
    let bytes = read(path, &file, "secret", MAX_SECRET, hint)?;
    utf8(path, bytes, "encode the value, for instance as base64")
}

/// Reads up to one byte more than `limit`, and returns the number of bytes read.
pub fn read_bounded(from: impl Read, limit: u64, into: &mut Vec<u8>) -> io::Result<u64> {
    from.take(limit + 1).read_to_end(into).map(|read| read as u64)
}

/// Opens a regular file. `hint` is for a path that is not one.
pub fn open(path: &Path, hint: &str) -> Result<File, Error> {
    // Checked before opening, because opening a device may have an effect.
    let found = fs::metadata(path).map_err(|error| not_opened(path, error))?;
    regular(path, found.file_type(), hint)?;
    open_what_is_there(path, hint)
}

/// As [`open`], for a path whose type was checked. If the path was replaced since, the new file is
/// not waited for and not read.
fn open_what_is_there(path: &Path, hint: &str) -> Result<File, Error> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| not_opened(path, error))?;
    let found = file.metadata().map_err(|error| not_opened(path, error))?;
    regular(path, found.file_type(), hint)?;
    Ok(file)
}

/// Refuses a path that is not a regular file.
fn regular(path: &Path, kind: FileType, hint: &str) -> Result<(), Error> {
    let shown = path.display();
    if kind.is_dir() {
        return Err(Error::file(format!("`{shown}` is a directory"), "give a file in it"));
    }
    if !kind.is_file() && enforced!(CommandFiles) {
        return Err(Error::file(format!("`{shown}` is {}, not a file", name_of(kind)), hint));
    }
    Ok(())
}

/// Names the type of a path that is neither a file nor a directory.
fn name_of(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// Returns the error of a file that cannot be written.
pub(crate) fn not_written(path: &Path, error: io::Error) -> Error {
    let message = format!("cannot write `{}`", path.display());
    Error::caused(message, error, "check that its directory is writable and its disk is not full")
}

/// Returns the error for a file that cannot be opened, with the most similar name beside it.
pub fn not_opened(path: &Path, error: io::Error) -> Error {
    let shown = path.display();
    if error.kind() != io::ErrorKind::NotFound {
        let hint = if error.kind() == io::ErrorKind::PermissionDenied {
            "make it readable: `chmod u+r` if it is yours"
        } else {
            CHECK_PATH
        };
        return Error::caused(format!("cannot open `{shown}`"), error, hint);
    }
    if let Ok(led) = fs::read_link(path) {
        let message = format!("`{shown}` is a link to `{}`, which does not exist", led.display());
        return Error::caused(message, error, "correct the link, or name the file itself");
    }
    let is_address = |path: &&str| path.starts_with("https://") || path.starts_with("http://");
    let hint = match path.to_str().filter(is_address) {
        Some(address) => format!(
            "a component is a file on this machine: download it first, `curl -fLO {}`",
            quoted(address)
        ),
        None => nearest(path),
    };
    Error::caused(format!("`{shown}` does not exist"), error, hint)
}

/// Returns a hint with the most similar name in the same directory.
fn nearest(path: &Path) -> String {
    let asked = path.file_name().unwrap_or_default().to_string_lossy();
    let dir = directory_of(path);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return format!("there is no directory `{}`", dir.display());
        }
        Err(_) => return CHECK_PATH.to_owned(),
    };
    let names: Vec<_> = entries
        .take(MAX_NEIGHBOURS)
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    let with_ending = format!("{asked}.wasm");
    let known = || names.iter().map(String::as_str);
    let near = known().find(|name| *name == with_ending);
    match near.or_else(|| names::nearest(&asked, known())) {
        Some(name) => format!("did you mean `{}`?", path.with_file_name(name).display()),
        None => CHECK_PATH.to_owned(),
    }
}

#[cfg(test)]
mod tests;
