//! Decides if a configuration that was found, not named, may be used.
//!
//! A command without `--config` uses the nearest `toolcell.toml`, and another person may have
//! created that folder. Reading the file creates a [`FoundConfiguration`] from its path, its text
//! and the text of its lock file (approvals). `approval` compares them with the record of this
//! user's last approval and returns an [`Approval`]. `approved` makes the record of a new one. An
//! approval is for the parsed content (comments do not count) of one path, and for the exact bytes
//! of its lock file.
//!
//! The records belong to the user and are never in the folder itself: they are in the database
//! `approvals/store.db` below the state directory, by the hash of the configuration's path. A
//! record that cannot be read approves nothing; nor does a file of an earlier version.

use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use toolcell::controls::enforced;
use toolcell::kv::{KeyStore as _, Namespace, Quota, SqliteStore};

use crate::error::Error;

/// The database of the records.
const STORE: &str = "store.db";
/// The directory below the state directory.
const DIRECTORY: &str = "approvals";
/// The directory in which earlier versions had a file for each record.
const OLD_DIRECTORY: &str = "approved";
/// The separator of the lock's hash and the names of components in a record.
const ONLY_SEPARATOR: &str = " only ";
/// The hint if an approval cannot be recorded.
const STATE_DIR_HINT: &str = "name a directory of your own with `--state-dir DIR`, or the configuration with `--config FILE`";

/// The reason why the record of an earlier version is not used.
const OLD_RECORD: &str =
    "an earlier version of toolcell recorded it in a form that is not read any more";

/// The permission to use a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approval {
    /// The configuration was named, or approved.
    #[default]
    Given,
    /// This user has not approved the current content.
    Missing,
}

impl Approval {
    /// Returns true if the configuration must not be used.
    pub(crate) fn is_missing(self) -> bool {
        self == Self::Missing && enforced!(FoundConfiguration)
    }
}

/// A configuration that was found.
pub struct FoundConfiguration {
    /// Its path with links resolved.
    path: PathBuf,
    /// Its current text.
    pub text: String,
    /// The text of its lock. It is read once, so that the text that is checked is the one that is
    /// used.
    pub(crate) lock: Option<String>,
    /// The user's state directory, if there is one.
    state: Option<PathBuf>,
    /// The record of the last approval, or the reason why it cannot be read.
    record: Result<Option<ApprovalRecord>, String>,
}

impl fmt::Debug for FoundConfiguration {
    /// Omits the texts, which can contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundConfiguration").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The last approval by this user.
struct ApprovalRecord {
    /// The hash of the lock.
    lock: String,
    /// The components of the lock that were shown and approved. `None`: all of them.
    only: Option<BTreeSet<String>>,
    /// The configuration's text.
    text: String,
}

/// A record to be stored.
pub struct Record {
    store: SqliteStore,
    name: String,
    content: String,
}

impl Record {
    /// Stores it, replacing the one before.
    pub fn put(self) -> Result<(), Error> {
        let kept = self.store.set(&namespace(), &self.name, self.content.as_bytes(), None);
        kept.map(drop)
            .map_err(|error| Error::caused("cannot keep the approval", error, STATE_DIR_HINT))
    }
}

impl FoundConfiguration {
    pub(crate) fn new(path: &Path, text: &str, lock: Option<String>, state: Option<&Path>) -> Self {
        let state = state.map(Path::to_owned);
        let mut found =
            Self { path: path.to_owned(), text: text.to_owned(), lock, state, record: Ok(None) };
        found.record = found.read().map_err(|failure| {
            tracing::warn!(
                error = failure.to_string(),
                "the record of your approvals cannot be used"
            );
            failure.to_string()
        });
        found
    }

    /// Returns `Given` if this user approved the current content. Comments, whitespace and the
    /// order of keys do not count.
    pub(crate) fn approval(&self) -> Approval {
        let is_same = |kept: &ApprovalRecord| has_same_content(&kept.text, &self.text);
        let is_given = self.is_lock_known() && self.record().is_some_and(is_same);
        if is_given { Approval::Given } else { Approval::Missing }
    }

    /// Returns true if this user approved the lock as it is, with this or another text of the
    /// configuration.
    pub fn is_lock_known(&self) -> bool {
        self.record()
            .is_some_and(|kept| kept.lock == hash(self.lock.as_deref().unwrap_or_default()))
    }

    /// Returns the components of the lock that this user approved. `None`: all of them.
    pub fn only(&self) -> Option<&BTreeSet<String>> {
        self.record().and_then(|kept| kept.only.as_ref())
    }

