//! Compiled components on disk.
//!
//! A compiled component is native code: loading one is running it. So an entry is used only when a keyed MAC over all of
//! it fits, in a directory that nobody else can write.
//! Layout: `KEY.code` (the artefact, mapped as it is), `KEY.tools` (the component's definitions as JSON) and `KEY.mac`
//! (over name and content of both). `KEY` is the component's digest and the engine's own fingerprint.
//! Invariants: an entry that does not fit is removed and made again; nothing here ever fails a load.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::defence::{Defence, stands};
use crate::error::Error;

/// What the MAC's key is derived for: an entry of another layout never fits.
const PURPOSE: &str = "toolcell artefact cache, layout 1";
const KEY_BYTES: usize = 32;

/// A directory of artefacts.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    key: [u8; KEY_BYTES],
}

/// One usable entry.
#[derive(Debug)]
pub(super) struct Entry {
    /// The artefact's file, whose content was checked.
    pub(super) code: PathBuf,
    /// The component's definitions as JSON.
    pub(super) tools: Vec<u8>,
}

impl Cache {
    /// Opens or makes the directory.
    ///
    /// # Errors
    /// [`Error::is_environment`] when it cannot be made private to this user.
    pub(super) fn open(dir: &Path) -> Result<Self, Error> {
        let failed =
            |what: &str, error: io::Error| Error::cache(format!("{}: {what}", dir.display())).with_source(error);
        fs::create_dir_all(dir).map_err(|error| failed("cannot be made", error))?;
        let owner = fs::symlink_metadata(dir).map_err(|error| failed("cannot be read", error))?;
        if !owner.is_dir() {
            return Err(Error::cache(format!("{} is a file or a link, not a directory", dir.display())));
        }
        if owner.uid() != rustix::process::geteuid().as_raw() {
            return Err(Error::cache(format!("{} belongs to another user", dir.display())));
        }
        fs::set_permissions(dir, Permissions::from_mode(0o700))
            .map_err(|error| failed("cannot be made private", error))?;
        let secret = secret(dir).map_err(|error| failed("its key cannot be read or made", error))?;
        Ok(Self { dir: dir.to_owned(), key: blake3::derive_key(PURPOSE, &secret) })
    }

    /// The entry of this name, if it is whole and was written with this directory's key.
    pub(super) fn get(&self, name: &str) -> Option<Entry> {
        let code = self.path(name, "code");
        let tools = read(&self.path(name, "tools")).ok()?;
        let expected: [u8; blake3::OUT_LEN] = read(&self.path(name, "mac")).ok()?.try_into().ok()?;
        let found = open(&code).and_then(|file| self.mac(name, &tools, file)).ok()?;
        // `blake3::Hash` compares in constant time.
        if found == blake3::Hash::from_bytes(expected) || !stands(Defence::ArtefactMac) {
            return Some(Entry { code, tools });
        }
        tracing::warn!(entry = name, "an artefact does not fit its MAC and is made again");
        self.remove(name);
        None
    }

    /// Writes an entry. The MAC comes last: a half-written entry never fits.
    pub(super) fn put(&self, name: &str, code: &[u8], tools: &[u8]) -> io::Result<()> {
        self.remove(name);
        self.write(name, "code", code)?;
        self.write(name, "tools", tools)?;
        let mac = self.mac(name, tools, code)?;
        self.write(name, "mac", mac.as_bytes())
    }

    /// Removes an entry.
    pub(super) fn remove(&self, name: &str) {
        for part in ["mac", "code", "tools"] {
            let _ = fs::remove_file(self.path(name, part));
        }
    }

    fn path(&self, name: &str, part: &str) -> PathBuf {
        self.dir.join(format!("{name}.{part}"))
    }

    fn write(&self, name: &str, part: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(&self.dir)?;
        file.write_all(bytes)?;
        file.persist(self.path(name, part))?;
        Ok(())
    }

