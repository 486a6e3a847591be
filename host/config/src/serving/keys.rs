//! The key-value stores of tools: one for each configuration, in the user's state directory, opened
//! at the first use.
//!
//! An engine gets a [`Keys`] as its store and calls it when a tool reads or writes a key. It opens
//! a SQLite database then, so a command whose tools do not use keys creates none. A failure is not
//! cached; the next operation tries again. Tools of one configuration neither see nor wait for the
//! keys of another.
//!
//! Layout: `projects/NAME-HASH/store.db` below the state directory, with the name of the
//! configuration's folder and a hash of its path. Calls without a configuration use
//! `projects/none`.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use toolcell::kv::{Entry, KeyStore, Namespace, Page, SqliteStore, StoreError};

/// The directory below the state directory.
const DIRECTORY: &str = "projects";
/// The store of calls without a configuration.
const NONE: &str = "none";
/// Characters of a folder's name in the name of its store.
const MAX_NAME_CHARS: usize = 32;
/// Bytes of the hash of the path.
const HASH: usize = 8;

/// A store that is opened at the first use.
pub struct Keys {
    state: Option<PathBuf>,
    project: String,
    store: OnceLock<SqliteStore>,
}

impl Keys {
    /// Returns the store of this configuration below this state directory. Without a state
    /// directory each operation fails.
    pub fn new(state: Option<&Path>, config: Option<&Path>) -> Self {
        Self {
            state: state.map(Path::to_owned),
            project: config.map_or_else(|| NONE.to_owned(), project),
            store: OnceLock::new(),
        }
    }

    fn store(&self) -> Result<&SqliteStore, StoreError> {
        let open = || match &self.state {
            Some(state) => {
                SqliteStore::open(&state.join(DIRECTORY).join(&self.project)).map_err(|error| {
                    StoreError::Unavailable(format!("{error}; hint: {}", error.hint()))
                })
            }
            None => Err(StoreError::Unavailable(
                "no place for the key-value store: neither `XDG_STATE_HOME` nor `HOME` is set; \
                 hint: pass `--state-dir DIR`"
                    .into(),
            )),
        };
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        // A failure is not cached: the next operation tries again. If two threads open it at once,
        // one store is kept.
        let opened = open()?;
        Ok(self.store.get_or_init(|| opened))
    }
}

impl Keys {
    /// Returns the unique and readable directory name of a configuration, below a directory that
    /// all configurations share.
    pub(crate) fn project(config: &Path) -> String {
        project(config)
    }
}

/// Returns the unique and readable name of a configuration's store.
fn project(config: &Path) -> String {
    let folder = config.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let shown = folder
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c))
        .take(MAX_NAME_CHARS)
        .collect::<String>();
    let hash = Sha256::digest(config.as_os_str().as_bytes());
    let hash: String = hash.iter().take(HASH).map(|byte| format!("{byte:02x}")).collect();
    format!("{shown}-{hash}")
}

impl KeyStore for Keys {
    fn get(&self, namespace: &Namespace, key: &str) -> Result<Option<Entry>, StoreError> {
        self.store()?.get(namespace, key)
    }

    fn set(
        &self,
        namespace: &Namespace,
        key: &str,
        data: &[u8],
        ttl: Option<Duration>,
    ) -> Result<u64, StoreError> {
        self.store()?.set(namespace, key, data, ttl)
    }

    fn delete(&self, namespace: &Namespace, key: &str) -> Result<bool, StoreError> {
        self.store()?.delete(namespace, key)
    }

    fn compare_and_swap(
        &self,
        namespace: &Namespace,
        key: &str,
        expected: Option<u64>,
        data: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Option<u64>, StoreError> {
        self.store()?.compare_and_swap(namespace, key, expected, data, ttl)
    }

    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Option<&str>,
        most: usize,
    ) -> Result<Page, StoreError> {
        self.store()?.list(namespace, prefix, cursor, most)
    }
}
