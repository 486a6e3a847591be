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
use std::time::Duration;

use futures_util::Stream;
use parking_lot::RwLock;
use tokio::sync::Mutex;

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
    /// Locked during a reload.
    last: Mutex<LastRead>,
}

/// The result of the last reload.
#[derive(Debug)]
struct LastRead {
    /// The configuration that was used last.
    configuration: Configuration,
    /// The state of the files before they were last read.
    files: Files,
    /// True if the configuration could not be read at the last reload.
    is_unread: bool,
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
        let files = configuration.files();
        let current = RwLock::new(Arc::new(configuration.load(&engines).await?));
        let last = LastRead { configuration, files, is_unread: false };
        Ok(Self { engines, current, last: Mutex::new(last) })
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
        let mut last = self.last.lock().await;
        // Taken before the files are read, so that the next reload sees later changes. If a
        // configuration cannot be read, its files are those of the last one.
        last.files = last.configuration.files();
        let next = last.configuration.read_again();
        last.is_unread = next.is_err();
        let next = next?;
        let mut files = next.files();
        for (path, stamp) in &mut files {
            *stamp = last.files.get(path).copied().unwrap_or(*stamp);
        }
        if next.file.is_none() || next.approval == Approval::Missing {
            let file = last.configuration.file.as_deref().unwrap_or(NAME);
            let message =
                format!("`{file}` changed, and you have not approved it in its present form");
            let hint = next.how_to_approve("what is new or changed", &[]);
            return Err(Error::not_approved(Unapproved::Configuration, message, hint));
        }
        let before = self.loaded();
        // If this is dropped, the next check finds the files changed again.
        let seen = std::mem::take(&mut last.files);
        let loaded = next.load_over(&self.engines, Some(&before)).await;
        last.files = seen;
        let loaded = loaded?;
        let reloaded = ReloadChanges::between(&before, &loaded);
        self.engines.secrets.replace(next.secrets.clone());
        next.network.apply(&self.engines.egress);
        *self.current.write() = Arc::new(loaded);
        *last = LastRead { configuration: next, files, is_unread: false };
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
        let mut before = None;
        loop {
            tokio::time::sleep(every).await;
            let last = self.last.lock().await;
            let now = last.configuration.files();
            let is_changed =
                now != last.files || last.is_unread && last.configuration.read_again().is_ok();
            drop(last);
            if is_changed && before.as_ref() == Some(&now) {
                return;
            }
            before = is_changed.then_some(now);
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

/// The state of files.
type Files = BTreeMap<PathBuf, Option<Stamp>>;

/// The part of a file's metadata that changes when it is written or replaced: device, inode, size,
/// and both times in nanoseconds.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    let (written, changed) =
        ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    Some((found.dev(), found.ino(), found.size(), written, changed))
}

impl Configuration {
    /// Returns the state of the files that it is read from: itself, its lock, its approvals,
    /// components, signatures, secrets.
    fn files(&self) -> Files {
        let guarded = self.guarded.unwritten.iter().chain(&self.guarded.unread).cloned();
        let signatures = self.all().filter_map(|chosen| chosen.signature());
        let approvals = self.found.iter().filter_map(FoundConfiguration::records);
        let paths = guarded.chain(signatures).chain(approvals);
        paths.map(|path| (path.clone(), stamp(&path))).collect()
    }
}
