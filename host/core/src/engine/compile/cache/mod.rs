//! Cache of compiled components on disk, which any number of processes can share.
//!
//! A load asks [`Cache::get`] for an entry by name and gets the path of the native code and the
//! tools' definitions; after it has compiled, it calls `put`. Native code that is loaded can do
//! anything, so an entry is used only if a keyed MAC (a hash with a secret key) over all of it
//! fits, in a directory that no other user can write to. The directory has a bound in bytes
//! (`eviction`). Files of an entry:
//!
//! - `KEY.lock`: exists while a process makes the entry.
//! - `KEY.code`: the native code, which is mapped into memory as it is.
//! - `KEY.tools`: the component's definitions as JSON.
//! - `KEY.mac`: a keyed hash of the code, and a MAC over that hash, the name and the definitions.
//!   Its modification time is the time of the last use.
//!
//! `KEY` is the component's SHA-256 and the engine's fingerprint, so an author cannot make a
//! component whose entry has the name of another component's entry.
//! Invariants: an entry that does not fit is removed and made again. An entry that cannot be read
//! is left alone. Nothing here fails a load, whatever other processes do in the directory.

pub(in crate::engine::compile) mod entries;
mod entry_lock;
mod eviction;
mod hash;

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;
use toolcell_contract::controls::enforced;
use toolcell_contract::error::Error;

use crate::engine::Engine;
use crate::os::private::{self, NotPrivate};
pub(super) use entry_lock::EntryLock;

/// The context from which the MAC's key is derived. An entry of another layout never fits.
const PURPOSE: &str = "toolcell artefact cache, layout 2";
/// The context from which the key for the hash of the code is derived.
const CODE_PURPOSE: &str = "toolcell artefact cache, code";
const KEY_BYTES: usize = 32;
/// Bytes read of a MAC file: one more than a valid one has, so that a longer one does not fit.
const MAX_MAC: u64 = 2 * blake3::OUT_LEN as u64 + 1;
/// Bytes of a component's definitions. A larger entry is not written; it is far more than a
/// component may have.
const MAX_TOOLS: u64 = 64 << 20;
/// The longest time by which an entry's recorded use may lag behind its last use, so that uses cost
/// one write an hour instead of one a load.
const LAG: Duration = Duration::from_hours(1);

/// A directory of artifacts, with its keys and its bound.
#[derive(Debug)]
pub(in crate::engine) struct Cache {
    dir: PathBuf,
    key: [u8; KEY_BYTES],
    code_key: [u8; KEY_BYTES],
    most_bytes: u64,
}

/// One usable entry.
#[derive(Debug)]
pub(super) struct Entry {
    /// The path of the artifact, whose content was checked.
    pub(super) code: PathBuf,
    /// The component's definitions as JSON.
    pub(super) tools: Vec<u8>,
    /// The locked MAC file. While it is held, no process removes the entry to make room.
    pub(super) reading: File,
}

/// The part of an entry that is read before its code.
struct EntryHead {
    /// The hash of the code, and the MAC. `None` if their file has another length.
    hashes: Option<[blake3::Hash; 2]>,
    tools: Vec<u8>,
    reading: File,
}

impl Cache {
    /// Opens or creates the directory, with this bound in bytes for all processes that share it.
    ///
    /// # Errors
    /// [`Error::is_environment`] if it cannot be created, if other users can write to it, or if its
    /// key cannot be read or created.
    pub(in crate::engine) fn open(dir: &Path, most_bytes: u64) -> Result<Self, Error> {
        let shown = dir.display();
        if fs::symlink_metadata(dir).is_ok_and(|found| !found.is_dir()) {
            return Err(Error::cache(format!("{shown} is a file or a link, not a directory")));
        }
        // An existing directory keeps its permissions: it may hold more than a cache.
        private::directory(dir).map_err(|unfit| Error::cache(format!("{shown} {unfit}")))?;
        let secret = secret(dir).map_err(|error| {
            Error::cache(format!("{shown}: its key cannot be read or made")).with_source(error)
        })?;
        let [key, code_key] =
            [PURPOSE, CODE_PURPOSE].map(|purpose| blake3::derive_key(purpose, &secret));
        Ok(Self { dir: dir.to_owned(), key, code_key, most_bytes })
    }

    /// Returns the entry of this name, if it is whole and was written with this directory's key.
    pub(super) fn get(&self, name: &str) -> Option<Entry> {
        self.read(name)
            .inspect_err(|error| tracing::debug!(entry = name, %error, "no artifact"))
            .ok()?
    }

    /// Returns the definitions of the entry of this name, without reading its code:
    /// [`get`](Self::get) may find later that the code is gone or does not fit.
    pub(super) fn tools(&self, name: &str) -> Option<Vec<u8>> {
        let written = self.without_code(name).ok()?;
        let is_whole = written.fits(self, name, None) && self.path(name, "code").is_file();
        is_whole.then_some(written.tools)
    }

    /// Returns `None` if the entry does not fit, and removes it. An entry that cannot be read is
    /// left alone: it may be whole, or another process may be writing it.
    fn read(&self, name: &str) -> io::Result<Option<Entry>> {
        let (written, path) = (self.without_code(name)?, self.path(name, "code"));
        let file = open(&path)?;
        let (length, most) =
            (file.metadata()?.len(), self.most_bytes.max(Engine::DEFAULT_CACHE_BYTES));
        let found = hash::keyed(&self.code_key, file.take(most), length)?;
        if written.fits(self, name, Some(found)) {
            return Ok(Some(Entry { code: path, tools: written.tools, reading: written.reading }));
        }
        tracing::warn!(entry = name, "an artifact does not fit its MAC and is made again");
        self.remove(name);
        Ok(None)
    }

