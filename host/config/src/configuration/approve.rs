//! Records an approval, and keeps the approved versions.
//!
//! `toolcell approve`, or an embedder (the program that uses this library), calls
//! `Configuration::approve` with the lock file (approvals) that was read, the components as they
//! were shown, and those to remove. It writes the lock file beside the configuration and, for a
//! configuration that was found, the user's own record. Then it keeps a copy of each approved
//! version, for a rollback. `review` loads a component without grants and returns its present form,
//! to be shown first.
//!
//! Files are replaced atomically. The new lock file is synced to disk before the record is written,
//! and is renamed into place after it. If the process ends in between, the configuration is not
//! approved.

use std::collections::BTreeSet;
use std::path::PathBuf;

use toolcell::Component;
use toolcell::component::{ComponentBytes, LoadOptions, OnMissingGrant};

use super::Configuration;
use super::lock::Lock;
use crate::approval::lock::ApprovedVersion;
use crate::approval::trust::Approval;
use crate::approval::versions::Versions;
use crate::error::Error;
use crate::file::resolved::ResolvedComponent;
use crate::paths::atomic_file::{PendingFile, turn};
use crate::paths::files;
use crate::serving::engines::Engines;
use crate::serving::keys;

impl Configuration {
    /// Loads a component of this configuration and returns its current definitions and imports,
    /// which an operator reviews and [approves](Self::approve). No tool is called, and the
    /// component has no grants meanwhile.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown component name; other errors if the file cannot be read or
    /// loaded, or lacks the signature that the configuration demands.
    pub async fn review(
        &self,
        engines: &Engines,
        component: &str,
    ) -> Result<ApprovedVersion, Error> {
        let chosen = self.choose(component.as_ref())?;
        let (bytes, signer) = chosen.bytes()?;
        let engine = engines.of(chosen.isolation)?;
        let bytes = ComponentBytes::new(bytes, chosen.kind());
        let options = LoadOptions { missing: OnMissingGrant::Denied, ..LoadOptions::default() };
        let component = Component::load_with(engine, bytes, options).await?;
        Ok(ApprovedVersion::of(&component, signer.map(|signer| signer.publisher)))
    }

    /// Records that the user approved these components as they were shown, and removes the
    /// components in `gone`. The approved versions are kept in the state directory, for
    /// [`rollback`](Self::rollback).
    ///
    /// # Errors
    /// [`Error::File`]: another process has written the lock since `lock` was read, or a file
    /// cannot be written. Then nothing is approved.
    pub fn approve(
        &self,
        lock: &Lock,
        seen: &[(String, ApprovedVersion)],
        gone: &[String],
    ) -> Result<(), Error> {
        self.record(lock, seen, gone)?;
        for chosen in self.all() {
            let name = chosen.name().unwrap_or_default();
            if let Some((name, approved)) = seen.iter().find(|(seen, _)| seen == name) {
                self.keep_version(&chosen, approved, lock.components.get(name));
            }
        }
        Ok(())
    }

    /// Writes the lock and the user's record.
    pub(super) fn record(
        &self,
        lock: &Lock,
        seen: &[(String, ApprovedVersion)],
        gone: &[String],
    ) -> Result<(), Error> {
        let only = self.only_approved(lock, seen.iter().map(|(name, _)| name.as_str()), gone);
        let new = lock.with(seen.iter().cloned(), gone);
        let record = self
            .found
            .as_ref()
            .map(|found| found.approved(&new.text(), only.as_ref()))
            .transpose()?;
        // `prepare` compares the lock with what was read. Until it is replaced, no other process
        // may replace it.
        let _turn = turn(&lock.path);
        let written = new.prepare()?;
        if let Some(record) = record {
            record.put()?;
        }
        let put = written.map_or(Ok(()), PendingFile::put);
        put.map_err(|error| files::not_written(&lock.path, error))
    }

    /// Returns the components of the lock that this user has approved, including `seen`. `None`
    /// means all of them.
    #[must_use]
    pub fn only_approved<'a>(
        &self,
        lock: &Lock,
        seen: impl IntoIterator<Item = &'a str>,
        gone: &[String],
    ) -> Option<BTreeSet<String>> {
        let found = self.found.as_ref()?;
        // In a configuration that is new to this user, only the components that were shown are
        // approved.
        let before = if self.approval == Approval::Missing {
            BTreeSet::new()
        } else {
            found.only()?.clone()
        };
        let only: BTreeSet<_> = seen.into_iter().map(str::to_owned).chain(before).collect();
        let locked = lock.components.keys().chain(lock.others.keys());
        let mut all = self.components.keys().chain(locked.filter(|name| !gone.contains(name)));
        (!all.all(|name| only.contains(name))).then_some(only)
    }

    /// Returns the kept versions of a component. `None` without a state directory.
    pub(super) fn versions(&self, name: &str) -> Option<Versions> {
        Some(Versions::new(self.state_directory(Versions::DIRECTORY)?.join(name)))
    }

    /// Returns the directory below the state directory for this configuration's files of a kind,
    /// for example `api-keys`. No other configuration has the same one. `None` without a state
    /// directory or a file.
    #[must_use]
    pub fn state_directory(&self, kind: &str) -> Option<PathBuf> {
        let project = self.path.as_deref().map(keys::project)?;
        Some(self.options.state_dir.as_ref()?.join(kind).join(project))
    }

    /// Keeps the file of a component, if it is the version that was just approved. `before` is the
    /// version that was approved until then. A failure is logged: the approval is still valid.
    pub(super) fn keep_version(
        &self,
        chosen: &ResolvedComponent<'_>,
        approved: &ApprovedVersion,
        before: Option<&ApprovedVersion>,
    ) {
        let Some(name) = chosen.name() else { return };
        let Some(versions) = self.versions(name) else { return };
        let kept = files::component(&chosen.path).and_then(|bytes| {
            let signature = chosen.signature().map(|path| files::signature(&path));
            let signature = signature.transpose()?.flatten();
            versions.store(approved, before, &bytes, signature.as_deref())
        });
        if let Err(error) = kept {
            tracing::warn!(component = name, %error, "cannot keep a copy of the approved version");
        }
    }

    /// As `keep_version`, for a component that is used, unless that version is kept already.
    pub(super) fn keep_used_version(
        &self,
        chosen: &ResolvedComponent<'_>,
        approved: &ApprovedVersion,
    ) {
        let versions = chosen.name().and_then(|name| self.versions(name));
        if versions.is_some_and(|versions| !versions.has(approved)) {
            self.keep_version(chosen, approved, None);
        }
    }
}
