//! Where tools keep their keys: a store in the user's state directory, opened when a tool first asks for it.
//!
//! Invariants: a command whose tools keep no keys neither makes nor locks the store.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use toolcell::Error;
use toolcell::kv::{DiskStore, Entry, KeyStore, Namespace, Page, StoreError};

use crate::env;

/// The directory below the state directory.
const DIRECTORY: &str = "keys";
/// How long another command may have the store: most take far less, and a call has a deadline of its own.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is asked whether that one is done.
const PAUSE: Duration = Duration::from_millis(10);

/// A store that is opened when it is needed.
pub(crate) struct Keys {
    directory: Option<PathBuf>,
    store: OnceLock<Result<DiskStore, StoreError>>,
}

impl Keys {
    /// The store below this directory, or below the user's own.
    pub(crate) fn new(state: Option<&Path>) -> Self {
        let directory = state.map(Path::to_owned).or_else(env::state_dir).map(|state| state.join(DIRECTORY));
        Self { directory, store: OnceLock::new() }
    }

    fn store(&self) -> Result<&DiskStore, StoreError> {
        let open = || match &self.directory {
            Some(directory) => {
                in_turn(directory).map_err(|error| StoreError::Unavailable(format!("{error}; hint: {}", error.hint())))
            }
            None => Err(StoreError::Unavailable(
                "neither `XDG_STATE_HOME` nor `HOME` says where it would be; hint: say it with `--state-dir DIR`"
                    .into(),
            )),
        };
        self.store.get_or_init(open).as_ref().map_err(Clone::clone)
    }
}

/// Opens it once no other command has it open. Blocks.
fn in_turn(directory: &Path) -> Result<DiskStore, Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        match DiskStore::open(directory) {
            Err(error) if error.is_in_use() && Instant::now() < until => std::thread::sleep(PAUSE),
            opened => return opened,
        }
    }
}

impl KeyStore for Keys {
    fn get(&self, namespace: &Namespace, key: &str) -> Result<Option<Entry>, StoreError> {
        self.store()?.get(namespace, key)
    }

    fn set(&self, namespace: &Namespace, key: &str, data: &[u8], ttl: Option<Duration>) -> Result<u64, StoreError> {
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

    fn list(&self, namespace: &Namespace, prefix: &str, cursor: Option<&str>, most: usize) -> Result<Page, StoreError> {
        self.store()?.list(namespace, prefix, cursor, most)
    }
}
