//! Resources and settings of an engine that all of its cells share.
//!
//! A cell is the store of one call. [`EngineResources`] is made when an engine is built, from the
//! choices of the embedder (the program that uses this library): the HTTP client, the source of
//! secrets, the key-value store, the clock, the seed of random numbers, the recorder of a dry run
//! (a run without effects). It also has the thread pools for files and keys, the cache of
//! redactors, and the bound on open files.
//! Host functions reach it through the cell and use a resource after they have checked the rights
//! of the call. The defaults give no secrets and no store.

use std::{fmt, path::PathBuf, sync::Arc, time::SystemTime};

use super::{bounds::blocking_pool::IoPool, recorder::Recorder};
use crate::capability::http::Egress;
use crate::capability::kv::KeyStore;
use crate::secrets::redact::Redactors;
use crate::secrets::secret::{SecretSource, StoredSecrets};
use crate::tenant::{descriptors, share::Share};

/// The resources and settings that an engine's cells share.
#[derive(Clone)]
pub(crate) struct EngineResources {
    pub(crate) egress: Egress,
    pub(crate) secrets: Arc<dyn SecretSource>,
    pub(super) redactors: Arc<Redactors>,
    pub(crate) keys: Option<Arc<dyn KeyStore>>,
    /// The directory in which processes share the usage counts of granted directories.
    pub(crate) counts: Option<PathBuf>,
    pub(crate) deterministic: Deterministic,
    /// The recorder of a dry run.
    pub(crate) recorder: Option<Recorder>,
    pub(crate) descriptors: Arc<Share>,
    /// Threads that wait for the files of guests. They are separate from those of the store, which
    /// is the embedder's, so that neither delays the other.
    pub(super) for_files: Arc<IoPool>,
    pub(crate) for_keys: Arc<IoPool>,
}

/// The clocks and the random numbers of calls, fixed for runs that are to be repeated exactly.
///
/// # Defaults
/// The host's date, running clocks, random numbers of the operating system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deterministic {
    /// The date at which the clock of each call starts. `None`: the host's date.
    pub now: Option<SystemTime>,
    /// True if the clocks stop during each call: they tell the time of its start. Sleeping still
    /// takes its time.
    pub frozen_clock: bool,
    /// Each call's random numbers are derived from this seed and the call's id. They are then
    /// predictable. `None`: they come from the operating system, anew for each cell.
    pub seed: Option<u64>,
}

impl Default for EngineResources {
    fn default() -> Self {
        Self {
            egress: Egress::new(),
            secrets: Arc::new(StoredSecrets::default()),
            redactors: Arc::default(),
            keys: None,
            counts: None,
            deterministic: Deterministic::default(),
            recorder: None,
            descriptors: descriptors::of_process(),
            for_files: IoPool::new("toolcell-files"),
            for_keys: IoPool::new("toolcell-keys"),
        }
    }
}

impl fmt::Debug for EngineResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineResources").finish_non_exhaustive()
    }
}
