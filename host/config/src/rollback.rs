//! Makes the version of a component current again that was approved before the current one.
//!
//! Invariants: what becomes current was approved by this user and has the digest of that time; the configuration's demands,
//! a signature or a digest, count for it as for any other; a file that was never approved is not overwritten.

use toolcell::names;

use crate::error::Error;
use crate::versions::{Kept, digest};
use crate::written::Written;
use crate::{Approved, Configuration, Lock, files};

/// The permissions of a component that is put back.
const MODE: u32 = 0o644;

/// What a rollback did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RolledBack {
    /// The component's name.
    pub component: String,
    /// The digest of the version that was current.
    pub from: String,
    /// The digest of the version that is current now.
    pub to: String,
    /// Whether the component's file was replaced. It was not if it is a version that was never approved.
    pub replaced_file: bool,
}

impl Configuration {
    /// Makes the previously approved version of a component current again: in the lock, and as the component's file if that
    /// was the version that is current now. What was current stays kept.
    ///
    /// # Errors
    /// [`Error::Usage`] for a name that is no component's or that needs no approval, [`Error::NotApproved`] if the
    /// configuration is not approved, [`Error::File`] if no earlier version is kept or a file cannot be written,
    /// [`Error::Unsigned`] and [`Error::OtherDigest`] if the configuration refuses the earlier version. Nothing is changed then,
    /// but for one case: the lock is changed if the system does not let the component's new file take its place.
    pub fn rollback(&self, name: &str) -> Result<RolledBack, Error> {
        if !self.components.contains_key(name) {
            let near = names::nearest(name, self.components.keys().map(String::as_str));
            let hint = near.map_or_else(
                || "give the NAME of a section [components.NAME]".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            let file = self.file.as_deref().unwrap_or(crate::NAME);
            return Err(Error::usage(format!("`{file}` has no component `{}`", name.escape_debug()), hint));
        }
        let chosen = self.used(name.as_ref())?;
        if chosen.development().is_some() {
            let message = format!("`{name}` is in development: it needs no approval, so it cannot be rolled back");
            return Err(Error::usage(message, "build the version that you want"));
        }
        let lock = Lock::beside(self)?;
        let current = lock.components.get(name).ok_or_else(|| {
            let message = format!("the component `{name}` is not approved, so it cannot be rolled back");
            Error::not_approved(crate::Unapproved::New, message, self.how_to_approve(name))
        })?;
        let (previous, kept) = self.before(name, current)?;
        chosen.judged(&kept.bytes, &chosen.path, Some(&kept.signature))?;
        let replaced_file = self.is_file(&chosen.path, current);
        // On the disk before the lock is written, in its place after: a lock that cannot be written changes nothing.
        let failed = |error| {
            let message = format!("cannot write `{}`", chosen.shown());
            Error::caused(message, error, "check that its directory is writable and its disk is not full")
        };
        let mut writes = Vec::new();
        if replaced_file {
            // Where the path is a link, its target is replaced.
            let path = std::fs::canonicalize(&chosen.path).map_err(failed)?;
            writes.push(Written::new(&path, &kept.bytes, MODE).map_err(failed)?);
            if let (Some(demand), Some(text)) = (chosen.demand, files::signature(&kept.signature)?) {
                writes.push(Written::new(&demand.signature(&chosen.path), &text, MODE).map_err(failed)?);
            }
        }
        let (from, to) = (current.digest.clone(), previous.digest.clone());
        self.record(&lock, &[(name.to_owned(), previous)], &[])?;
        writes.into_iter().try_for_each(Written::put).map_err(failed)?;
        Ok(RolledBack { component: name.to_owned(), from, to, replaced_file })
    }

    /// The version that was approved before this one, with its bytes.
    fn before(&self, name: &str, current: &Approved) -> Result<(Approved, Kept), Error> {
        let hint = "restore the component and the lock from version control, then approve";
        let none =
            || Error::file(format!("no earlier version of `{name}` is kept, so there is none to go back to"), hint);
        let versions = self.versions(name).ok_or_else(none)?;
        let mut history = versions.history()?;
        // What follows the current one was rolled back.
        if let Some(place) = history.iter().position(|version| version == current) {
            history.truncate(place);
        }
        let previous = history.pop().ok_or_else(none)?;
        let kept = versions.kept(&previous.digest).ok_or_else(none)?;
        Ok((previous, kept))
    }

    fn is_file(&self, path: &std::path::Path, approved: &Approved) -> bool {
        files::component(path).is_ok_and(|bytes| digest(&bytes) == approved.digest)
    }
}
