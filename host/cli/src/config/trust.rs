//! Whether a configuration that nobody named may be used: whoever made the folder may not be who works in it.
//!
//! In: where it was found, its text and its lock's, the state directory. Out: an [`Approval`].
//! Invariants: what is approved is a content at a place; the record is the user's own, never in the folder itself; a record
//! that cannot be read is none.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use sha2::{Digest as _, Sha256};

use crate::failure::Failure;
use crate::written::Written;
use crate::{env, files};

/// The directory below the state directory.
const DIRECTORY: &str = "approved";
/// A record's permissions: it is nobody else's.
const MODE: u32 = 0o600;
/// The same of its directory.
const DIRECTORY_MODE: u32 = 0o700;
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
    /// Where records are, if there is such a place.
    records: Option<PathBuf>,
}

impl Found {
    pub(super) fn new(path: &Path, text: &str, lock: Option<String>, state: Option<&Path>) -> Self {
        let records = state.map(Path::to_owned).or_else(env::state_dir).map(|state| state.join(DIRECTORY));
        Self { path: path.to_owned(), text: text.to_owned(), lock, records }
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
        let records = self.records.as_ref().filter(|records| records.is_dir())?;
        let kept = files::own_directory(records, ELSEWHERE).and_then(|()| files::lock(&self.record(records)));
        kept.unwrap_or_else(|failure| {
            tracing::warn!(error = failure.message(), "the record of approvals is not used");
            None
        })
    }

    /// The record that it is approved with this lock, to be put into its place.
    pub(crate) fn approved(&self, lock: &str) -> Result<Written, Failure> {
        let Some(records) = &self.records else {
            let message = anyhow!("no place to keep the approval: neither `XDG_STATE_HOME` nor `HOME` is set");
            return Err(Failure::file(message, ELSEWHERE));
        };
        let made = fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(records);
        made.map_err(|error| unkept(records, error))?;
        files::own_directory(records, ELSEWHERE)?;
        Written::new(&self.record(records), &self.record_of(lock), MODE).map_err(|error| unkept(records, error))
    }

    /// One file for each configuration, so that approvals do not get into each other's way.
    fn record(&self, records: &Path) -> PathBuf {
        records.join(hex(self.path.as_os_str().as_bytes()))
    }

    /// A record: by what the lock is known, and the text of the configuration, so that a change of it can be shown.
    fn record_of(&self, lock: &str) -> String {
        self.head(lock) + &self.text
    }

    fn head(&self, lock: &str) -> String {
        format!("{} lock sha256:{}\n", self.path.display(), hex(lock.as_bytes()))
    }
}

fn unkept(records: &Path, error: io::Error) -> Failure {
    let error = anyhow::Error::from(error).context(format!("cannot keep the approval in `{}`", records.display()));
    Failure::file(error, ELSEWHERE)
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
        let record = fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
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
}
