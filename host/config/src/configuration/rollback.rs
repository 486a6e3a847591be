//! Rolls a component back to the version that was approved before the current one, or restores the
//! current one if another file has replaced it.
//!
//! `toolcell rollback` calls `Configuration::rollback` with a component's name. It changes the lock
//! file (approvals) and replaces the component's file, and returns both digests. The restored bytes
//! come from the copies of approved versions in the state directory and have the digest of that
//! approval. They must meet the configuration's demands for a signature or a digest, as any other
//! version. A replaced file that was never approved is kept as a copy beside the component. An
//! error changes nothing, but for one case that the function documents.

use std::path::{Path, PathBuf};

use toolcell::names;

use super::Configuration;
use super::lock::Lock;
use crate::approval::lock::ApprovedVersion;
use crate::approval::versions::{KeptVersion, Rollback, digest};
use crate::error::{Error, Unapproved};
use crate::paths::atomic_file::PendingFile;
use crate::paths::files;
use crate::schema::NAME;

/// The permissions of a restored component.
const MODE: u32 = 0o644;

impl Configuration {
    /// Makes the previously approved version of a component current again, in the lock and as the
    /// component's file. The version that was current is still kept. If the file is missing, or was
    /// overwritten with a version that is not approved, the version that is current in the lock is
    /// restored instead, and the lock stays as it is.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown component name or a component that needs no approval,
    /// [`Error::NotApproved`] if the configuration is not approved, [`Error::File`] if no earlier
    /// version is kept or a file cannot be written, [`Error::Unsigned`] and
    /// [`Error::DigestMismatch`] if the configuration refuses the earlier version. Then nothing is
    /// changed, with one exception: the lock is changed if the system refuses to rename the
    /// component's new file into place.
    pub fn rollback(&self, name: &str) -> Result<Rollback, Error> {
        if !self.components.contains_key(name) {
            let known = self.components.keys().map(String::as_str);
            let otherwise = || "give the NAME of a section [components.NAME]".to_owned();
            let hint = names::did_you_mean(name, known, otherwise);
            let file = self.file.as_deref().unwrap_or(NAME);
            return Err(Error::usage(
                format!("`{file}` has no component `{}`", name.escape_debug()),
                hint,
            ));
        }
        let chosen = self.used(name.as_ref())?;
        if chosen.development().is_some() {
            let message = format!(
                "`{name}` is in development: it needs no approval, so it cannot be rolled back"
            );
            return Err(Error::usage(message, "build the version that you want"));
        }
        let lock = Lock::beside(self)?;
        let current = lock.components.get(name).ok_or_else(|| {
            let message =
                format!("the component `{name}` is not approved, so it cannot be rolled back");
            Error::not_approved(
                Unapproved::New,
                message,
                self.how_to_approve("the component", &[name]),
            )
        })?;
        let found = match files::component(&chosen.path) {
            Err(_) if !chosen.path.exists() => None,
            read => Some(read?),
        };
        let there = found.as_deref().map(digest);
        let is_there = |version: &ApprovedVersion| there.as_ref() == Some(&version.digest);
        let before = self.before(name, current);
        let is_before = before.as_ref().is_ok_and(|(before, _)| is_there(before));
        let overwritten = self.versions(name).filter(|_| !is_there(current) && !is_before);
        let (to, bytes) = match overwritten.and_then(|versions| versions.find(&current.digest)) {
            Some(bytes) => (current.clone(), bytes),
            None => before?,
        };
        chosen.verify(&bytes.bytes, Some(&bytes.signature))?;
        let replaced_file = !is_there(&to);
        // The component is written to disk before the lock, and renamed into place after it, so
        // that a lock that cannot be written changes nothing.
        let failed = |error| files::not_written(&chosen.path, error);
        let (mut writes, mut kept) = (Vec::new(), None);
        if replaced_file {
            // If the path is a link, its target is replaced.
            let path = std::fs::canonicalize(&chosen.path)
                .or_else(|_| std::path::absolute(&chosen.path))
                .map_err(failed)?;
            if let (Some(found), Some(there)) = (&found, &there)
                && self.versions(name).is_none_or(|versions| versions.find(there).is_none())
            {
                let copy = backup_path(&path, there);
                PendingFile::new(&copy, found, MODE).and_then(PendingFile::put).map_err(failed)?;
                kept = Some(copy);
            }
            writes.push(PendingFile::new(&path, &bytes.bytes, MODE).map_err(failed)?);
            if let (Some(demand), Some(text)) = (chosen.demand, files::signature(&bytes.signature)?)
            {
                let path = demand.signature(&chosen.path);
                writes.push(PendingFile::new(&path, &text, MODE).map_err(failed)?);
            }
        }
        let from = there.filter(|_| to == *current).unwrap_or_else(|| current.digest.clone());
        let digest = to.digest.clone();
        if to != *current {
            self.record(&lock, &[(name.to_owned(), to)], &[])?;
        }
        writes.into_iter().try_for_each(PendingFile::put).map_err(failed)?;
        Ok(Rollback { component: name.to_owned(), from, to: digest, replaced_file, backup: kept })
    }

    /// Returns the previously approved version, with its bytes.
    fn before(
        &self,
        name: &str,
        current: &ApprovedVersion,
    ) -> Result<(ApprovedVersion, KeptVersion), Error> {
        let hint = "restore the component and the lock from version control, then approve";
        let none = || {
            Error::file(
                format!("no earlier version of `{name}` is kept, so there is none to go back to"),
                hint,
            )
        };
        let versions = self.versions(name).ok_or_else(none)?;
        let mut history = versions.history()?;
        // Versions after the current one were rolled back.
        if let Some(place) = history.iter().position(|version| version == current) {
            history.truncate(place);
        }
        let previous = history.pop().ok_or_else(none)?;
        let kept = versions.find(&previous.digest).ok_or_else(none)?;
        Ok((previous, kept))
    }
}

/// Returns the path for the copy of a file that was never approved. Its name ends with the start of
/// its digest.
fn backup_path(path: &Path, digest: &str) -> PathBuf {
    const DIGEST_CHARS: usize = 8;
    let hex =
        digest.split(':').next_back().and_then(|hex| hex.get(..DIGEST_CHARS)).unwrap_or_default();
    path.with_added_extension(format!("replaced-{hex}"))
}
