//! The store of tenants' API keys, in a file.
//!
//! An operator adds, lists and revokes keys, for example with `toolcell tenant`; a running server
//! looks up the key of each request in the same file. Adding returns a [`NewKey`], which is shown
//! once; the store keeps only its digest. A lookup returns the [`Principal`] of the key. The server
//! reads the file again when it was replaced, so that a change counts from the next request on. If
//! the file cannot be used, the keys that were read before stay valid.
//!
//! The file is `{"version": 1, "keys": [{"id", "tenant", "digest", "created"}]}`, with `created` in
//! seconds since 1970. Only its owner may be able to read it; other permissions are an error. A
//! change replaces the whole file under a lock, so that several processes can share it.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{RwLock, RwLockReadGuard};
use serde::{Deserialize, Serialize};
use toolcell::files::private_file;
use toolcell::tenant::{ApiKey, ApiKeys, KeyDigest};

use crate::artifacts::probe::is_full;
use crate::tenants::principal::Principal;

/// The version of the file's format.
const VERSION: u32 = 1;
/// Bytes of a digest in a key's id: twice as many characters follow `k_`.
const ID_BYTES: usize = 6;
/// The prefix of the id of a key's principal.
pub(super) const KEY_PREFIX: &str = "key:";
/// The most bytes of a tenant's name.
const MAX_TENANT: usize = 128;

/// The store of tenants' API keys, in a file. Cheap to clone; clones share the store.
#[derive(Debug, Clone)]
pub struct ApiKeyStore {
    path: Arc<Path>,
    loaded: Arc<RwLock<Loaded>>,
}

/// The keys as they were last read.
#[derive(Debug)]
struct Loaded {
    /// The file that was examined last. `None`: it did not exist.
    stamp: Option<Stamp>,
    /// True if that file could not be read: the keys are those from before.
    is_stale: bool,
    /// Maps a key to its id.
    keys: ApiKeys,
    principals: HashMap<String, Principal>,
    infos: Vec<KeyInfo>,
}

/// Device, inode, length, mode, and the times of modification and of change. They differ between
/// two files of one name, and after a change of the owner or the mode.
type Stamp = (u64, u64, u64, u32, (i64, i64), (i64, i64));

/// The description of a key. The key itself is not stored.
///
/// # Shape
/// As JSON: `{"id", "tenant", "digest", "created"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KeyInfo {
    /// The id of the key, for example to revoke it.
    pub id: String,
    /// The tenant that the key belongs to.
    pub tenant: String,
    /// The key's digest, as [`KeyDigest`] writes it.
    pub digest: String,
    /// The time of creation, in seconds since 1970.
    pub created: u64,
}

/// A key that was just created. It can be shown only now; the store keeps its digest.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewKey {
    /// The id of the key.
    pub id: String,
    /// The key.
    pub key: ApiKey,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    version: u32,
    keys: Vec<KeyInfo>,
}

/// The reason why the keys cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyStoreError {
    /// The file cannot be read or written, or other users could have read it.
    #[error("the key file {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a list of keys.
    #[error("the key file {path} is not valid: {problem}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The text is not a valid tenant name.
    #[error("`{0}` is not a tenant's name")]
    InvalidTenant(String),
    /// The system has no randomness for a key.
    #[error(transparent)]
    Key(toolcell::Error),
}

impl KeyStoreError {
    /// Returns advice for the user: one line without a period.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::File { path, source } => {
                let (dir, path) = (directory(path).display(), path.display());
                // Other users can read it or write to its directory, it belongs to another user, or
                // it is a link.
                if source.kind() == io::ErrorKind::Other {
                    format!(
                        "make it a plain file of yours that only you can read, in a directory of yours that only you can write to: chmod go-w {dir}; chmod 600 {path}"
                    )
                } else if source.kind() == io::ErrorKind::PermissionDenied {
                    format!(
                        "run toolcell as the user who owns the file and its directory: see `ls -ld {path}`"
                    )
                } else if is_full(source) {
                    format!("make room on the disk of {path}")
                } else if is_place(source) {
                    format!("name a file in a directory that you can write to, not {path}")
                } else {
                    "check the disk and the permissions of the file's directory".into()
                }
            }
            Self::Invalid { .. } => {
                "restore the file from a copy, or move it away and make new keys".into()
            }
            Self::InvalidTenant(_) => {
                format!("write 1 to {MAX_TENANT} characters without control characters")
            }
            Self::Key(error) => error.hint(),
        }
    }
}

