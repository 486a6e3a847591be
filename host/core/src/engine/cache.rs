//! Compiled components on disk.
//!
//! A compiled component is native code: loading one is running it. So an entry is used only when a
//! keyed MAC over all of it fits, in a directory that no other user can write. It takes so many
//! bytes of disk and no more (`room`). Layout: `KEY.lock` (while a process makes the entry),
//! `KEY.code` (the artifact, mapped as it is), `KEY.tools` (the component's definitions as JSON)
//! and `KEY.mac` (a keyed hash of the code, and a MAC over it, the name and the definitions), whose
//! time tells when the entry was last of use. `KEY` is the component's SHA-256 and the engine's own
//! fingerprint: no author finds a component whose entry has the name of another's, or many that
//! share a place.
//! Invariants: an entry that does not fit is removed and made again, one that cannot be read is let
//! be; nothing here ever fails a load, whatever other processes do in the directory.

mod alone;
mod hash;
mod room;

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::defence::{Defence, stands};
use crate::error::Error;
pub(super) use alone::{Alone, wait};

/// What the MAC's key is derived for: an entry of another layout never fits.
const PURPOSE: &str = "toolcell artefact cache, layout 2";
/// What the key for the hash of the code is derived for.
const CODE_PURPOSE: &str = "toolcell artefact cache, code";
const KEY_BYTES: usize = 32;
/// Bytes of a file with a MAC that are read: one more than it has.
const MAX_MAC: u64 = 2 * blake3::OUT_LEN as u64 + 1;
/// Bytes of a component's definitions that are kept: far more than a component may have.
const MAX_TOOLS: u64 = 64 << 20;
/// Bytes of disk for one directory of artifacts: about a hundred language runtimes, or thousands of
/// ordinary tools.
pub const DEFAULT_CACHE_BYTES: u64 = 4 << 30;
/// How long an entry's time may lag behind its last use: so that it costs a write an hour and not
/// one a load.
const LAG: Duration = Duration::from_hours(1);

/// A directory of artifacts.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    key: [u8; KEY_BYTES],
    code_key: [u8; KEY_BYTES],
    most_bytes: u64,
}

/// One usable entry.
#[derive(Debug)]
pub(super) struct Entry {
    /// The artifact's file, whose content was checked.
    pub(super) code: PathBuf,
    /// The component's definitions as JSON.
    pub(super) tools: Vec<u8>,
    /// While it is held, no process removes the entry to make room.
    pub(super) reading: File,
}

/// What is read of an entry before its code.
struct WithoutCode {
    mac: Vec<u8>,
    tools: Vec<u8>,
    reading: File,
}

impl Cache {
    /// Opens or makes the directory, for so many bytes of all who share it.
    ///
    /// # Errors
    /// [`Error::is_environment`] when it cannot be made private to this user.
    pub(super) fn open(dir: &Path, most_bytes: u64) -> Result<Self, Error> {
        let failed = |what: &str, error: io::Error| {
            Error::cache(format!("{}: {what}", dir.display())).with_source(error)
        };
        if fs::symlink_metadata(dir).is_ok_and(|found| !found.is_dir()) {
            return Err(Error::cache(format!(
                "{} is a file or a link, not a directory",
                dir.display()
            )));
        }
        // One that was there keeps its permissions: it may be more than a cache to others.
        crate::private::directory(dir)
            .map_err(|unfit| Error::cache(format!("{} {unfit}", dir.display())))?;
        let secret =
            secret(dir).map_err(|error| failed("its key cannot be read or made", error))?;
        let [key, code_key] =
            [PURPOSE, CODE_PURPOSE].map(|purpose| blake3::derive_key(purpose, &secret));
        Ok(Self { dir: dir.to_owned(), key, code_key, most_bytes })
    }

