//! Connects to an address through the operator's HTTP proxy, with the method `CONNECT`.
//!
//! An operator sets a [`Proxy`] from a URL, with an optional user and password. `connect` takes an
//! address that was checked and returns a TCP stream on which the proxy forwards bytes, or a
//! [`ProxyFault`].
//! Invariants: the proxy is asked for an address and never for a name, so that it cannot resolve
//! the name to another address. `Debug` and errors never show the password. No text of the proxy's
//! answer reaches a tool; only its status does.

use std::net::SocketAddr;
use std::{fmt, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolcell_contract::grants::InvalidRule;
use url::Url;

/// Bytes. The head of the proxy's answer.
const MAX_HEAD: usize = 8 << 10;
/// Port of a URL without a port.
const PORT: u16 = 80;

/// An HTTP proxy that connects to other hosts.
#[derive(Clone)]
pub struct Proxy {
    host: String,
    port: u16,
    /// The value of `Proxy-Authorization`.
    authorization: Option<String>,
}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyFault {
    #[error("the proxy cannot be reached: {}", .0.kind())]
    Io(#[from] io::Error),
    #[error("the proxy refused the connection with status {0}")]
    Refused(u16),
    #[error("the proxy does not answer as an HTTP proxy")]
    NotHttp,
}

impl Proxy {
    /// Parses a proxy's URL.
    ///
    /// # Shape
    /// `http://HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`; the port defaults to 80.
    ///
    /// # Errors
    /// [`InvalidRule`] for any other text. The error does not quote the text, which may contain a
    /// password.
    pub fn new(url: &str) -> Result<Self, InvalidRule> {
        let fault = |problem: &str| {
            InvalidRule::new("proxy", problem, "write for instance `http://proxy.example.com:3128`")
        };
        let url = Url::parse(url).map_err(|_| fault("it is not a URL"))?;
        if url.scheme() != "http" {
            return Err(fault("its scheme is not `http`"));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(fault("it has more than a host and a port"));
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let user = decoded(url.username());
        let has_user = !user.is_empty() || url.password().is_some();
        let authorization = has_user.then(|| {
            let pair = format!("{user}:{}", decoded(url.password().unwrap_or_default()));
            format!("Basic {}", STANDARD.encode(pair))
        });
        Ok(Self { host, port: url.port().unwrap_or(PORT), authorization })
    }

    /// Connects to this address through the proxy.
    pub(crate) async fn connect(&self, address: SocketAddr) -> Result<TcpStream, ProxyFault> {
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let mut request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n");
        if let Some(authorization) = &self.authorization {
            request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            // Reads byte by byte, because the bytes after the head belong to the other host.
            if head.len() >= MAX_HEAD {
                return Err(ProxyFault::NotHttp);
            }
            head.push(stream.read_u8().await?);
        }
        match status(&head) {
            Some(200..=299) => Ok(stream),
            Some(status) => Err(ProxyFault::Refused(status)),
            None => Err(ProxyFault::NotHttp),
        }
    }
}

/// Returns the status of an answer.
fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.")?;
    let digits = rest.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({}:{})", self.host, self.port)
    }
}
