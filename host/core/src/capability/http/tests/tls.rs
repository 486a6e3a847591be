//! Tests of certificates: only one of the requested host, from a trusted authority, is accepted.
//! Each site is a TLS server with a certificate authority of its own.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use super::server::Scripted;
use super::*;

/// A certificate authority and a server with a certificate signed by it.
pub(super) struct Site {
    pub(super) server: Server,
    pub(super) authority: String,
}

/// Starts a site. `answer` gets the request's head and the server name of the TLS handshake.
pub(super) async fn start_site(
    names: &[&str],
    answer: impl Fn(&str, &str) -> String + Send + Sync + 'static,
) -> Site {
    valid_in(names, (1975, 4096), answer).await
}

/// Starts a server as [`start_site`] does. Its certificate is valid between the beginnings of these
/// years.
async fn valid_in(
    names: &[&str],
    (from, to): (i32, i32),
    answer: impl Fn(&str, &str) -> String + Send + Sync + 'static,
) -> Site {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = STANDARD.encode(params.self_signed(&key).unwrap().der());
    let authority =
        format!("-----BEGIN CERTIFICATE-----\n{authority}\n-----END CERTIFICATE-----\n");
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let names = names.iter().map(|name| (*name).to_owned());
    let mut certificate = CertificateParams::new(names.collect::<Vec<_>>()).unwrap();
    (certificate.not_before, certificate.not_after) =
        (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    let chain = vec![certificate.der().clone()];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
    let (acceptor, answer) = (TlsAcceptor::from(Arc::new(config)), Arc::new(answer));
    let server = Server::start(move |stream| {
        let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let name = stream.get_ref().1.server_name().unwrap_or("no name").to_owned();
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") && stream.read_buf(&mut read).await.unwrap_or(0) > 0
            {
            }
            let answer = answer(&String::from_utf8_lossy(&read), &name);
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    Site { server, authority }
}

/// Answers with the server name of the TLS handshake.
pub(super) fn echo_server_name(_: &str, name: &str) -> String {
    ok(name)
}

/// Trusts this authority and no others.
pub(super) fn only(authority: &str) -> RootCertificates {
    RootCertificates::none().with_pem(authority.as_bytes()).unwrap()
}

async fn request(site: &Site, host: &str, roots: RootCertificates) -> Result<Incoming, SendError> {
    let url = format!("https://{host}:{}/", site.server.port);
    let resolver = Scripted::new([["127.0.0.1"]]);
    let egress = Egress::new().with_resolver(resolver).with_root_certificates(roots);
    send(&egress, &loopback(&url), get(&url)).await
}

#[tokio::test]
async fn server_without_a_valid_certificate_is_refused() {
    let site = start_site(&["good.example", "127.0.0.1"], echo_server_name).await;
    let other = self::start_site(&["good.example"], echo_server_name).await;
    let sites = rows::<(&str, &str, &str, &str)>("capability/http/tls", "sites");
    for (host, trusted, expected, said) in sites {
        let roots = match trusted {
            "own" => only(&site.authority),
            "other" => only(&other.authority),
            "default and own" => {
                RootCertificates::default().with_pem(site.authority.as_bytes()).unwrap()
            }
            "default" => RootCertificates::default(),
            "none" => RootCertificates::none(),
            unknown => panic!("{unknown}"),
        };
        let result = request(&site, host, roots).await;
        assert_eq!(kind(&result), expected, "{host} with {trusted}: {result:?}");
        assert_eq!(result.map(|response| response.into_body()).unwrap_or_default(), said, "{host}");
    }
}

#[tokio::test]
async fn certificate_error_names_the_fault() {
    let faults = rows::<(&str, (_, _), bool, &str)>("capability/http/tls", "faults");
    for (host, years, is_trusted, expected) in faults {
        let site = valid_in(&["good.example"], years, echo_server_name).await;
        let roots = if is_trusted { only(&site.authority) } else { RootCertificates::default() };
        let fault = request(&site, host, roots).await.unwrap_err().to_string();
        assert!(fault.contains(&format!("its certificate {expected}")), "{fault}");
    }
}

#[tokio::test]
async fn plain_http_where_tls_was_granted_is_refused() {
    let server = Server::start(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    let site = Site { server, authority: String::new() };
    let result = request(&site, "good.example", RootCertificates::default()).await;
    assert_eq!(kind(&result), "unreachable");
}

#[test]
fn malformed_root_certificate_is_refused() {
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    for pem in ["", "hello", key, nonsense, cut] {
        let fault = RootCertificates::none().with_pem(pem.as_bytes()).unwrap_err();
        assert!(fault.hint.contains("BEGIN CERTIFICATE"), "{fault}");
    }
}