    /// The entry of this name, if it is whole and was written with this directory's key.
    pub(super) fn get(&self, name: &str) -> Option<Entry> {
        self.read(name)
            .inspect_err(|error| tracing::debug!(entry = name, %error, "no artifact"))
            .ok()?
    }

    /// The definitions of the entry of this name, without a look at its code: [`get`](Self::get)
    /// may find later that the code is gone or does not fit.
    pub(super) fn tools(&self, name: &str) -> Option<Vec<u8>> {
        let read = || {
            let written = self.without_code(name)?;
            let is_whole = written.fits_tools(self, name) && self.path(name, "code").is_file();
            Ok::<_, io::Error>(is_whole.then_some(written.tools))
        };
        read().ok()?
    }

    /// None where it does not fit. What cannot be read may be whole, or another process's that is
    /// being written.
    fn read(&self, name: &str) -> io::Result<Option<Entry>> {
        let (written, path) = (self.without_code(name)?, self.path(name, "code"));
        let file = open(&path)?;
        let length = file.metadata()?.len();
        let found = hash::keyed(
            &self.code_key,
            file.take(self.most_bytes.max(DEFAULT_CACHE_BYTES)),
            length,
        )?;
        let fits = written.fits_tools(self, name) && written.code_hash() == Some(found);
        if fits || !stands(Defence::ArtifactMac) {
            return Ok(Some(Entry { code: path, tools: written.tools, reading: written.reading }));
        }
        // Shorter MACs are of an earlier version, which made its entries in another way.
        if written.mac.len() != blake3::OUT_LEN {
            tracing::warn!(entry = name, "an artifact does not fit its MAC and is made again");
        }
        self.remove(name);
        Ok(None)
    }

    /// Everything of an entry but its code, which is noted as used.
    fn without_code(&self, name: &str) -> io::Result<WithoutCode> {
        let mut reading = open(&self.path(name, "mac"))?;
        // Not had where a file system has no locks, or where a process removes the entry, which
        // then is not found below.
        let _ = reading.try_lock_shared();
        let (mut mac, mut tools) = (Vec::new(), Vec::new());
        (&mut reading).take(MAX_MAC).read_to_end(&mut mac)?;
        // A byte more than there can be does not fit.
        open(&self.path(name, "tools"))?.take(MAX_TOOLS + 1).read_to_end(&mut tools)?;
        touch(&reading);
        Ok(WithoutCode { mac, tools, reading })
    }

    /// Writes an entry, in place of those that were not used for longest where there is no more
    /// room. The MAC gets its name last: a half-written entry never fits. What cannot be written
    /// replaces nothing.
    pub(super) fn put(&self, name: &str, code: &[u8], tools: &[u8]) -> io::Result<()> {
        let hash = hash::keyed(&self.code_key, code, code.len() as u64)?;
        let mac = [*hash.as_bytes(), *self.mac(name, tools, &hash).as_bytes()].concat();
        let parts = [("code", code), ("tools", tools), ("mac", &mac)];
        if tools.len() as u64 > MAX_TOOLS {
            return Err(io::Error::other("its definitions are too large to be kept"));
        }
        room::make(&self.dir, self.most_bytes, name, &parts.map(|(_, content)| content.len()))?;
        let written = |(part, content)| Ok((part, self.written(content)?));
        let files = parts.into_iter().map(written).collect::<io::Result<Vec<_>>>()?;
        self.remove(name);
        for (part, file) in files {
            file.persist(self.path(name, part))?;
        }
        Ok(())
    }

