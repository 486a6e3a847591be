//! Certificate authorities that `https` requests of tools trust, and the TLS settings made from
//! them.
//!
//! [`RootCertificates`] is a set of authorities: those of Mozilla's list by default, or an
//! operator's own from PEM text, alone or in addition. An operator passes it to
//! `Egress::with_root_certificates` or `Egress::replace`. `config` turns it into the settings of
//! the TLS library: HTTP/1.1 only, no client certificate, and no resumed sessions, so that a server
//! cannot tell that two tenants share a host.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use toolcell_contract::grants::InvalidRule;

/// The trusted certificate authorities.
///
/// # Defaults
/// Those of the public internet, from Mozilla's list.
#[derive(Debug, Clone)]
pub struct RootCertificates(RootCertStore);

impl RootCertificates {
    /// Creates an empty set. Add authorities with [`with_pem`](Self::with_pem).
    #[must_use]
    pub fn none() -> Self {
        Self(RootCertStore::empty())
    }

    /// Adds certificate authorities.
    ///
    /// # Shape
    /// Certificates as PEM, one after the other.
    ///
    /// # Errors
    /// [`InvalidRule`] if there is no certificate, or one cannot be read.
    pub fn with_pem(mut self, pem: &[u8]) -> Result<Self, InvalidRule> {
        let fault = |problem: &str| {
            let hint = "give one or more blocks that begin with `-----BEGIN CERTIFICATE-----`";
            InvalidRule::new("certificates to trust", problem, hint)
        };
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let certificates = certificates.map_err(|_| fault("they are not PEM"))?;
        if certificates.is_empty() {
            return Err(fault("there is no certificate"));
        }
        for certificate in certificates {
            let added = self.0.add(certificate);
            added.map_err(|_| fault("one of them cannot be read as a certificate"))?;
        }
        Ok(self)
    }

    /// Returns the TLS configuration. No session is resumed, so that two tenants look like two
    /// clients; HTTP/1.1 only. Not for embedders: for the server's own requests.
    #[doc(hidden)]
    #[must_use]
    pub fn config(self) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("this provider has what the default versions need");
        let mut config = versions.with_root_certificates(self.0).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::disabled();
        Arc::new(config)
    }
}

impl Default for RootCertificates {
    fn default() -> Self {
        Self(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect())
    }
}