    /// Returns the text at this user's last approval.
    pub fn before(&self) -> Option<String> {
        self.record().map(|kept| kept.text.clone()).filter(|text| !text.is_empty())
    }

    /// Returns the reason why the record of the last approval cannot be read, if there may be one.
    pub(crate) fn read_error(&self) -> Option<&str> {
        self.record.as_ref().err().map(String::as_str)
    }

    fn record(&self) -> Option<&ApprovalRecord> {
        self.record.as_ref().ok()?.as_ref()
    }

    /// Reads the record of the last approval.
    fn read(&self) -> Result<Option<ApprovalRecord>, Error> {
        let Some(state) = &self.state else { return Ok(None) };
        let kept = if state.join(DIRECTORY).is_dir() {
            records(state)?.get(&namespace(), &self.name()).map_err(|error| {
                Error::caused("cannot read the record of the approval", error, STATE_DIR_HINT)
            })?
        } else {
            None
        };
        if kept.is_none() && state.join(OLD_DIRECTORY).join(self.name()).exists() {
            return Err(Error::file(OLD_RECORD, "approve the configuration again"));
        }
        Ok(kept.and_then(|kept| self.parsed(&String::from_utf8(kept.data).ok()?)))
    }

    fn parsed(&self, record: &str) -> Option<ApprovalRecord> {
        let rest = record.strip_prefix(&self.head())?;
        let (first, text) = rest.split_once('\n')?;
        let (lock, only) = first
            .split_once(ONLY_SEPARATOR)
            .map_or((first, None), |(lock, names)| (lock, Some(names)));
        let only = only.map(|names| {
            names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        });
        Some(ApprovalRecord { lock: lock.to_owned(), only, text: text.to_owned() })
    }

    /// Creates a record that this user approves it with this lock: all components of the lock, or
    /// only these.
    pub fn approved(&self, lock: &str, only: Option<&BTreeSet<String>>) -> Result<Record, Error> {
        let Some(state) = &self.state else {
            let message =
                "no place to keep the approval: neither `XDG_STATE_HOME` nor `HOME` is set"
                    .to_owned();
            return Err(Error::file(message, STATE_DIR_HINT));
        };
        Ok(Record {
            store: records(state)?,
            name: self.name(),
            content: self.record_of(lock, only),
        })
    }

    /// Returns the file that changes with each approval.
    pub(crate) fn records(&self) -> Option<PathBuf> {
        self.state.as_ref().map(|state| state.join(DIRECTORY).join(STORE))
    }

    /// Returns the name of its record, unique to this configuration.
    fn name(&self) -> String {
        hash(self.path.as_os_str().as_bytes())
    }

    /// Formats a record: a line with the lock's hash and the approved components, and the
    /// configuration's text, so that a later change can be shown.
    fn record_of(&self, lock: &str, only: Option<&BTreeSet<String>>) -> String {
        let only = only.map(|names| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            format!("{ONLY_SEPARATOR}{}", names.join(","))
        });
        format!("{}{}{}\n{}", self.head(), hash(lock), only.unwrap_or_default(), self.text)
    }

    fn head(&self) -> String {
        format!("{} lock sha256:", self.path.display())
    }
}

/// Returns true if two texts of a configuration have the same content: the same keys with the same
/// values, lists in the same order.
pub(crate) fn has_same_content(one: &str, other: &str) -> bool {
    let content = |text: &str| text.parse::<toml::Table>().ok();
    one == other || content(one).is_some_and(|one| content(other) == Some(one))
}

/// Opens the records of a state directory.
fn records(state: &Path) -> Result<SqliteStore, Error> {
    let store = SqliteStore::open(&state.join(DIRECTORY)).map_err(|error| {
        let state = state.display();
        let message = format!("cannot open the record of approvals in `{state}`: {error}");
        Error::file(message, format!("{STATE_DIR_HINT}; or {}", error.hint()))
    })?;
    Ok(store.with_quota(Quota { bytes: u64::MAX, keys: u64::MAX, value: u64::MAX }))
}

fn namespace() -> Namespace {
    Namespace::new(None, DIRECTORY)
}