    fn mac(&self, name: &str, tools: &[u8], code: impl Read) -> io::Result<blake3::Hash> {
        let mut mac = blake3::Hasher::new_keyed(&self.key);
        for part in [name.as_bytes(), tools] {
            mac.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        mac.update_reader(code)?;
        Ok(mac.finalize())
    }
}

/// The directory's key. One that is not this user's alone, or not whole, is thrown away, and every entry with it.
fn secret(dir: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = dir.join("key");
    // Looked at first: a key that appears meanwhile is another process's, and good.
    let was_there = fs::symlink_metadata(&path).is_ok();
    if let Some(secret) = read_secret(&path) {
        return Ok(secret);
    }
    if was_there {
        let _ = fs::remove_file(&path);
    }
    let mut fresh = [0; KEY_BYTES];
    getrandom::fill(&mut fresh).map_err(io::Error::other)?;
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(dir)?;
    file.write_all(&fresh)?;
    // Whoever comes first wins; everybody reads the winner's.
    let _ = file.persist_noclobber(&path);
    read_secret(&path).ok_or_else(|| io::Error::other("the key does not stay as it was written"))
}

/// Opens a plain file of the directory: never through a link, never waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    crate::private::open(path, crate::grants::Access::Read).map_err(io::Error::from)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The key in a file that nobody but this user could have written or read.
fn read_secret(path: &Path) -> Option<[u8; KEY_BYTES]> {
    let mut file = open(path).ok()?;
    let found = crate::private::alone(&file).ok()?;
    let mut secret = [0; KEY_BYTES];
    (found.len() == KEY_BYTES as u64).then_some(())?;
    file.read_exact(&mut secret).ok()?;
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        assert!(cache.get("a").is_none());
        cache.put("a", b"code", b"tools").unwrap();
        let entry = Cache::open(dir.path()).unwrap().get("a").unwrap();
        assert_eq!((fs::read(entry.code).unwrap(), entry.tools), (b"code".to_vec(), b"tools".to_vec()));
        assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(dir.path().join("key")).unwrap().mode() & 0o777, 0o600);
    }

    /// Any change, to any byte of any part: the entry is gone, and nothing of it was handed out.
    #[test]
    fn a_tampered_entry_is_never_used() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        for part in ["code", "tools", "mac"] {
            for byte in 0..4 {
                cache.put("a", b"code", b"tool").unwrap();
                let path = cache.path("a", part);
                let mut content = fs::read(&path).unwrap();
                content[byte] ^= 1;
                fs::write(&path, content).unwrap();
                assert!(cache.get("a").is_none(), "{part} {byte}");
                assert!(!path.exists(), "{part} is left behind");
            }
        }
    }

    #[test]
    fn entries_cannot_be_swapped_or_moved_between_directories() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, second) = (Cache::open(one.path()).unwrap(), Cache::open(two.path()).unwrap());
        first.put("a", b"code", b"tools").unwrap();
        for part in ["code", "tools", "mac"] {
            fs::copy(first.path("a", part), first.path("b", part)).unwrap();
            fs::copy(first.path("a", part), second.path("a", part)).unwrap();
        }
        assert!(first.get("b").is_none() && second.get("a").is_none() && first.get("a").is_some());
    }

    /// A key that somebody else may know, or that is cut short, is worth nothing, and neither is what was kept with it.
    #[test]
    fn a_key_of_doubtful_origin_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key");
        let doubtful: [fn(&Path); 4] = [
            |key| fs::set_permissions(key, Permissions::from_mode(0o644)).unwrap(),
            |key| fs::write(key, "short").unwrap(),
            |key| {
                fs::remove_file(key).unwrap();
                let fifo = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, key, fifo, rustix::fs::Mode::RUSR, 0).unwrap();
            },
            |key| {
                fs::rename(key, key.with_extension("old")).unwrap();
                std::os::unix::fs::symlink(key.with_extension("old"), key).unwrap();
            },
        ];
        for spoil in doubtful {
            Cache::open(dir.path()).unwrap().put("a", b"code", b"tools").unwrap();
            let before = read(&key).unwrap();
            spoil(&key);
            assert!(Cache::open(dir.path()).unwrap().get("a").is_none());
            assert_ne!(read(&key).unwrap(), before);
            let _ = fs::remove_file(key.with_extension("old"));
        }
    }

    #[test]
    fn a_file_is_not_a_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Cache::open(file.path()).unwrap_err().is_environment());
    }
}
