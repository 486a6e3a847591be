//! The server side of TLS: loads a certificate with its key, and performs the handshake.
//!
//! An operator's certificate chain and private key are read from two PEM files into a [`Tls`],
//! which goes into the options of the listener. The listener calls `accept` with each new TCP
//! connection and gets the encrypted stream. TLS 1.2 and 1.3 are accepted, with HTTP/1.1 only;
//! clients need no certificate. A file that cannot be read, or a key that does not fit, is a
//! [`TlsError`].

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, version};
use tokio_rustls::server::TlsStream;

/// A certificate and its key, for TLS 1.2 and 1.3. Cheap to clone.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// The reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the TLS file `{path}`: {problem}")]
pub struct TlsError {
    path: PathBuf,
    problem: String,
}

impl Tls {
    /// Reads a chain of certificates and its private key from PEM files.
    ///
    /// # Errors
    /// [`TlsError`] if a file cannot be read, or the key does not fit the certificate.
    pub fn from_files(
        certificates: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, TlsError> {
        let (certificates, key) = (certificates.as_ref(), key.as_ref());
        let failed = |path: &Path, problem: &dyn fmt::Display| TlsError {
            path: path.to_owned(),
            problem: problem.to_string(),
        };
        let chain = CertificateDer::pem_file_iter(certificates)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| failed(certificates, &error))?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, &error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
        let mut config = config.map_err(|error| failed(certificates, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Performs the handshake.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(…)")
    }
}