fn hash(bytes: impl AsRef<[u8]>) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use toolcell_test_guests::rows;

    use super::*;

    /// Finds `/a/toolcell.toml`.
    fn found(state: &Path, text: &str, lock: Option<&str>) -> FoundConfiguration {
        let path = Path::new("/a/toolcell.toml");
        FoundConfiguration::new(path, text, lock.map(str::to_owned), Some(state))
    }

    /// Comments and other spellings of the same content are equal; every other value, name or order
    /// of a list is not.
    #[test]
    fn config_equality_ignores_comments_but_no_value() {
        let text = "[host]\nrequire_signatures = false\n\n[components.a]\npath = \"a.wasm\"\n[components.a.grants]\n\
                    http = [\"https://a.example\", \"https://b.example\"]\nscratch = true\n\
                    limits_of_none = { fuel = 1000, timeout = \"2s\" }\n[tenants.t]\nkv = []\n";
        for (from, to, is_same) in rows::<(&str, &str, bool)>(
            "approval/trust",
            "config_equality_ignores_comments_but_no_value",
        ) {
            let other = text.replacen(from, to, 1);
            assert_ne!(other, text, "{from:?} is not in it");
            assert_eq!(has_same_content(text, &other), is_same, "{other}");
        }
        // For any single line: adding a comment changes nothing, and removing the line does unless
        // it was empty.
        for (at, line) in text.lines().enumerate() {
            let with = |line: &str| {
                let mut lines: Vec<_> = text.lines().collect();
                lines[at] = line;
                lines.join("\n")
            };
            assert!(has_same_content(text, &with(&format!("{line} # {at}\n"))), "{line}");
            assert_eq!(has_same_content(text, &with("")), line.is_empty(), "{line}");
        }
        assert!(has_same_content("not = = toml", "not = = toml"));
        assert!(!has_same_content("not = = toml", "not = = toml "));
    }

    /// It is refused with its reason until the configuration is approved again.
    #[test]
    fn record_of_earlier_version_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let found = || found(state.path(), "x", None);
        assert_eq!(found().read_error(), None);
        let old = state.path().join(OLD_DIRECTORY);
        fs::create_dir(&old).unwrap();
        fs::write(old.join(found().name()), found().record_of("", None)).unwrap();
        let read = found();
        assert_eq!((read.approval(), read.read_error()), (Approval::Missing, Some(OLD_RECORD)));
        found().approved("", None).unwrap().put().unwrap();
        let read = found();
        assert_eq!((read.approval(), read.read_error()), (Approval::Given, None));
    }

    /// It approves nothing that another user put into the lock.
    #[test]
    fn single_components_of_a_lock_can_be_approved() {
        let state = tempfile::tempdir().unwrap();
        let found = || found(state.path(), "x = 1", Some("lock"));
        for only in [
            Some(BTreeSet::from(["one".to_owned(), "two".to_owned()])),
            Some(BTreeSet::new()),
            None,
        ] {
            found().approved("lock", only.as_ref()).unwrap().put().unwrap();
            assert_eq!((found().approval(), found().only()), (Approval::Given, only.as_ref()));
        }
    }

    #[test]
    fn approval_is_for_one_content_at_one_path() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let own = || found(&state, "x", None);
        assert_eq!(own().approval(), Approval::Missing);
        let written = own().approved("", None).unwrap();
        assert_eq!(own().approval(), Approval::Missing, "not before it is in its place");
        written.put().unwrap();
        for (path, text, expected) in [
            ("/a/toolcell.toml", "x", Approval::Given),
            ("/a/toolcell.toml", "x ", Approval::Missing),
            ("/b/toolcell.toml", "x", Approval::Missing),
        ] {
            let found = FoundConfiguration::new(Path::new(path), text, None, Some(&state));
            assert_eq!(found.approval(), expected, "{path} {text:?}");
        }
        // The lock was approved, with whatever beside it; a lock with another text is not.
        let known = |text, lock| found(&state, text, Some(lock)).is_lock_known();
        assert!(known("x", "") && known("other", "") && !known("x", "x"));
        assert_eq!(found(&state, "x", Some("x")).approval(), Approval::Missing);
        let records = state.join(DIRECTORY);
        let record = records.join("store.db");
        for (path, mode) in [(&record, 0o100_600), (&records, 0o40_700)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode(), mode);
        }
        for spoilt in [&record, &records] {
            let good = fs::metadata(spoilt).unwrap().permissions();
            fs::set_permissions(spoilt, fs::Permissions::from_mode(good.mode() | 0o020)).unwrap();
            assert_eq!(own().approval(), Approval::Missing, "others could have written it");
            fs::set_permissions(spoilt, good).unwrap();
        }
        assert_eq!(own().approval(), Approval::Given);
        fs::write(&record, "").unwrap();
        assert_eq!(own().approval(), Approval::Missing);
        let nowhere = FoundConfiguration::new(Path::new("/a"), "x", None, Some(&record));
        assert!(nowhere.approval() == Approval::Missing && nowhere.approved("", None).is_err());
    }
}
