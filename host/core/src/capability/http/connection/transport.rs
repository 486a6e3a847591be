//! Current proxy and TLS settings of an `Egress`, and the callback for requests that get no
//! connection.
//!
//! An `Egress` holds one [`Transport`]. `Egress::replace` exchanges it at any time. A request takes
//! a copy before it connects and uses that copy to its end. The TLS settings are created with the
//! first request that connects.
//! [`Unconnected`] is a guard around the connecting stage: when it is dropped before a connection
//! was made, also by a timeout, it calls the operator's callback. A request that was refused before
//! does not count.

use std::sync::{Arc, LazyLock};

use rustls::ClientConfig;

use crate::capability::http::{Proxy, RootCertificates, SendError};

/// The TLS settings, created with the first request, because most hosts never send one.
type Tls = LazyLock<Arc<ClientConfig>, Box<dyn FnOnce() -> Arc<ClientConfig> + Send>>;

/// The proxy and the trusted certificate authorities.
#[derive(Clone)]
pub(in crate::capability::http) struct Transport {
    pub(in crate::capability::http) proxy: Option<Proxy>,
    tls: Arc<Tls>,
}

impl Transport {
    pub(in crate::capability::http) fn new(proxy: Option<Proxy>, roots: RootCertificates) -> Self {
        Self { proxy, tls: Arc::new(LazyLock::new(Box::new(|| roots.config()))) }
    }

    /// Returns the TLS settings.
    pub(in crate::capability::http) fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&**self.tls)
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            proxy: None,
            tls: Arc::new(LazyLock::new(Box::new(|| RootCertificates::default().config()))),
        }
    }
}

/// Reports on drop that a request got no connection. A request that is dropped because its time is
/// over is reported too.
pub(in crate::capability::http) struct Unconnected(
    pub(in crate::capability::http) Option<Arc<dyn Fn() + Send + Sync>>,
);

impl Unconnected {
    /// Cancels the report for a request that was refused.
    pub(in crate::capability::http) fn note_error(&mut self, error: &SendError) {
        if !matches!(error, SendError::Unreachable(_) | SendError::Timeout(_)) {
            self.0 = None;
        }
    }
}

impl Drop for Unconnected {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            callback();
        }
    }
}
