//! Reload: configuration, lock and components are read again, and what changed is served from then
//! on.
//!
//! Invariants: a configuration or a lock that cannot be used changes nothing; calls that run end on
//! what they began with; a component with the same code and grants is not loaded again; of two
//! reloads at once, one waits for the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use parking_lot::{Mutex, RwLock};

use crate::trust::{Approval, Found};
use crate::{Configuration, Engines, Error, Loaded, Unapproved};

/// Serves a configuration, and reads it again when it is told to or when a file changes.
#[derive(Debug)]
pub struct Reloader {
    engines: Engines,
    current: RwLock<Arc<Loaded>>,
    /// What was read last. It is locked while it is read again.
    configuration: tokio::sync::Mutex<Configuration>,
    /// The files as they were before they were read last.
    seen: Mutex<Files>,
}

/// What a reload changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// Components that are served since.
    pub added: BTreeSet<String>,
    /// Components that are no longer served.
    pub removed: BTreeSet<String>,
    /// Components that were loaded anew: other code or other grants.
    pub replaced: BTreeSet<String>,
    /// Whether the list of tools is another one for its clients: a name or a definition changed.
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
        Ok(Self { engines, current, configuration, seen: Mutex::new(seen) })
    }

    /// What is served now. A caller that keeps it goes on with it after a reload.
    #[must_use]
    pub fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.current.read())
    }

    /// Reads everything again and serves it. Problems of single components are in
    /// [`Loaded::problems`].
    ///
    /// # Errors
    /// The configuration or the lock cannot be used, or the configuration was found and its user
    /// has not approved it in its present form. Then nothing changes.
    ///
    /// # Cancel safety
    /// May be dropped: nothing changes then.
    pub async fn reload(&self) -> Result<Reloaded, Error> {
        let mut current = self.configuration.lock().await;
        // Looked at before they are read: what changes in between is read by the next reload. Of a
        // configuration that cannot be read the files are those of the last one.
        let seen = Files::of(&current);
        *self.seen.lock() = seen.clone();
        let next = current.read_again()?;
        let seen = Files::of(&next).or_before(seen);
        if next.file.is_none() || next.approval == Approval::Missing {
            let file = current.file.as_deref().unwrap_or(crate::NAME);
            let message =
                format!("`{file}` changed, and you have not approved it in its present form");
            let hint = format!(
                "run {}: it shows what is new or changed and asks for your approval",
                next.hint.command("approve", &[], &[])
            );
            return Err(Error::not_approved(Unapproved::Configuration, message, hint));
        }
        let before = self.loaded();
        let loaded = next.load_over(&self.engines, Some(&before)).await?;
        let reloaded = Reloaded::between(&before, &loaded);
        self.engines.secrets.replace(next.secrets.clone());
        self.engines.egress.replace(next.network.proxy.clone(), next.network.roots.clone());
        *self.seen.lock() = seen;
        *self.current.write() = Arc::new(loaded);
        *current = next;
        Ok(reloaded)
    }

    /// Looks at the files `every` so often, and reloads when one of them has changed and is still
    /// the same at the next look. The stream has an item for each reload, also for one that loaded
    /// nothing anew: limits, tenants and problems can have changed. It never ends; it does nothing
    /// unless it is polled.
    ///
    /// The files are the configuration, its lock, the components and their signatures, and the
    /// files of secrets, of an issuer's keys and of certificate authorities. They are looked at by
    /// their times, sizes and numbers: that works for links, mounted volumes and network file
    /// systems too.
    pub fn changes(
        &self,
        every: Duration,
    ) -> impl Stream<Item = Result<Reloaded, Error>> + Send + '_ {
        futures_util::stream::unfold(self, move |reloader| async move {
            Some((reloader.next_change(every).await, reloader))
        })
    }

    /// The next item of [`changes`](Self::changes).
    ///
    /// # Errors
    /// As [`reload`](Self::reload).
    ///
    /// # Cancel safety
    /// May be dropped: the next one sees the change.
    pub async fn next_change(&self, every: Duration) -> Result<Reloaded, Error> {
        self.settled_change(every).await;
        self.reload().await
    }

    /// Waits until a file has changed and stays as it is for one look.
    async fn settled_change(&self, every: Duration) {
        let mut last = None;
        loop {
            tokio::time::sleep(every).await;
            let configuration = self.configuration.lock().await;
            let now = Files::of(&configuration);
            drop(configuration);
            let is_changed = now != *self.seen.lock();
            if is_changed && last.as_ref() == Some(&now) {
                return;
            }
            last = Some(now);
        }
    }
}

impl Reloaded {
    /// Whether the same components are served as before. Limits, tenants and problems can still
    /// have changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn between(before: &Loaded, after: &Loaded) -> Self {
        let digests = |loaded: &Loaded| -> BTreeMap<String, String> {
            loaded.components().map(|(name, digest)| (name.to_owned(), digest.to_owned())).collect()
        };
        let (old, new) = (digests(before), digests(after));
        let is_replaced = |name: &&String| match (before.served.get(*name), after.served.get(*name))
        {
            (Some(old), Some(new)) => !old.is_same(new),
            (None, _) | (_, None) => false,
        };
        Self {
            added: new.keys().filter(|name| !old.contains_key(*name)).cloned().collect(),
            removed: old.keys().filter(|name| !new.contains_key(*name)).cloned().collect(),
            replaced: new.keys().filter(is_replaced).cloned().collect(),
            definitions_changed: before.registry().list() != after.registry().list(),
        }
    }
}

/// How files look from outside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Files(BTreeMap<PathBuf, Option<Stamp>>);

/// Changes when a file is written or replaced: device, number, size, and both times to the
/// nanosecond.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

impl Files {
    /// All files that a configuration is read from.
    fn of(configuration: &Configuration) -> Self {
        let paths = configuration.files();
        Self(paths.into_iter().map(|path| (path.clone(), stamp(&path))).collect())
    }

    /// The same, with each file as it was before where it was looked at.
    fn or_before(mut self, before: Self) -> Self {
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
    /// The files that it is read from: itself, its lock, its approvals, components, signatures,
    /// secrets.
    fn files(&self) -> BTreeSet<PathBuf> {
        let own = self.source.iter().cloned().chain(self.path.is_some().then(|| self.lock.clone()));
        let components = self.all().flat_map(|chosen| {
            let signature = chosen.demand.map(|demand| demand.signature(&chosen.path));
            [Some(chosen.path), signature].into_iter().flatten()
        });
        let of_tenants = self.own_secrets.values().flat_map(|own| own.origins.values());
        let secrets = self
            .origins
            .values()
            .chain(of_tenants)
            .filter_map(|origin| origin.file().map(Path::to_owned));
        let approvals = self.found.iter().filter_map(Found::records);
        let keys = self.issuer.iter().filter_map(|issuer| issuer.keys.path().map(Path::to_owned));
        let network = self.network.files.iter().chain(&self.network.unread).cloned();
        own.chain(approvals).chain(keys).chain(network).chain(components).chain(secrets).collect()
    }
}
