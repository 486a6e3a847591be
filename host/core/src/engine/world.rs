//! What grants lead to: the same for every cell of an engine.

use std::fmt;
use std::sync::Arc;

use crate::egress::Egress;
use crate::kv::KeyStore;
use crate::secret::{SecretSource, StoredSecrets};

/// What grants lead to.
#[derive(Clone)]
pub(super) struct World {
    pub(super) egress: Egress,
    pub(super) secrets: Arc<dyn SecretSource>,
    pub(super) keys: Option<Arc<dyn KeyStore>>,
}

impl Default for World {
    fn default() -> Self {
        Self { egress: Egress::new(), secrets: Arc::new(StoredSecrets::default()), keys: None }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}
