//! Whether a configuration that nobody named may be used: whoever made the folder may not be who works in it.
//!
//! In: where it was found, its text and its lock's, the state directory. Out: an [`Approval`].
//! Invariants: what is approved is a content at a place; the record is the user's own, never in the folder itself; a record
//! that cannot be read is none; a record is written as a whole or not at all.
//! Layout: `approvals/store.db` below the state directory, with a record for each configuration by the hash of its path.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use sha2::{Digest as _, Sha256};
use toolcell::kv::{DiskStore, KeyStore as _, Namespace, Quota, StoreError};

use crate::failure::Failure;
use crate::{env, files};

/// The directory below the state directory.
const DIRECTORY: &str = "approvals";
/// Where earlier versions had a file for each record, and what that is called when they were carried over.
const OLD_DIRECTORY: &str = "approved";
const CARRIED_OVER: &str = "approved.old";
/// What to do where it cannot be kept.
const ELSEWHERE: &str =
    "name a directory of your own with `--state-dir DIR`, or the configuration with `--config FILE`";

/// Whether a configuration may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Approval {
    /// It was named, or approved.
    #[default]
    Given,
    /// Nobody approved what it says now.
    Missing,
}

/// A configuration that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// Without links.
    path: PathBuf,
    /// What it says now.
    pub(crate) text: String,
    /// What was approved of its components: the text that is judged is the one that is used.
    pub(super) lock: Option<String>,
    /// Where the user's state is, if there is such a place.
    state: Option<PathBuf>,
}

/// A record that is to be kept.
pub(crate) struct Record {
    store: DiskStore,
    name: String,
    content: String,
}

impl Record {
    /// Keeps it, in place of the one before.
    pub(crate) fn put(self) -> Result<(), Failure> {
        let kept = self.store.set(&namespace(), &self.name, self.content.as_bytes(), None);
        kept.map(drop).map_err(unkept)
    }
}

impl Found {
    pub(super) fn new(path: &Path, text: &str, lock: Option<String>, state: Option<&Path>) -> Self {
        let state = state.map(Path::to_owned).or_else(env::state_dir);
        Self { path: path.to_owned(), text: text.to_owned(), lock, state }
    }

    /// Whether this user approved it as it is.
    pub(super) fn approval(&self) -> Approval {
        let now = self.record_of(self.lock.as_deref().unwrap_or_default());
        let is_given = self.kept().is_some_and(|kept| kept == now);
        if is_given { Approval::Given } else { Approval::Missing }
    }

    /// Whether this user approved the lock, be it beside another text of the configuration: what is in it is no news then.
    pub(crate) fn is_lock_known(&self) -> bool {
        let head = self.head(self.lock.as_deref().unwrap_or_default());
        self.kept().is_some_and(|kept| kept.starts_with(&head))
    }

    /// What it said when this user approved it last.
    pub(crate) fn before(&self) -> Option<String> {
        let kept = self.kept()?;
        kept.split_once('\n').map(|(_, text)| text.to_owned()).filter(|text| !text.is_empty())
    }

    /// The record of what was approved last.
    fn kept(&self) -> Option<String> {
        let state = self.state.as_ref()?;
        let kept = match [DIRECTORY, OLD_DIRECTORY].iter().any(|dir| state.join(dir).is_dir()) {
            true => records(state).and_then(|store| store.get(&namespace(), &self.name()).map_err(unkept)),
            false => Ok(None),
        };
        let kept = kept.unwrap_or_else(|failure| {
            tracing::warn!(error = failure.message(), "the record of approvals is not used");
            None
        });
        kept.and_then(|kept| String::from_utf8(kept.data).ok())
    }

    /// The record that it is approved with this lock.
    pub(crate) fn approved(&self, lock: &str) -> Result<Record, Failure> {
        let Some(state) = &self.state else {
            let message = anyhow!("no place to keep the approval: neither `XDG_STATE_HOME` nor `HOME` is set");
            return Err(Failure::file(message, ELSEWHERE));
        };
        Ok(Record { store: records(state)?, name: self.name(), content: self.record_of(lock) })
    }

    /// One record for each configuration, so that approvals do not get into each other's way.
    fn name(&self) -> String {
        hex(self.path.as_os_str().as_bytes())
    }

    /// A record: by what the lock is known, and the text of the configuration, so that a change of it can be shown.
    fn record_of(&self, lock: &str) -> String {
        self.head(lock) + &self.text
    }

    fn head(&self, lock: &str) -> String {
        format!("{} lock sha256:{}\n", self.path.display(), hex(lock.as_bytes()))
    }
}

