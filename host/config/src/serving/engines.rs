//! Builds the engines of a configuration, with its secrets, its key-value store and its cache.
//!
//! An engine compiles and runs WebAssembly. A server calls `Configuration::engines`, changes
//! settings of the [`EnginesBuilder`] if needed, and builds [`Engines`]. There are two: one whose
//! cells (fresh WebAssembly instances, one for each call) take memory from a pool, and one with
//! strict isolation, which is created when a component first needs it. `of` returns the engine for
//! an isolation. Nothing passes from one engine to the other. A reload replaces the values of
//! secrets and the network settings for both at once.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use parking_lot::RwLock;
use toolcell::Engine;
use toolcell::http::Egress;
use toolcell::runtime::{EngineBuilder, InUse};
use toolcell::secrets::{KnownFuture, SecretError, SecretFuture, SecretSource, StoredSecrets};

use super::keys::Keys;
use crate::error::Error;
use crate::file::options::ReadOptions;
use crate::schema::Isolation;

/// Builds [`Engines`].
///
/// Those of [`Engine::builder`], with the configuration's secrets, proxy and certificate
/// authorities, and with keys, counts of granted directories and the cache in the directories of
/// [`ReadOptions`](crate::ReadOptions). Components are compiled in this process; a program that can
/// start itself as a child calls [`EngineBuilder::compile_in`] in [`with`](Self::with).
#[derive(Debug, Clone)]
#[must_use]
pub struct EnginesBuilder {
    builder: EngineBuilder,
    secrets: CurrentSecrets,
    egress: Egress,
}

/// The engines that run a configuration's components: one with a pool, and one with strict
/// isolation, which is created when a component first needs it. Cheap to clone; clones share the
/// engines.
#[derive(Debug, Clone)]
pub struct Engines {
    builder: EngineBuilder,
    pooled: Engine,
    strict: Arc<OnceLock<Engine>>,
    pub(crate) secrets: CurrentSecrets,
    /// A reload replaces its proxy and its certificate authorities.
    pub(crate) egress: Egress,
}

impl EnginesBuilder {
    /// Returns a builder with these secrets, this egress and these keys, and with the directories
    /// of the options.
    pub(crate) fn new(
        secrets: StoredSecrets,
        egress: Egress,
        keys: Keys,
        options: &ReadOptions,
    ) -> Self {
        let secrets = CurrentSecrets(Arc::new(RwLock::new(secrets)));
        let builder = Engine::builder().egress(egress.clone()).secrets(secrets.clone());
        let builder = builder.keys(keys);
        let builder = options
            .state_dir()
            .into_iter()
            .fold(builder, |builder, dir| builder.directory_counts(dir.join(Engines::COUNTS)));
        let builder =
            options.cache_dir.iter().fold(builder, |builder, dir: &PathBuf| builder.cache(dir));
        Self { builder, secrets, egress }
    }

    /// Changes other settings of the engines: cells, threads, a process for compiling.
    pub fn with(self, set: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        Self { builder: set(self.builder), ..self }
    }

    /// Changes other settings of tools' requests: a resolver, a callback for a request without a
    /// connection. The proxy and the certificate authorities stay those of the configuration, also
    /// after a reload.
    pub fn with_egress(self, set: impl FnOnce(Egress) -> Egress) -> Self {
        let egress = set(self.egress);
        Self { builder: self.builder.egress(egress.clone()), egress, ..self }
    }

    /// Creates the engine with the pool.
    ///
    /// # Errors
    /// Those of [`EngineBuilder::build`], for example a cache that other users can write to.
    pub fn build(self) -> Result<Engines, Error> {
        let Self { builder, secrets, egress } = self;
        let pooled = builder.clone().build()?;
        Ok(Engines { builder, pooled, strict: Arc::default(), secrets, egress })
    }
}

impl Engines {
    /// The folder of a state directory with the counts of granted directories, which processes
    /// share.
    pub const COUNTS: &str = "directories";

    /// Returns the engine for components of this isolation. A process uses strict cells too.
    ///
    /// # Errors
    /// Those of [`EngineBuilder::build`], if the engine has to be created.
    pub fn of(&self, isolation: Isolation) -> Result<&Engine, Error> {
        match isolation {
            Isolation::Pooled => Ok(&self.pooled),
            Isolation::Strict | Isolation::Process => {
                if let Some(engine) = self.strict.get() {
                    return Ok(engine);
                }
                let engine =
                    self.builder.clone().isolation(toolcell::runtime::Isolation::Strict).build()?;
                // If two threads create one at once, one is kept.
                Ok(self.strict.get_or_init(|| engine))
            }
        }
    }
}

impl Engines {
    /// Returns the current resource use of the engines, by the names of their isolation.
    pub fn in_use(&self) -> Vec<(&'static str, InUse)> {
        let strict = self.strict.get().map(|engine| ("strict", engine.in_use()));
        [("pooled", self.pooled.in_use())].into_iter().chain(strict).collect()
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
