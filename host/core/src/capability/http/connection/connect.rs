//! Opens a byte stream to the first of the checked addresses that answers.
//!
//! [`connect`] takes the URL of a request, the addresses that passed the check in `resolve`, an
//! optional proxy, TLS settings and a deadline. It tries at most eight addresses, each for an equal
//! share of the remaining time. For `https` it then makes the TLS handshake. It returns the stream,
//! or a [`SendError`] in fixed words.
//! Invariants: this process and the operator's proxy connect only to the given addresses, and the
//! peer's address of a direct connection is compared again. The certificate must be that of the
//! host in the URL.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;
use toolcell_contract::grants::{Host, Target};

use crate::capability::http::{Proxy, SendError, TimeoutPhase};

/// Addresses that are tried: enough for both address families and a few hosts that are down.
const MAX_TRIED: usize = 8;

/// A byte stream in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(crate) async fn connect(
    target: &Target,
    addresses: &[IpAddr],
    proxy: Option<&Proxy>,
    tls: Arc<ClientConfig>,
    deadline: Instant,
) -> Result<Box<dyn Stream>, SendError> {
    let tried = &addresses[..addresses.len().min(MAX_TRIED)];
    let mut problem = SendError::Timeout(TimeoutPhase::Connect);
    for (index, address) in tried.iter().enumerate() {
        let address = SocketAddr::new(address.to_canonical(), target.port());
        // Each address gets a share of the time, so that an address that never answers leaves time
        // for the others.
        let left = deadline.saturating_duration_since(Instant::now());
        let share = Instant::now() + left / u32::try_from(tried.len() - index).unwrap_or(u32::MAX);
        match timeout_at(share.into(), connect_to(target, address, proxy)).await {
            Ok(Ok(stream)) => return secured(target, stream, tls).await,
            Ok(Err(error)) => problem = error,
            Err(_elapsed) => problem = SendError::Timeout(TimeoutPhase::Connect),
        }
    }
    Err(problem)
}

/// Connects to this address, through the proxy if there is one.
async fn connect_to(
    target: &Target,
    address: SocketAddr,
    proxy: Option<&Proxy>,
) -> Result<TcpStream, SendError> {
    if let Some(proxy) = proxy {
        return proxy.connect(address).await.map_err(|fault| SendError::unreachable(target, fault));
    }
    let unreachable = |error: io::Error| SendError::unreachable(target, error.kind());
    let stream = TcpStream::connect(address).await.map_err(unreachable)?;
    let is_same = |peer: SocketAddr| {
        (peer.ip().to_canonical(), peer.port()) == (address.ip(), address.port())
    };
    if stream.peer_addr().is_ok_and(is_same) {
        Ok(stream)
    } else {
        Err(SendError::unreachable(target, "another host answered"))
    }
}

async fn secured(
    target: &Target,
    stream: TcpStream,
    tls: Arc<ClientConfig>,
) -> Result<Box<dyn Stream>, SendError> {
    // Requests are written in one piece; an error here costs speed only.
    let _ = stream.set_nodelay(true);
    if target.scheme() != "https" {
        return Ok(Box::new(stream));
    }
    let name = match target.host() {
        Host::Address(address) => ServerName::IpAddress(address.into()),
        Host::Name(name) => ServerName::try_from(name).map_err(|_| {
            SendError::unreachable(target, "its name is not a valid DNS name for a certificate")
        })?,
    };
    let refused = |error: io::Error| {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        let problem = match cause {
            Some(rustls::Error::InvalidCertificate(fault)) => certificate_fault(fault),
            _ => "the TLS handshake failed",
        };
        SendError::unreachable(target, problem)
    };
    Ok(Box::new(TlsConnector::from(tls).connect(name, stream).await.map_err(refused)?))
}

/// Describes a fault of a certificate in fixed words.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "an operator cannot do anything about the other faults"
)]
fn certificate_fault(fault: &CertificateError) -> &'static str {
    match fault {
        CertificateError::UnknownIssuer => {
            "its certificate is not signed by a certificate authority that is trusted"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: compare the clock of this machine"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        CertificateError::Revoked => "its certificate was revoked",
        _ => "its certificate cannot be used",
    }
}
