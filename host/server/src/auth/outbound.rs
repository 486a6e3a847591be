//! Sends the HTTP requests of the server itself: for the keys of an issuer, and to a collector of
//! spans.
//!
//! [`Outbound::send`] takes a request with an absolute URL and returns the whole response, of any
//! status, or an [`OutboundError`]. Time and the bytes of the response are bounded, redirects are
//! not followed, and each connection is used once. TLS trusts the certificate authorities of the
//! public internet. Without TLS it connects only to this machine, unless the operator allows other
//! hosts; the address is checked after the name was resolved. [`checked`] does the check of a URL
//! alone, for configurations.
//!
//! Not here: requests of tools, which the library sends under their grants.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::either::Either;
use toolcell::http::RootCertificates;

/// The reason why a URL cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is not `https://` or `http://` with a host, or it has a user name or a fragment.
    #[error("it is not a URL with `https://` and a host, or it has a user name or a fragment")]
    NotAUrl,
    /// It has no TLS, and does not name this machine.
    #[error("it has no TLS, and its host is not this machine")]
    Cleartext,
}

/// The reason why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutboundError {
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("cannot connect to `{host}`: {source}")]
    Connect { host: String, source: io::Error },
    #[error("`{host}` does not speak HTTP as expected: {problem}")]
    Broken { host: String, problem: String },
    #[error("`{host}` did not answer within {time:?}")]
    Late { host: String, time: Duration },
}

/// Returns the parsed URL, if a request can be sent to it: without TLS to this machine only.
///
/// # Errors
/// [`UrlError`].
pub(crate) fn checked(url: &str) -> Result<Uri, UrlError> {
    let parsed: Uri = url.parse().map_err(|_| UrlError::NotAUrl)?;
    let host = parsed.host().filter(|host| !host.is_empty()).ok_or(UrlError::NotAUrl)?;
    // The crate `http` accepts user names and drops fragments.
    if url.contains(['@', '#']) {
        return Err(UrlError::NotAUrl);
    }
    match parsed.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => Ok(parsed),
        Some(scheme) if *scheme == Scheme::HTTP && is_this_machine(host) => Ok(parsed),
        Some(scheme) if *scheme == Scheme::HTTP => Err(UrlError::Cleartext),
        _ => Err(UrlError::NotAUrl),
    }
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || without_brackets(host)
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// Returns a host without the brackets of an IPv6 address.
fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Sends requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Outbound {
    tls: Arc<ClientConfig>,
    /// Time limit of one request, from the name lookup to the end of the response.
    time: Duration,
    /// The most bytes of a response's body.
    bytes: usize,
}

impl Outbound {
    /// Creates a client that trusts the certificate authorities of the public internet.
    pub(crate) fn new(time: Duration, bytes: usize) -> Self {
        Self { tls: RootCertificates::default().config(), time, bytes }
    }

    /// Sends a request with an absolute URL, and reads the whole response, whatever its status.
    ///
    /// # Errors
    /// [`OutboundError`].
    ///
    /// # Cancel safety
    /// When dropped, the connection is closed.
    pub(crate) async fn send(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, OutboundError> {
        let url = checked(&request.uri().to_string())?;
        let host = url.host().unwrap_or_default().to_owned();
        let sent = tokio::time::timeout(self.time, self.exchange(url, &host, request)).await;
        sent.unwrap_or_else(|_| Err(OutboundError::Late { host, time: self.time }))
    }

    async fn exchange(
        &self,
        url: Uri,
        host: &str,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, OutboundError> {
        let failed = |source| OutboundError::Connect { host: host.to_owned(), source };
        let is_tls = url.scheme() == Some(&Scheme::HTTPS);
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let name = without_brackets(host);
        let stream = TcpStream::connect((name, port)).await.map_err(failed)?;
        // The name may resolve to another machine.
        if !is_tls && !stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()) {
            return Err(UrlError::Cleartext.into());
        }
        let stream = if is_tls {
            let name = ServerName::try_from(name.to_owned())
                .map_err(|error| failed(io::Error::other(error)))?;
            let tls = TlsConnector::from(Arc::clone(&self.tls));
            Either::Left(tls.connect(name, stream).await.map_err(failed)?)
        } else {
            Either::Right(stream)
        };
        send_over(stream, &url, request, self.bytes).await.map_err(|error| OutboundError::Broken {
            host: host.to_owned(),
            problem: error.to_string(),
        })
    }
}

/// Sends a request over a new connection, and reads the whole response of at most `bytes`.
async fn send_over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    url: &Uri,
    request: Request<Bytes>,
    bytes: usize,
) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let _connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
    let (mut parts, body) = request.into_parts();
    let authority = url.authority().map_or("", Authority::as_str);
    parts.headers.insert(HOST, HeaderValue::from_str(authority)?);
    parts.uri = url.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/")).into();
    let response = sender.send_request(Request::from_parts(parts, Full::new(body))).await?;
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, bytes).collect().await?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn cleartext_connections_are_limited_to_loopback() {
        for (url, expected) in rows::<(&str, Option<&str>)>("auth/outbound", "urls") {
            let refused = checked(url).err().map(|error| format!("{error:?}"));
            assert_eq!(refused.as_deref(), expected, "{url}");
        }
    }
}
