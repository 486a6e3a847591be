//! Records an approval in the lock beside the configuration and, for a configuration that was
//! found, in the user's own record.
//!
//! Invariants: files are replaced atomically; the lock is synced to disk before the record is
//! written, and is renamed into place after it. If the process ends in between, the configuration
//! is not approved.

use std::collections::BTreeSet;

use toolcell::component::{ComponentBytes, OnMissingGrant};
use toolcell::{Component, Grants};

use crate::approval::lock::Approved;
use crate::approval::trust::Approval;
use crate::{Configuration, Engines, Error, Lock};

impl Configuration {
    /// Loads a component of this configuration and returns its current definitions and imports,
    /// which an operator reviews and [approves](Self::approve). No tool is called, and the
    /// component has no grants meanwhile.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown component name; other errors if the file cannot be read or
    /// loaded, or lacks the signature that the configuration demands.
    pub async fn review(&self, engines: &Engines, component: &str) -> Result<Approved, Error> {
        let chosen = self.choose(component.as_ref())?;
        let (bytes, signer) = chosen.bytes()?;
        let engine = engines.of(chosen.isolation)?;
        let bytes = ComponentBytes::new(bytes, chosen.kind());
        let component =
            Component::load_with(engine, bytes, Grants::default(), OnMissingGrant::Denied).await?;
        Ok(Approved::of(&component, signer.map(|signer| signer.publisher)))
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
        seen: &[(String, Approved)],
        gone: &[String],
    ) -> Result<(), Error> {
        self.record(lock, seen, gone)?;
        for chosen in self.all() {
            let name = chosen.configured.map_or("", |(name, _)| name);
            if let Some((name, approved)) = seen.iter().find(|(seen, _)| seen == name) {
                self.keep_version(&chosen, approved, lock.components.get(name));
            }
        }
        Ok(())
    }

    /// Writes the lock and the user's record.
    pub(crate) fn record(
        &self,
        lock: &Lock,
        seen: &[(String, Approved)],
        gone: &[String],
    ) -> Result<(), Error> {
        let only = self.only_approved(lock, seen.iter().map(|(name, _)| name.as_str()), gone);
        let new = lock.with(seen.iter().cloned(), gone);
        let record = self
            .found
            .as_ref()
            .map(|found| found.approved(&new.text(), only.as_ref()))
            .transpose()?;
        let written = new.prepare()?;
        if let Some(record) = record {
            record.put()?;
        }
        let put = written.map_or(Ok(()), crate::paths::atomic_file::PendingFile::put);
        let failed = |error| {
            let message = format!("cannot write `{}`", lock.display_path());
            Error::caused(
                message,
                error,
                "check that its directory is writable and its disk is not full",
            )
        };
        put.map_err(failed)
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
}