    /// Whether there is an entry of this name, whole or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name, "mac").exists()
    }

    /// What a process locks while it makes this entry.
    pub(super) fn lock(&self, name: &str) -> PathBuf {
        self.path(name, "lock")
    }

    /// Removes an entry.
    pub(super) fn remove(&self, name: &str) {
        for part in room::PARTS {
            let _ = fs::remove_file(self.path(name, part));
        }
    }

    fn path(&self, name: &str, part: &str) -> PathBuf {
        self.dir.join(format!("{name}.{part}"))
    }

    /// A file with this content and no name that anybody looks for.
    fn written(&self, content: &[u8]) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder
            .prefix(room::UNFINISHED.0)
            .suffix(room::UNFINISHED.1)
            .permissions(Permissions::from_mode(0o600));
        let mut file = builder.tempfile_in(&self.dir)?;
        file.write_all(content)?;
        Ok(file)
    }

    fn mac(&self, name: &str, tools: &[u8], code: &blake3::Hash) -> blake3::Hash {
        let mut mac = blake3::Hasher::new_keyed(&self.key);
        for part in [name.as_bytes(), tools, code.as_bytes()] {
            mac.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        mac.finalize()
    }
}

impl WithoutCode {
    fn part(&self, bytes: std::ops::Range<usize>) -> Option<blake3::Hash> {
        let whole = self.mac.len() == 2 * blake3::OUT_LEN;
        whole.then(|| self.mac.get(bytes)?.try_into().ok().map(blake3::Hash::from_bytes))?
    }

    fn code_hash(&self) -> Option<blake3::Hash> {
        self.part(0..blake3::OUT_LEN)
    }

    /// Whether name and definitions are what was written. `blake3::Hash` compares in constant time.
    fn fits_tools(&self, cache: &Cache, name: &str) -> bool {
        let mac = self.part(blake3::OUT_LEN..2 * blake3::OUT_LEN);
        let found = self.code_hash().map(|code| cache.mac(name, &self.tools, &code));
        (mac.is_some() && mac == found) || !stands(Defence::ArtifactMac)
    }
}

/// The directory's key. One that is not this user's alone, or not whole, is thrown away, and every
/// entry with it; one that cannot be read now is not.
fn secret(dir: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = dir.join("key");
    // Looked at first: a key that appears meanwhile is another process's, and good.
    let was_there = fs::symlink_metadata(&path).is_ok();
    if let Some(secret) = secret_in(open(&path), &path)? {
        return Ok(secret);
    }
    if was_there {
        let _ = fs::remove_file(&path);
    }
    let mut fresh = [0; KEY_BYTES];
    getrandom::fill(&mut fresh).map_err(io::Error::other)?;
    let mut file =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(dir)?;
    file.write_all(&fresh)?;
    // The first process to give the file its name wins; each process reads that one's.
    let _ = file.persist_noclobber(&path);
    let unfit =
        || io::Error::other("the key file still has the wrong owner, permissions or length");
    secret_in(open(&path), &path)?.ok_or_else(unfit)
}

/// Opens a plain file of the directory: never through a link, never waiting for the other end of a
/// pipe.
fn open(path: &Path) -> io::Result<File> {
    crate::private::open(path, crate::grants::Access::Read).map_err(io::Error::from)
}

/// Notes that an entry was of use, unless that was noted lately. A time in the future is the
/// mistake of a clock.
fn touch(mac: &File) {
    let Ok(used) = mac.metadata().and_then(|found| found.modified()) else { return };
    if used.elapsed().ok().is_none_or(|since| since >= LAG) {
        // Where it cannot be noted, the entry goes earlier than it should.
        let _ = mac.set_modified(SystemTime::now());
    }
}

/// The key in what was opened at this path, if no other user could have written or read it.
fn secret_in(opened: io::Result<File>, path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let is_file = || fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let mut file = match opened {
        Ok(file) => file,
        // There may be nothing wrong with it.
        Err(error) if error.kind() != io::ErrorKind::NotFound && is_file() => return Err(error),
        Err(_) => return Ok(None),
    };
    if !crate::private::alone(&file).is_ok_and(|found| found.len() == KEY_BYTES as u64) {
        return Ok(None);
    }
    let mut secret = [0; KEY_BYTES];
    file.read_exact(&mut secret)?;
    Ok(Some(secret))
}

#[cfg(test)]
mod tests;
