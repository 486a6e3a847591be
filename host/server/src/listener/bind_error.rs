//! The errors with which a server refuses to start listening, each with a hint for the operator.
//!
//! [`BindError`] is returned by the check of the options and by `HttpServer::bind`. It covers an
//! address that other machines can reach without keys or without TLS, a listed host or origin that
//! is not valid, and an address that the operating system refuses.

use std::io;
use std::net::SocketAddr;

/// The reason why a server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address is reachable from other machines, and every request would be accepted.
    #[error("{0} can be reached from other machines, and the server has no API keys")]
    Open(SocketAddr),
    /// The address is reachable from other machines, and keys would be sent in plain text.
    #[error("{0} can be reached from other machines, and the server has no TLS certificate")]
    Plain(SocketAddr),
    /// The text is not a host name.
    #[error("`{}` is not a host name", _0.escape_debug())]
    Host(String),
    /// The text is not an origin.
    #[error("`{}` is not an origin", _0.escape_debug())]
    Origin(String),
    /// The address cannot be used.
    #[error("cannot listen at {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
}

impl BindError {
    /// Returns advice for the user: one line without a period.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Open(_) => {
                "make a key with `toolcell tenant add NAME` and name a certificate with `--tls-cert` and `--tls-key`, or listen at 127.0.0.1"
            }
            Self::Plain(_) => {
                "listen at 127.0.0.1, use `--tls-cert` and `--tls-key`, or a proxy and `--behind-proxy`"
            }
            Self::Host(_) => {
                "write the name alone, for example `tools.example.com`, without a scheme, a port or a path"
            }
            Self::Origin(_) => {
                "write a scheme and a host, for example `https://app.example.com`, without a path"
            }
            Self::Address { .. } => {
                "choose another address or port, or end the program that uses this one"
            }
        }
    }
}
