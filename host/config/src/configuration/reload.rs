//! Reloads a configuration: reads the configuration, the lock file (approvals) and the components
//! again, and serves the new versions.
//!
//! A server creates a [`Reloader`], which loads the configuration once; `loaded` returns the
//! version that is served now. `reload` reads everything again and returns a [`ReloadChanges`] with
//! the components that were added, removed or replaced. `changes` is a stream that watches the
//! files and reloads once a changed file is stable.
//!
//! A configuration or a lock file that cannot be used changes nothing. Running calls finish on the
//! version that they started with. A component with the same code and grants is not loaded again.
//! Concurrent reloads run one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::Stream;
use parking_lot::{Mutex, RwLock};

use super::Configuration;
use crate::approval::trust::{Approval, FoundConfiguration};
use crate::error::{Error, Unapproved};
use crate::schema::NAME;
use crate::serving::engines::Engines;
use crate::serving::loaded::{LoadedTools, Served};

/// Serves a configuration, and reloads it on request or when a file changes.
#[derive(Debug)]
pub struct Reloader {
    engines: Engines,
    current: RwLock<Arc<LoadedTools>>,
    /// The configuration that was read last. Locked during a reload.
    configuration: tokio::sync::Mutex<Configuration>,
    /// The state of the files before they were last read.
    last_files: Mutex<Files>,
    /// True if the configuration could not be read at the last reload.
    is_unread: AtomicBool,
}

/// The changes that a reload made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReloadChanges {
    /// Components that are newly served.
    pub added: BTreeSet<String>,
    /// Components that are no longer served.
    pub removed: BTreeSet<String>,
    /// Components that were loaded again, with other code or other grants.
    pub replaced: BTreeSet<String>,
    /// True if the list of tools changed for clients: a name or a definition.
    pub definitions_changed: bool,
}

impl Reloader {
    /// Loads a configuration for the first time.
    ///
    /// # Errors
    /// As [`Configuration::load`].
    pub async fn start(configuration: Configuration, engines: Engines) -> Result<Self, Error> {
        let seen = Files::of(&configuration);
        let current = Arc::new(configuration.load(&engines).await?);
        let (current, configuration) =
            (RwLock::new(current), tokio::sync::Mutex::new(configuration));
        let (last_files, is_unread) = (Mutex::new(seen), AtomicBool::new(false));
        Ok(Self { engines, current, configuration, last_files, is_unread })
    }

    /// Returns the version that is served now. A caller that keeps it still has that version after
    /// a reload.
    #[must_use]
    pub fn loaded(&self) -> Arc<LoadedTools> {
        Arc::clone(&self.current.read())
    }

    /// Reads everything again and serves it. The problems of single components are in
    /// [`LoadedTools::problems`].
    ///
    /// # Errors
    /// Fails if the configuration or the lock cannot be used, or if the configuration was found and
    /// its user has not approved it in its present form. Then nothing changes.
    ///
    /// # Cancel safety
    /// May be dropped. Then nothing changes.
    pub async fn reload(&self) -> Result<ReloadChanges, Error> {
        let mut current = self.configuration.lock().await;
        // Taken before the files are read, so that the next reload sees later changes. If a
        // configuration cannot be read, its files are those of the last one.
        let seen = Files::of(&current);
        *self.last_files.lock() = seen.clone();
        let next = current.read_again();
        self.is_unread.store(next.is_err(), Ordering::Relaxed);
        let next = next?;
        let seen = Files::of(&next).with_earlier(seen);
        if next.file.is_none() || next.approval == Approval::Missing {
            let file = current.file.as_deref().unwrap_or(NAME);
            let message =
                format!("`{file}` changed, and you have not approved it in its present form");
            let hint = next.how_to_approve("what is new or changed", &[]);
            return Err(Error::not_approved(Unapproved::Configuration, message, hint));
        }
        let before = self.loaded();
        let loaded = next.load_over(&self.engines, Some(&before)).await?;
        let reloaded = ReloadChanges::between(&before, &loaded);
        self.engines.secrets.replace(next.secrets.clone());
        self.engines
            .egress
            .replace(next.network.proxy.clone(), next.network.root_certificates.clone());
        *self.last_files.lock() = seen;
        *self.current.write() = Arc::new(loaded);
        *current = next;
        Ok(reloaded)
    }

