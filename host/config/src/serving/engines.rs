//! Builds the engines of a configuration, with its secrets, its key-value store and its cache.
//!
//! An engine compiles and runs WebAssembly. A server or a command calls `Configuration::engines`
//! and changes settings of these [`Engines`] if needed. There are two: one whose cells take memory
//! from a pool, and one with strict isolation. `of` returns the engine for an isolation, and
//! creates it at the first use; `build` creates the first one at once. Nothing passes from one
//! engine to the other. A reload replaces the values of secrets and the network settings for both
//! at once.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use parking_lot::RwLock;
use toolcell::Engine;
use toolcell::http::Egress;
use toolcell::runtime::{EngineBuilder, InUse};
use toolcell::secrets::{KnownFuture, SecretError, SecretFuture, SecretSource, StoredSecrets};

use super::keys;
use crate::error::Error;
use crate::file::options::ReadOptions;
use crate::schema::Isolation;

/// The folder of a state directory with the counts of granted directories, which processes share.
const COUNTS: &str = "directories";

/// The engines that run a configuration's components: one with a pool, and one with strict
/// isolation, each created when a component first needs it. Cheap to clone; clones share the
/// engines.
///
/// # Defaults
/// Those of [`Engine::builder`], with the configuration's secrets, proxy and certificate
/// authorities, and with keys, counts of granted directories and the cache in the directories of
/// [`ReadOptions`](crate::ReadOptions). Components are compiled in this process; a program that can
/// start itself as a child calls [`EngineBuilder::compile_in`] in [`with`](Self::with).
#[derive(Debug, Clone)]
#[must_use]
pub struct Engines {
    builder: EngineBuilder,
    pooled: Arc<OnceLock<Engine>>,
    strict: Arc<OnceLock<Engine>>,
    pub(crate) secrets: CurrentSecrets,
    /// A reload replaces its proxy and its certificate authorities.
    pub(crate) egress: Egress,
}

impl Engines {
    /// Returns engines with these secrets and this egress, with the keys of this configuration, and
    /// with the directories of the options.
    pub(crate) fn new(
        secrets: StoredSecrets,
        egress: Egress,
        config: Option<&Path>,
        options: &ReadOptions,
    ) -> Self {
        let secrets = CurrentSecrets(Arc::new(RwLock::new(secrets)));
        let mut builder = Engine::builder().egress(egress.clone()).secrets(secrets.clone());
        if let Some(state) = &options.state_dir {
            builder = builder.keys(keys::store(state, config)).directory_counts(state.join(COUNTS));
        }
        if let Some(cache) = &options.cache_dir {
            builder = builder.cache(cache);
        }
        let (pooled, strict) = (Arc::default(), Arc::default());
        Self { builder, pooled, strict, secrets, egress }
    }

    /// Changes other settings: cells, threads, a process for compiling. Engines that exist already
    /// keep their settings: the result creates its own.
    pub fn with(self, set: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        let (pooled, strict) = (Arc::default(), Arc::default());
        Self { builder: set(self.builder), pooled, strict, ..self }
    }

    /// Changes other settings of tools' requests: a resolver, a callback for a request without a
    /// connection. The proxy and the certificate authorities stay those of the configuration, also
    /// after a reload.
    pub fn with_egress(self, set: impl FnOnce(Egress) -> Egress) -> Self {
        let egress = set(self.egress.clone());
        Self { egress: egress.clone(), ..self.with(|builder| builder.egress(egress)) }
    }

    /// Creates the engine with the pool now.
    ///
    /// # Errors
    /// Those of [`EngineBuilder::build`], for example a cache that other users can write to.
    pub fn build(self) -> Result<Self, Error> {
        self.of(Isolation::Pooled)?;
        Ok(self)
    }

    /// Returns the engine for components of this isolation. A process uses strict cells too.
    ///
    /// # Errors
    /// Those of [`EngineBuilder::build`], if the engine has to be created.
    pub fn of(&self, isolation: Isolation) -> Result<&Engine, Error> {
        let builder = self.builder.clone();
        let (kept, builder) = match isolation {
            Isolation::Pooled => (&self.pooled, builder),
            Isolation::Strict | Isolation::Process => {
                (&self.strict, builder.isolation(toolcell::runtime::Isolation::Strict))
            }
        };
        if let Some(engine) = kept.get() {
            return Ok(engine);
        }
        let engine = builder.build()?;
        // If two threads create one at once, one is kept.
        Ok(kept.get_or_init(|| engine))
    }

    /// Returns the current resource use of the engines, by the names of their isolation.
    pub fn in_use(&self) -> Vec<(&'static str, InUse)> {
        [("pooled", &self.pooled), ("strict", &self.strict)]
            .into_iter()
            .filter_map(|(name, engine)| Some((name, engine.get()?.in_use())))
            .collect()
    }
}

/// The values of secrets. A reload replaces them.
#[derive(Debug, Clone)]
pub(crate) struct CurrentSecrets(Arc<RwLock<StoredSecrets>>);

impl CurrentSecrets {
    /// Uses these values for all later calls.
    pub(crate) fn replace(&self, secrets: StoredSecrets) {
        *self.0.write() = secrets;
    }
}

impl SecretSource for CurrentSecrets {
    fn secret<'a>(&'a self, tenant: Option<&'a str>, name: &'a str) -> SecretFuture<'a> {
        // The future of stored secrets is ready immediately.
        let found = self.0.read().secret(tenant, name).now_or_never();
        Box::pin(std::future::ready(
            found.unwrap_or_else(|| Err(SecretError::new("its value is not loaded yet"))),
        ))
    }

    fn known<'a>(&'a self, tenant: Option<&'a str>) -> KnownFuture<'a> {
        let found = self.0.read().known(tenant).now_or_never();
        let unread = || Err(SecretError::new("the values of the secrets are not loaded yet"));
        Box::pin(std::future::ready(found.unwrap_or_else(unread)))
    }
}