impl ApiKeyStore {
    /// Opens the store in this file. A missing file has no keys, and is created by the first
    /// [`add`](Self::add).
    ///
    /// # Errors
    /// [`KeyStoreError::File`] if the file cannot be read, belongs to another user, or other users
    /// can read or write it; [`KeyStoreError::Invalid`] if its content is not a list of keys.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, KeyStoreError> {
        let path = path.as_ref();
        let loaded = Arc::new(RwLock::new(Loaded::read(path)?));
        Ok(Self { path: path.into(), loaded })
    }

    /// Creates a key for this tenant.
    ///
    /// # Errors
    /// [`KeyStoreError`]; the file is then unchanged.
    pub fn add(&self, tenant: &str) -> Result<NewKey, KeyStoreError> {
        let is_name =
            (1..=MAX_TENANT).contains(&tenant.len()) && !tenant.chars().any(char::is_control);
        if !is_name {
            let shown: String = tenant.chars().take(MAX_TENANT).collect();
            return Err(KeyStoreError::InvalidTenant(shown.escape_debug().to_string()));
        }
        let key = ApiKey::generate().map_err(KeyStoreError::Key)?;
        let digest = key.digest().to_string();
        // A prefix of the digest: it reveals nothing about the key.
        let prefix: String = digest.chars().skip("sha256:".len()).take(2 * ID_BYTES).collect();
        let id = format!("k_{prefix}");
        let created =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let info = KeyInfo { id: id.clone(), tenant: tenant.to_owned(), digest, created };
        self.change(|keys| keys.push(info))?;
        Ok(NewKey { id, key })
    }

    /// Revokes the key with this id. It is refused from the next request on. Returns true if there
    /// was one.
    ///
    /// # Errors
    /// [`KeyStoreError`]; the file is then unchanged.
    pub fn revoke(&self, id: &str) -> Result<bool, KeyStoreError> {
        self.change(|keys| {
            let before = keys.len();
            keys.retain(|key| key.id != id);
            keys.len() < before
        })
    }

    /// Lists the keys in order of creation.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn list(&self) -> Result<Vec<KeyInfo>, KeyStoreError> {
        self.reload()?;
        Ok(self.loaded.read().infos.clone())
    }

    /// Reads the file again if it was replaced.
    ///
    /// # Errors
    /// [`KeyStoreError`]; the keys that were read before stay valid.
    pub fn reload(&self) -> Result<(), KeyStoreError> {
        let stamp = stamp(&self.path);
        if self.loaded.read().stamp == stamp {
            return Ok(());
        }
        let mut loaded = self.loaded.write();
        match Loaded::read(&self.path) {
            Ok(read) => *loaded = read,
            Err(error) => {
                // The file is checked and logged once, not at every request.
                (loaded.stamp, loaded.is_stale) = (stamp, true);
                drop(loaded);
                tracing::error!(%error, hint = error.hint(), "the key file was not read; the keys read before stay valid");
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the keys of the current file. If it cannot be read, the keys that were read before
    /// count.
    fn current(&self) -> RwLockReadGuard<'_, Loaded> {
        let _ = self.reload();
        self.loaded.read()
    }

    /// Returns true if the current file could be read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.current().is_stale
    }

    /// Returns true if there is a key, or the file cannot be read.
    pub(crate) fn may_have_keys(&self) -> bool {
        let loaded = self.current();
        loaded.is_stale || !loaded.infos.is_empty()
    }

    /// Returns the principal of a key.
    pub(crate) fn principal_of(&self, shown: &str) -> Option<Principal> {
        let loaded = self.current();
        loaded.keys.tenant_of(shown).and_then(|id| loaded.principals.get(id)).cloned()
    }

    /// Returns true if there is a key with this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.current().principals.contains_key(id)
    }

    /// Changes the file under its lock.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<KeyInfo>) -> T) -> Result<T, KeyStoreError> {
        let path = &*self.path;
        let failed = |source| KeyStoreError::File { path: path.to_owned(), source };
        let _lock = lock(path).map_err(failed)?;
        let mut keys = Loaded::read(path)?.infos;
        let result = change(&mut keys);
        let text = serde_json::to_vec_pretty(&KeyFile { version: VERSION, keys })
            .map_err(|error| failed(error.into()))?;
        private_file::replace(path, &text).map_err(failed)?;
        self.reload()?;
        Ok(result)
    }
}

impl Loaded {
    fn read(path: &Path) -> Result<Self, KeyStoreError> {
        let failed = |source| KeyStoreError::File { path: path.to_owned(), source };
        let invalid = |problem: String| KeyStoreError::Invalid { path: path.to_owned(), problem };
        let stamp = stamp(path);
        let infos = match private_file::read(path) {
            Ok(text) => {
                let KeyFile { version, keys } =
                    serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
                if version != VERSION {
                    let problem =
                        format!("its version is {version}, and this toolcell reads only {VERSION}");
                    return Err(invalid(format!("{problem}: use the toolcell that wrote it")));
                }
                keys
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let mut keys = ApiKeys::new().map_err(KeyStoreError::Key)?;
        let mut principals = HashMap::new();
        for info in &infos {
            let digest: KeyDigest =
                info.digest.parse().map_err(|error| invalid(format!("`{}`: {error}", info.id)))?;
            keys = keys
                .with(&info.id, digest)
                .map_err(|error| invalid(format!("`{}`: {error}", info.id)))?;
            let principal = Principal::new(Some(&info.tenant), &format!("{KEY_PREFIX}{}", info.id));
            if principals.insert(info.id.clone(), principal).is_some() {
                return Err(invalid(format!("two keys have the id `{}`", info.id)));
            }
        }
        Ok(Self { stamp, is_stale: false, keys, principals, infos })
    }
}

/// Returns true if the path is the problem, and not the file.
fn is_place(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, ReadOnlyFilesystem};
    [IsADirectory, NotADirectory, NotFound, ReadOnlyFilesystem].contains(&error.kind())
}

/// Returns a stamp that distinguishes this file from an earlier one of the same name, and from
/// itself with other permissions: a file that was refused for them can be used once they are right.
fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::symlink_metadata(path).ok()?;
    let (written, changed) =
        ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    Some((found.dev(), found.ino(), found.len(), found.mode(), written, changed))
}

