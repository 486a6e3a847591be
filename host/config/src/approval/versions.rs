//! Keeps approved versions of components, so that one is still served when its file has changed,
//! and can be restored.
//!
//! In: approvals, and the bytes of components. Out: the bytes by their digest, and earlier
//! approvals.
//! Invariants: bytes are used only if they have the requested digest; a directory or a list that
//! others can write to is not used. Layout: `versions/PROJECT/NAME/` below the state directory,
//! with `HEX.wasm`, its signature as `HEX.wasm.sig`, and `history.lock`: the approvals in the
//! format of a lock, the latest last.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use toolcell::controls::{Control, enforced};

use super::lock;
use crate::Configuration;
use crate::approval::lock::Approved;
use crate::error::Error;
use crate::file::resolved::ResolvedComponent;
use crate::paths::atomic_file::PendingFile;
use crate::paths::files;
use crate::serving::keys::Keys;

/// The directory below the state directory.
const DIRECTORY: &str = "versions";
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

impl Configuration {
    /// Returns the kept versions of a component. `None` without a state directory.
    pub(crate) fn versions(&self, name: &str) -> Option<Versions> {
        Some(Versions { dir: self.state_directory(DIRECTORY)?.join(name) })
    }

    /// Returns the directory below the state directory for this configuration's files of a kind,
    /// for example `api-keys`. No other configuration has the same one. `None` without a state
    /// directory or a file.
    #[must_use]
    pub fn state_directory(&self, kind: &str) -> Option<PathBuf> {
        let project = self.path.as_deref().map(Keys::project)?;
        Some(self.options.state_dir()?.join(kind).join(project))
    }

    /// Keeps the file of a component, if it is the version that was just approved. `before` is the
    /// version that was approved until then. A failure is logged: the approval is still valid.
    pub(crate) fn keep_version(
        &self,
        chosen: &ResolvedComponent<'_>,
        approved: &Approved,
        before: Option<&Approved>,
    ) {
        let Some((name, _)) = chosen.configured else { return };
        let Some(versions) = self.versions(name) else { return };
        let kept = files::component(&chosen.path).and_then(|bytes| {
            let signature =
                chosen.demand.map(|demand| files::signature(&demand.signature(&chosen.path)));
            let signature = signature.transpose()?.flatten();
            versions.store(approved, before, &bytes, signature.as_deref())
        });
        if let Err(error) = kept {
            tracing::warn!(component = name, %error, "cannot keep a copy of the approved version");
        }
    }

    /// As `keep_version`, for a component that is used, unless that version is kept already.
    pub(crate) fn keep_used_version(&self, chosen: &ResolvedComponent<'_>, approved: &Approved) {
        let versions = chosen.configured.and_then(|(name, _)| self.versions(name));
        if versions.is_some_and(|versions| !versions.has(approved)) {
            self.keep_version(chosen, approved, None);
        }
    }
}

impl Versions {
    /// Returns true if this version is in the list and its bytes exist.
    fn has(&self, approved: &Approved) -> bool {
        self.history().is_ok_and(|history| history.contains(approved))
            && self.file(&approved.digest).is_some_and(|file| file.is_file())
    }

    /// Keeps a version as the latest, directly after `before`. Bytes of another digest are ignored.
    fn store(
        &self,
        approved: &Approved,
        before: Option<&Approved>,
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
    fn remove_unlisted(&self, history: &[Approved]) {
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
        (digest(&bytes) == wanted || !enforced(Control::KeptVersions))
            .then(|| KeptVersion { bytes, signature: signature_path(&file) })
    }

    /// Returns the approvals, the latest last.
    pub(crate) fn history(&self) -> Result<Vec<Approved>, Error> {
        let path = self.dir.join(HISTORY);
        if self.dir.is_dir() {
            files::own_directory(&self.dir, RESTORE)?;
        }
        let text = files::lock(&path)?;
        let all = text.map(|text| lock::parsed(&path, &text, RESTORE)).transpose()?;
        Ok(all.unwrap_or_default().into_values().collect())
    }

    fn file(&self, digest: &str) -> Option<PathBuf> {
        let hex = digest
            .strip_prefix("sha256:")
            .filter(|hex| hex.len() == HEX && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        Some(self.dir.join(format!("{hex}.wasm")))
    }
}

/// Formats the approvals as a lock, numbered in their order.
fn list(history: &[Approved]) -> String {
    let numbered =
        history.iter().enumerate().map(|(place, version)| (format!("{place:04}"), version));
    let numbered: BTreeMap<_, _> = numbered.collect();
    lock::to_text(numbered.iter().map(|(name, version)| (name, *version)))
}

fn signature_path(file: &Path) -> PathBuf {
    file.with_added_extension("sig")
}

/// Returns the digest of bytes in the format of a lock.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |hex, byte| format!("{hex}{byte:02x}"))
}
