//! The embedder's resources that grants give access to, shared by all cells of an engine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use super::descriptors::Descriptors;
use super::recorder::Recorder;
use super::shares::IoPool;
use crate::egress::{Egress, Redactors};
use crate::kv::KeyStore;
use crate::secret::{SecretSource, StoredSecrets};

/// The resources and settings that an engine's cells share.
#[derive(Clone)]
pub(super) struct EngineResources {
    pub(super) egress: Egress,
    pub(super) secrets: Arc<dyn SecretSource>,
    pub(super) redactors: Arc<Redactors>,
    pub(super) keys: Option<Arc<dyn KeyStore>>,
    /// The directory in which processes share the usage counts of granted directories.
    pub(super) counts: Option<PathBuf>,
    pub(super) time: Time,
    pub(super) seed: Option<u64>,
    /// The recorder of a dry run.
    pub(super) recorder: Option<Recorder>,
    pub(super) descriptors: Arc<Descriptors>,
    /// Threads that wait for the files of guests. They are separate from those of the store, which
    /// is the embedder's, so that neither delays the other.
    pub(super) for_files: Arc<IoPool>,
    pub(super) for_keys: Arc<IoPool>,
}

/// The time that a cell's clocks tell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Time {
    /// The date at which each call begins; `None`: the host's date.
    pub(super) start: Option<SystemTime>,
    pub(super) pace: Pace,
}

/// Tells if time passes within a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Pace {
    #[default]
    Running,
    Frozen,
}

impl Default for EngineResources {
    fn default() -> Self {
        Self {
            egress: Egress::new(),
            secrets: Arc::new(StoredSecrets::default()),
            redactors: Arc::default(),
            keys: None,
            counts: None,
            time: Time::default(),
            seed: None,
            recorder: None,
            descriptors: Descriptors::of_process(),
            for_files: IoPool::new("toolcell-files"),
            for_keys: IoPool::new("toolcell-keys"),
        }
    }
}

impl fmt::Debug for EngineResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}
