//! How servers are reached and trusted, and what is told when one is not reached.
//!
//! Invariants: a request uses one way from its beginning to its end, also where another one
//! replaces it meanwhile.

use std::sync::{Arc, LazyLock};

use rustls::ClientConfig;

use super::{Proxy, Roots, SendError};

/// The TLS settings, made with the first request: most hosts never send one.
type Tls = LazyLock<Arc<ClientConfig>, Box<dyn FnOnce() -> Arc<ClientConfig> + Send>>;

/// How servers are reached and trusted.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) proxy: Option<Proxy>,
    tls: Arc<Tls>,
}

impl Way {
    pub(super) fn new(proxy: Option<Proxy>, roots: Roots) -> Self {
        Self { proxy, tls: Arc::new(LazyLock::new(Box::new(|| roots.config()))) }
    }

    /// The TLS settings.
    pub(super) fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&**self.tls)
    }
}

impl Default for Way {
    fn default() -> Self {
        Self { proxy: None, tls: Arc::new(LazyLock::new(Box::new(|| Roots::default().config()))) }
    }
}

/// Tells, when it is dropped, that a request has no connection: also of a request that is given up
/// because its time is over.
pub(super) struct Unconnected(pub(super) Option<Arc<dyn Fn() + Send + Sync>>);

impl Unconnected {
    /// Tells nothing of a request that was refused.
    pub(super) fn judge(&mut self, error: &SendError) {
        if !matches!(error, SendError::Unreachable(_) | SendError::Timeout(_)) {
            self.0 = None;
        }
    }
}

impl Drop for Unconnected {
    fn drop(&mut self) {
        if let Some(told) = self.0.take() {
            told();
        }
    }
}
