//! TLS: a client that trusts the certificate is served; a connection without TLS gets no answer.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use toolcell_server::auth::PublishedKeys;
use toolcell_server::listener::Tls;
use toolcell_server::{Authenticator, ListenOptions, Service};

use crate::http::fixture::{served, tools};
use crate::setup::start;

/// A certificate for `localhost`, with its key, as PEM files.
struct Certified {
    dir: TempDir,
    der: CertificateDer<'static>,
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

impl Certified {
    fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cert.pem"), pem("CERTIFICATE", cert.der())).unwrap();
        fs::write(dir.path().join("key.pem"), pem("PRIVATE KEY", &signing_key.serialize_der()))
            .unwrap();
        Self { dir, der: cert.der().clone() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    async fn serve(&self) -> SocketAddr {
        let tls =
            Tls::from_files(self.file("cert.pem"), self.file("key.pem")).expect("a good pair");
        let service = Service::builder(served(&tools().0)).build().unwrap();
        let options = ListenOptions { tls: Some(tls), ..ListenOptions::default() };
        start(service, Authenticator::open(), options).await
    }

    /// Returns the answer to a client that trusts this certificate.
    async fn ask(
        &self,
        address: SocketAddr,
        version: &'static SupportedProtocolVersion,
    ) -> io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).map_err(io::Error::other)?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .map_err(io::Error::other)?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        stream
            .write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn client_trusting_the_certificate_is_served() {
    let certified = Certified::new();
    let address = certified.serve().await;
    // A client that never begins its handshake delays no other.
    let _silent = TcpStream::connect(address).await.expect("it listens");
    for version in [&TLS13, &TLS12] {
        let answer = certified.ask(address, version).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    let other =
        Certified::new().ask(address, &TLS13).await.expect_err("the certificate is not trusted");
    let other = other.to_string();
    assert!(other.contains("UnknownIssuer") || other.contains("BadSignature"), "{other}");
    // The server's own requests trust only the authorities of the public internet.
    let keys = PublishedKeys::at(format!("https://localhost:{}/ready", address.port()));
    let fetched = keys.expect("a URL").fetch().await.expect_err("the certificate is not trusted");
    assert!(fetched.to_string().contains("invalid peer certificate"), "{fetched}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cleartext_connection_gets_no_answer() {
    let address = Certified::new().serve().await;
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("it reads");
    let mut answer = Vec::new();
    // It is closed, at most after a TLS alert.
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP"), "{answer:?}");
}

#[test]
fn unusable_tls_files_are_errors_naming_the_file() {
    let (one, other) = (Certified::new(), Certified::new());
    fs::write(one.file("empty.pem"), "").unwrap();
    let failed =
        |cert: &Path, key: &Path| Tls::from_files(cert, key).expect_err("no good pair").to_string();
    let (cert, key, empty) = (one.file("cert.pem"), one.file("key.pem"), one.file("empty.pem"));
    for (cert, key, named) in [
        (&cert, &other.file("key.pem"), &cert),
        (&empty, &key, &empty),
        (&cert, &empty, &empty),
        (&cert, &one.file("absent.pem"), &one.file("absent.pem")),
    ] {
        let told = failed(cert, key);
        assert!(told.contains(&*named.to_string_lossy()), "{told}");
    }
}
