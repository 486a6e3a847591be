//! Keeps approved versions of components, so that one is still served when its file has changed,
//! and can be restored.
//!
//! When a component is approved or used, `store` keeps its bytes and signature with the list of
//! approvals, at most eight for each component. Loading calls `find` with the approved digest if
//! the file has another one; a rollback reads `history`. Bytes are used only if they have the
//! requested digest. A directory or a list that others can write to is not used.
//!
//! Layout: `versions/PROJECT/NAME/` below the state directory, with `HEX.wasm`, its signature as
//! `HEX.wasm.sig`, and `history.lock`: the approvals in the format of a lock file, the latest last.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use toolcell::controls::enforced;

use super::lock;
use super::signed::signature_path;
use crate::approval::lock::ApprovedVersion;
use crate::error::Error;
use crate::paths::atomic_file::PendingFile;
use crate::paths::files;

/// The file with the list of approvals.
const HISTORY: &str = "history.lock";
/// Maximum number of versions kept of a component.
const MAX_VERSIONS: usize = 8;
/// Characters of a hex digest.
const HEX: usize = 64;
/// The hint for a list that cannot be used.
const RESTORE: &str = "remove the directory of the kept versions: later approvals make it again";
/// The hint if nothing can be kept.
const STATE_DIR_HINT: &str = "name a state directory that you can write to: `--state-dir DIR`";

/// The result of a rollback.
///
/// # Shape
/// As JSON: its fields by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Rollback {
    /// The component's name.
    pub component: String,
    /// The digest of the version before: the current one, or that of the file that had replaced it.
    pub from: String,
    /// The digest of the version that is current after the rollback.
    pub to: String,
    /// True if the component's file was replaced. False if it already was the version that is
    /// current now.
    pub replaced_file: bool,
    /// A copy of the replaced file, if that was never approved.
    pub backup: Option<PathBuf>,
}

/// The approved versions of one component.
#[derive(Debug)]
pub(crate) struct Versions {
    dir: PathBuf,
}

/// The bytes of an approved version, and the file of its signature.
#[derive(Debug)]
pub(crate) struct KeptVersion {
    pub(crate) bytes: Vec<u8>,
    pub(crate) signature: PathBuf,
}

impl Versions {
    /// The directory below the state directory.
    pub(crate) const DIRECTORY: &str = "versions";

    /// Returns the versions that are kept in this directory.
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Returns true if this version is in the list and its bytes exist.
    pub(crate) fn has(&self, approved: &ApprovedVersion) -> bool {
        self.history().is_ok_and(|history| history.contains(approved))
            && self.file(&approved.digest).is_some_and(|file| file.is_file())
    }

    /// Keeps a version as the latest, directly after `before`. Bytes of another digest are ignored.
    pub(crate) fn store(
        &self,
        approved: &ApprovedVersion,
        before: Option<&ApprovedVersion>,
        bytes: &[u8],
        signature: Option<&[u8]>,
    ) -> Result<(), Error> {
        let Some(file) = self.file(&approved.digest).filter(|_| digest(bytes) == approved.digest)
        else {
            return Ok(());
        };
        let failed = |error: std::io::Error| {
            let message =
                format!("cannot keep a copy of an approved version in `{}`", self.dir.display());
            Error::caused(message, error, STATE_DIR_HINT)
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(failed)?;
        files::own_directory(&self.dir, STATE_DIR_HINT)?;
        let put = |path: &Path, bytes: &[u8]| {
            PendingFile::new(path, bytes, 0o600).and_then(PendingFile::put)
        };
        put(&file, bytes).map_err(failed)?;
        if let Some(signature) = signature {
            put(&signature_path(&file), signature).map_err(failed)?;
        }
        // A list that cannot be read is replaced.
        let mut history = self.history().unwrap_or_default();
        // A version that was rolled back is not the one before.
        let before =
            before.filter(|before| *before != approved && history.contains(before)).cloned();
        history.retain(|old| old != approved && Some(old) != before.as_ref());
        history.extend(before);
        history.push(approved.clone());
        let gone = history.len().saturating_sub(MAX_VERSIONS);
        history.drain(..gone);
        put(&self.dir.join(HISTORY), list(&history).as_bytes()).map_err(failed)?;
        self.remove_unlisted(&history);
        Ok(())
    }

    /// Removes the bytes of versions that are not in the list.
    fn remove_unlisted(&self, history: &[ApprovedVersion]) {
        let is_kept = |name: &str| {
            let hex = name.split('.').next().unwrap_or_default();
            name == HISTORY || history.iter().any(|version| version.digest.ends_with(hex))
        };
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !is_kept(&name) && !name.starts_with('.') {
                // A file that stays only takes up disk space.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Returns the bytes of this digest, if they are kept.
    pub(crate) fn find(&self, wanted: &str) -> Option<KeptVersion> {
        let file = self.file(wanted)?;
        let bytes = files::component(&file).ok()?;
        (digest(&bytes) == wanted || !enforced!(KeptVersions))
            .then(|| KeptVersion { bytes, signature: signature_path(&file) })
    }

    /// Returns the approvals, the latest last.
    pub(crate) fn history(&self) -> Result<Vec<ApprovedVersion>, Error> {
        let path = self.dir.join(HISTORY);
        if self.dir.is_dir() {
            files::own_directory(&self.dir, RESTORE)?;
        }
        let text = files::lock(&path)?;
        let all = text.map(|text| lock::parsed(&path, &text, RESTORE)).transpose()?;
        Ok(all.unwrap_or_default().into_values().collect())
    }

    fn file(&self, digest: &str) -> Option<PathBuf> {
        Some(self.dir.join(format!("{}.wasm", hex_of(digest)?)))
    }
}

/// Formats the approvals as a lock, numbered in their order.
fn list(history: &[ApprovedVersion]) -> String {
    let numbered =
        history.iter().enumerate().map(|(place, version)| (format!("{place:04}"), version));
    let numbered: BTreeMap<_, _> = numbered.collect();
    lock::to_text(numbered.iter().map(|(name, version)| (name, *version)))
}

/// Returns the hex digits of a digest. `None`: the text is not a digest.
pub(crate) fn hex_of(digest: &str) -> Option<&str> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digest.strip_prefix("sha256:").filter(|hex| hex.len() == HEX && hex.bytes().all(is_hex))
}

/// Returns the digest of bytes in the format of a lock.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn latest_approved_bytes_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let versions = Versions::new(dir.path().join("one"));
        let approved = |bytes: &str| ApprovedVersion {
            digest: digest(bytes.as_bytes()),
            kind: "tools".to_owned(),
            imports: BTreeSet::new(),
            publisher: None,
            tools: BTreeMap::new(),
        };
        for number in 0..=MAX_VERSIONS {
            let bytes = number.to_string();
            versions.store(&approved(&bytes), None, bytes.as_bytes(), None).unwrap();
        }
        assert_eq!(versions.history().unwrap().len(), MAX_VERSIONS);
        let is_kept = |bytes: &str| versions.find(&digest(bytes.as_bytes())).is_some();
        assert!(!is_kept("0") && is_kept("1"), "the oldest is removed");
        // The file was replaced after the approval.
        versions.store(&approved("approved"), None, b"replaced", None).unwrap();
        assert!(!versions.has(&approved("approved")));
    }
}