/// The records of a state directory, with those of earlier versions.
fn records(state: &Path) -> Result<DiskStore, Failure> {
    let kept = |failure: Failure| {
        let error = anyhow!("cannot keep the approval in `{}`: {}", state.display(), failure.message());
        Failure::file(error, ELSEWHERE)
    };
    let store = DiskStore::open(&state.join(DIRECTORY)).map_err(|error| kept(error.into()))?;
    let store = store.with_quota(Quota { bytes: u64::MAX, keys: u64::MAX, value: u64::MAX });
    let old = state.join(OLD_DIRECTORY);
    if old.is_dir() {
        carry_over(&old, &store).map_err(kept)?;
    }
    Ok(store)
}

/// Takes over records that are files, and leaves the files as a copy. Those that others could have written are none.
fn carry_over(old: &Path, store: &DiskStore) -> Result<(), Failure> {
    files::own_directory(old, ELSEWHERE)?;
    for entry in fs::read_dir(old).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match files::lock(&entry.path()) {
            Ok(Some(content)) => {
                // A newer record stays.
                store.compare_and_swap(&namespace(), &name, None, content.as_bytes(), None).map_err(unkept)?;
            }
            Ok(None) => {}
            Err(failure) => tracing::warn!(error = failure.message(), "the record of an approval is not carried over"),
        }
    }
    // Another command may have done it meanwhile.
    let _ = fs::rename(old, old.with_file_name(CARRIED_OVER));
    Ok(())
}

fn namespace() -> Namespace {
    Namespace::new(None, DIRECTORY)
}

fn unkept(error: StoreError) -> Failure {
    Failure::file(anyhow::Error::from(error).context("cannot keep the approval"), ELSEWHERE)
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_approved_is_a_content_at_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let found = |path: &str, text: &str| Found::new(Path::new(path), text, None, Some(&state));
        assert_eq!(found("/a/toolcell.toml", "x").approval(), Approval::Missing);
        let written = found("/a/toolcell.toml", "x").approved("").unwrap();
        assert_eq!(found("/a/toolcell.toml", "x").approval(), Approval::Missing, "not before it is in its place");
        written.put().unwrap();
        for (path, text, expected) in [
            ("/a/toolcell.toml", "x", Approval::Given),
            ("/a/toolcell.toml", "x ", Approval::Missing),
            ("/b/toolcell.toml", "x", Approval::Missing),
        ] {
            assert_eq!(found(path, text).approval(), expected, "{path} {text:?}");
        }
        let known = |text, lock: &str| {
            Found::new(Path::new("/a/toolcell.toml"), text, Some(lock.to_owned()), Some(&state)).is_lock_known()
        };
        assert!(
            known("x", "") && known("other", "") && !known("x", "x"),
            "the lock was approved, with whatever beside it"
        );
        let other_lock = Found::new(Path::new("/a/toolcell.toml"), "x", Some("x".to_owned()), Some(&state));
        assert_eq!(other_lock.approval(), Approval::Missing, "whoever wrote the lock is not who approved it");
        let records = state.join(DIRECTORY);
        let record = records.join("store.db");
        for (path, mode) in [(&record, 0o100_600), (&records, 0o40_700)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode(), mode);
        }
        for spoilt in [&record, &records] {
            let good = fs::metadata(spoilt).unwrap().permissions();
            fs::set_permissions(spoilt, fs::Permissions::from_mode(good.mode() | 0o020)).unwrap();
            assert_eq!(found("/a/toolcell.toml", "x").approval(), Approval::Missing, "others could have written it");
            fs::set_permissions(spoilt, good).unwrap();
        }
        assert_eq!(found("/a/toolcell.toml", "x").approval(), Approval::Given);
        fs::write(&record, "").unwrap();
        assert_eq!(found("/a/toolcell.toml", "x").approval(), Approval::Missing);
        let nowhere = Found::new(Path::new("/a"), "x", None, Some(&record));
        assert!(nowhere.approval() == Approval::Missing && nowhere.approved("").is_err());
    }
    /// Once, and none that others could have written. The files stay as a copy.
    #[test]
    fn records_of_earlier_versions_are_carried_over() {
        let state = tempfile::tempdir().unwrap();
        let old = state.path().join(OLD_DIRECTORY);
        fs::create_dir(&old).unwrap();
        let found = |path: &str| Found::new(Path::new(path), "x", None, Some(state.path()));
        for (path, mode) in [("/a/toolcell.toml", 0o600), ("/b/toolcell.toml", 0o622)] {
            let file = old.join(found(path).name());
            fs::write(&file, found(path).record_of("")).unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        }
        for _ in 0..2 {
            assert_eq!(found("/a/toolcell.toml").approval(), Approval::Given);
            assert_eq!(found("/b/toolcell.toml").approval(), Approval::Missing);
        }
        assert!(!old.exists());
        assert_eq!(fs::read_dir(state.path().join(CARRIED_OVER)).unwrap().count(), 2);
    }
}