    /// Checks the files at the interval `every`, and reloads if one of them has changed and is
    /// unchanged at the next check. The stream has an item for each reload, even if no component
    /// was loaded: limits, tenants and problems can have changed. It never ends, and does nothing
    /// unless it is polled.
    ///
    /// The files are the configuration, its lock, the components and their signatures, and the
    /// files of secrets, of an issuer's keys and of certificate authorities. Changes are detected
    /// by times, size and inode, which also works for links, mounted volumes and network file
    /// systems. A configuration that cannot be read is tried again at each check, because its
    /// problem can be mended in a file that only it names.
    pub fn changes(
        &self,
        every: Duration,
    ) -> impl Stream<Item = Result<ReloadChanges, Error>> + Send + '_ {
        futures_util::stream::unfold(self, move |reloader| async move {
            Some((reloader.next_change(every).await, reloader))
        })
    }

    /// Returns the next item of [`changes`](Self::changes).
    ///
    /// # Errors
    /// As [`reload`](Self::reload).
    ///
    /// # Cancel safety
    /// May be dropped: the next call sees the change.
    pub async fn next_change(&self, every: Duration) -> Result<ReloadChanges, Error> {
        self.settled_change(every).await;
        self.reload().await
    }

    /// Waits until a file has changed and is unchanged at the following check, or until a
    /// configuration that could not be read can be, at two checks.
    async fn settled_change(&self, every: Duration) {
        let (mut last, mut was_mended) = (None, false);
        loop {
            tokio::time::sleep(every).await;
            let configuration = self.configuration.lock().await;
            let now = Files::of(&configuration);
            let is_changed = now != *self.last_files.lock();
            let is_mended = !is_changed
                && self.is_unread.load(Ordering::Relaxed)
                && configuration.read_again().is_ok();
            drop(configuration);
            if is_mended && was_mended || is_changed && last.as_ref() == Some(&now) {
                return;
            }
            (last, was_mended) = (Some(now), is_mended);
        }
    }
}

impl ReloadChanges {
    fn between(before: &LoadedTools, after: &LoadedTools) -> Self {
        let (old, new) = (&before.served, &after.served);
        let is_replaced = |(name, new): &(&String, &Served)| {
            old.get(*name).is_some_and(|old| old.source != new.source)
        };
        let replaced = new.iter().filter(is_replaced).map(|(name, _)| name.clone());
        Self {
            added: new.keys().filter(|name| !old.contains_key(*name)).cloned().collect(),
            removed: old.keys().filter(|name| !new.contains_key(*name)).cloned().collect(),
            replaced: replaced.collect(),
            definitions_changed: before.registry().list() != after.registry().list(),
        }
    }
}

/// The metadata of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Files(BTreeMap<PathBuf, Option<Stamp>>);

/// The part of a file's metadata that changes when it is written or replaced: device, inode, size,
/// and both times in nanoseconds.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

impl Files {
    /// Returns the state of all files that a configuration is read from.
    fn of(configuration: &Configuration) -> Self {
        let paths = configuration.files();
        Self(paths.into_iter().map(|path| (path.clone(), stamp(&path))).collect())
    }

    /// Returns the same files, with the earlier state where there is one.
    fn with_earlier(mut self, before: Self) -> Self {
        for (path, stamp) in before.0 {
            self.0.entry(path).and_modify(|now| *now = stamp);
        }
        self
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    let (written, changed) =
        ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    Some((found.dev(), found.ino(), found.size(), written, changed))
}

impl Configuration {
    /// Returns the files that it is read from: itself, its lock, its approvals, components,
    /// signatures, secrets.
    fn files(&self) -> BTreeSet<PathBuf> {
        let own = self.source.iter().cloned().chain(self.path.is_some().then(|| self.lock.clone()));
        let components = self.all().flat_map(|chosen| {
            let signature = chosen.signature();
            std::iter::once(chosen.path).chain(signature)
        });
        let secrets = self.secret_files();
        let approvals = self.found.iter().filter_map(FoundConfiguration::records);
        let keys = self.issuer.iter().filter_map(|issuer| issuer.keys.path().map(Path::to_owned));
        let network = self.network.files.iter().chain(&self.network.unread).cloned();
        own.chain(approvals).chain(keys).chain(network).chain(components).chain(secrets).collect()
    }
}
