//! From a host's name to addresses.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

use super::SendError;
use super::addresses::is_let_through;
use crate::defence::{Defence, stands};
use crate::grants::{Host, Target};
use ipnet::IpNet;

/// Addresses of one answer that are looked at. No honest name has more, and each is a connection that may be tried.
const MAX_ADDRESSES: usize = 64;

/// Addresses, or why there are none.
pub type Resolved = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a host by its name. It is asked once for each request, and every answer is checked: a resolver
/// need not be trusted.
pub trait Resolver: Send + Sync {
    /// The addresses of this host, in the order in which they are to be tried. Runs on threads of the host's own, with I/O
    /// and timers of tokio.
    ///
    /// # Cancel safety
    /// The future is dropped when the request's time is up.
    fn resolve(&self, host: &str, port: u16) -> Resolved;
}

/// The system's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> Resolved {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, port)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The addresses that this request may be sent to: found once, and every one of them checked.
pub(super) async fn addresses(
    resolver: &dyn Resolver,
    target: &Target,
    private: &[IpNet],
) -> Result<Vec<IpAddr>, SendError> {
    let mut found = match target.host() {
        Host::Address(address) => vec![address],
        Host::Name(name) => resolver
            .resolve(&name, target.port())
            .await
            .map_err(|_| SendError::unreachable(target, "its name cannot be resolved"))?,
    };
    found.truncate(MAX_ADDRESSES);
    if found.is_empty() {
        return Err(SendError::unreachable(target, "its name has no address"));
    }
    found.retain(|address| is_let_through(*address, private) || !stands(Defence::PublicAddresses));
    if found.is_empty() { Err(SendError::private(target)) } else { Ok(found) }
}