    /// Reads all of an entry but its code, and records the use.
    fn without_code(&self, name: &str) -> io::Result<EntryHead> {
        let mut reading = open(&self.path(name, "mac"))?;
        // Fails on a file system without locks, or if a process is removing the entry; in that case
        // the reads below fail.
        let _ = reading.try_lock_shared();
        let (mut mac, mut tools) = (Vec::new(), Vec::new());
        (&mut reading).take(MAX_MAC).read_to_end(&mut mac)?;
        // Reads one byte beyond the bound, so that larger definitions do not fit.
        open(&self.path(name, "tools"))?.take(MAX_TOOLS + 1).read_to_end(&mut tools)?;
        touch(&reading);
        let hashes = match mac.as_chunks() {
            ([code, mac], []) => Some([*code, *mac].map(blake3::Hash::from_bytes)),
            _ => None,
        };
        Ok(EntryHead { hashes, tools, reading })
    }

    /// Writes an entry. If there is no room, removes the entries that were not used for the longest
    /// time. The MAC gets its name last, so that a half-written entry never fits. If the new files
    /// cannot be written, the old entry of this name stays.
    pub(super) fn put(&self, name: &str, code: &[u8], tools: &[u8]) -> io::Result<()> {
        let hash = hash::keyed(&self.code_key, code, code.len() as u64)?;
        let mac = [*hash.as_bytes(), *self.mac(name, tools, &hash).as_bytes()].concat();
        let parts = [("code", code), ("tools", tools), ("mac", &mac)];
        if tools.len() as u64 > MAX_TOOLS {
            return Err(io::Error::other("its definitions are too large to be kept"));
        }
        eviction::make(&self.dir, self.most_bytes, name, &parts.map(|(_, content)| content.len()))?;
        let written = |(part, content)| Ok((part, self.write_temporary(content)?));
        let files = parts.into_iter().map(written).collect::<io::Result<Vec<_>>>()?;
        self.remove(name);
        for (part, file) in files {
            file.persist(self.path(name, part))?;
        }
        Ok(())
    }

    pub(super) fn remove(&self, name: &str) {
        for part in eviction::PARTS {
            let _ = fs::remove_file(self.path(name, part));
        }
    }

    fn path(&self, name: &str, part: &str) -> PathBuf {
        self.dir.join(format!("{name}.{part}"))
    }

    /// Writes a file with this content under a temporary name.
    fn write_temporary(&self, content: &[u8]) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder
            .prefix(eviction::UNFINISHED.0)
            .suffix(eviction::UNFINISHED.1)
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

impl EntryHead {
    /// Returns true if name, definitions and the hash of the code fit the MAC. `code` is `None` if
    /// the code was not read. `blake3::Hash` compares in constant time.
    fn fits(&self, cache: &Cache, name: &str, code: Option<blake3::Hash>) -> bool {
        let fits = self.hashes.is_some_and(|[written, mac]| {
            mac == cache.mac(name, &self.tools, &written) && code.is_none_or(|code| code == written)
        });
        fits || !enforced!(ArtifactMac)
    }
}

/// Reads or creates the directory's key. A key file that other users can read or write, or that is
/// incomplete, is replaced, which invalidates every entry. One that cannot be read now is kept.
fn secret(dir: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = dir.join("key");
    // Checked first: a key file that appears after this check is another process's, and good.
    let was_there = fs::symlink_metadata(&path).is_ok();
    if let Some(secret) = secret_in(private::key(&path), &path)? {
        return Ok(secret);
    }
    if was_there {
        let _ = fs::remove_file(&path);
    }
    let mut fresh = [0; KEY_BYTES];
    getrandom::fill(&mut fresh).map_err(io::Error::other)?;
    let mut file = private::temporary_file(dir)?;
    file.write_all(&fresh)?;
    // The first process to give the file its name wins; each process then reads that file.
    let _ = file.persist_noclobber(&path);
    let unfit =
        || io::Error::other("the key file still has the wrong owner, permissions or length");
    secret_in(private::key(&path), &path)?.ok_or_else(unfit)
}

/// Opens a plain file of the directory. It follows no link, and does not block on a pipe.
fn open(path: &Path) -> io::Result<File> {
    private::open(path).map_err(io::Error::from)
}

/// Records that an entry was used, unless that was recorded within [`LAG`]. A time in the future
/// comes from a wrong clock, and is replaced.
fn touch(mac: &File) {
    let Ok(used) = mac.metadata().and_then(|found| found.modified()) else { return };
    if used.elapsed().ok().is_none_or(|since| since >= LAG) {
        // If it cannot be recorded, the entry is removed earlier than it should be.
        let _ = mac.set_modified(SystemTime::now());
    }
}

/// Returns the key as read from this path, or `None` if another user could have written or read it.
fn secret_in(
    read: Result<Option<[u8; KEY_BYTES]>, NotPrivate>,
    path: &Path,
) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let is_file = || fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    match read {
        Ok(secret) => Ok(secret),
        // A plain file that cannot be opened now may be good.
        Err(NotPrivate::NotOpened(error) | NotPrivate::Unread(error))
            if error.kind() != io::ErrorKind::NotFound && is_file() =>
        {
            Err(error)
        }
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests;
