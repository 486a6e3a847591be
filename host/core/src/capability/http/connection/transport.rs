//! Current proxy and TLS settings of an `Egress`.
//!
//! An `Egress` holds one [`Transport`]. `Egress::replace` exchanges it at any time. A request takes
//! a copy before it connects and uses that copy to its end. The TLS settings are created with the
//! first request that connects.

use std::sync::{Arc, LazyLock};

use rustls::ClientConfig;

use crate::capability::http::{Proxy, RootCertificates};

/// The TLS settings, created with the first request, because most hosts never send one.
type Tls = LazyLock<Arc<ClientConfig>, Box<dyn FnOnce() -> Arc<ClientConfig> + Send>>;

/// The proxy and the trusted certificate authorities.
#[derive(Clone)]
pub(crate) struct Transport {
    pub(crate) proxy: Option<Proxy>,
    tls: Arc<Tls>,
}

impl Transport {
    pub(crate) fn new(
        proxy: Option<Proxy>,
        roots: impl FnOnce() -> RootCertificates + Send + 'static,
    ) -> Self {
        Self { proxy, tls: Arc::new(LazyLock::new(Box::new(|| roots().config()))) }
    }

    /// Returns the TLS settings.
    pub(crate) fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&**self.tls)
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self::new(None, RootCertificates::default)
    }
}