/// Returns the directory of a file.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Waits until no other process changes the file.
fn lock(path: &Path) -> io::Result<File> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    // A file in a directory that others can write to is refused, whatever the umask is.
    DirBuilder::new().recursive(true).mode(0o700).create(directory(path))?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path.with_file_name(name))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn tenant(store: &ApiKeyStore, key: &ApiKey) -> Option<String> {
        store.principal_of(key.expose())?.tenant().map(str::to_owned)
    }

    #[test]
    fn other_process_can_add_and_revoke_keys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/keys.json");
        let (server, command) =
            (ApiKeyStore::open(&path).unwrap(), ApiKeyStore::open(&path).unwrap());
        let [first, second] = ["acme", "globex"].map(|tenant| command.add(tenant).unwrap());
        assert_eq!(tenant(&server, &first.key).as_deref(), Some("acme"));
        assert_eq!(tenant(&server, &second.key).as_deref(), Some("globex"));
        let principal = |made: &NewKey| server.principal_of(made.key.expose());
        assert_ne!(principal(&first), principal(&second));
        assert!(command.revoke(&first.id).unwrap() && !command.revoke(&first.id).unwrap());
        assert_eq!(tenant(&server, &first.key), None);
        assert!(tenant(&server, &second.key).is_some());
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(second.key.expose()) && text.contains(&second.id), "{text}");
        for (path, mode) in [(&*path, 0o600), (path.parent().unwrap(), 0o700)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
        }
        assert_eq!(server.list().unwrap().len(), 1);
        assert!(matches!(command.add("a\nb"), Err(KeyStoreError::InvalidTenant(_))));
    }

    #[test]
    fn unwritable_key_file_error_has_hint() {
        use io::ErrorKind::{NotFound, PermissionDenied, QuotaExceeded, StorageFull};
        let path = PathBuf::from("/var/lib/toolcell/keys.json");
        for (kind, hint) in [
            (StorageFull, "make room on the disk of /var/lib/toolcell/keys.json"),
            (QuotaExceeded, "make room on the disk of /var/lib/toolcell/keys.json"),
            (PermissionDenied, "run toolcell as the user who owns the file and its directory"),
            (
                NotFound,
                "name a file in a directory that you can write to, not /var/lib/toolcell/keys.json",
            ),
        ] {
            let error = KeyStoreError::File { path: path.clone(), source: kind.into() };
            assert!(error.hint().starts_with(hint), "{kind:?}: {}", error.hint());
        }
        let error =
            KeyStoreError::File { path: "keys.json".into(), source: io::ErrorKind::Other.into() };
        assert!(error.hint().ends_with("chmod go-w .; chmod 600 keys.json"), "{}", error.hint());
    }

    #[test]
    fn invalid_key_file_leaves_loaded_keys_valid() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        let store = ApiKeyStore::open(&path).unwrap();
        let key = store.add("acme").unwrap().key;
        let good = fs::read(&path).unwrap();
        let of = |tenant: &str| {
            let digest = KeyDigest::of(tenant);
            format!(r#"{{"id": "a", "tenant": "{tenant}", "digest": "{digest}", "created": 0}}"#)
        };
        let same_id = format!(r#"{{"version": 1, "keys": [{}, {}]}}"#, of("acme"), of("globex"));
        for (text, mode, problem) in [
            (b"{".as_slice(), 0o600, "is not valid"),
            (same_id.as_bytes(), 0o600, "two keys have the id `a`"),
            (br#"{"version": 2, "keys": []}"#, 0o600, "its version is 2"),
            (br#"{"version": 1, "keys": [{"id": "a", "tenant": "t", "digest": "x", "created": 0}]}"#, 0o600, "`a`"),
            (&good, 0o644, "can be read or written by others"),
        ] {
            fs::remove_file(&path).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = ApiKeyStore::open(&path).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
            // The keys that were read before go on.
            assert_eq!(tenant(&store, &key).as_deref(), Some("acme"), "{problem}");
            assert!(!store.is_readable(), "{problem}");
        }
        // As the hint of the last one says.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(store.is_readable(), "it is read again");
        assert_eq!(tenant(&store, &key).as_deref(), Some("acme"));
    }
}
