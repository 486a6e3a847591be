//! Resolves host names to addresses.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::slots::Slots;
use super::threads::RESOLVING;
use super::{Budget, SendError, Stage};
use crate::defence::{Defence, stands};
use crate::fence::resumed;
use crate::grants::{Host, Method, Target, is_let_through};
use ipnet::IpNet;

/// Addresses of one answer that are looked at. No honest name has more, and each is a connection
/// that may be tried.
const MAX_ADDRESSES: usize = 64;

/// How long a name is being resolved at most: what the system's resolver takes for three servers
/// that are silent, asked twice for five seconds each.
const LONGEST: Duration = Duration::from_secs(30);

/// The future that [`Resolver::resolve`] returns.
pub type Resolved = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a host name. It is called once for each request, and every address in the
/// answer is checked: a resolver need not be trusted.
pub trait Resolver: Send + Sync {
    /// The addresses of this host, in the order in which they are to be tried. It runs on threads
    /// of this library, which have tokio's I/O and timers.
    ///
    /// # Cancel safety
    /// It is not dropped when the request's time is over: it runs until it ends, for at most half a
    /// minute. A lookup of the operating system cannot be interrupted, and until it ends it counts
    /// for the tenant that asked.
    fn resolve(&self, host: &str, port: u16) -> Resolved;
}

/// The resolver of the operating system.
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
    names: &Names,
    (method, target): (Method, &Target),
    private: &[IpNet],
    budget: &Budget,
) -> Result<Vec<IpAddr>, SendError> {
    let found = let_through(found(names, target, budget).await?, private);
    if found.is_empty() { Err(SendError::private(method, target)) } else { Ok(found) }
}

/// The addresses of a host; one at least.
pub(super) async fn found(
    names: &Names,
    target: &Target,
    budget: &Budget,
) -> Result<Vec<IpAddr>, SendError> {
    let mut found = match target.host() {
        Host::Address(address) => vec![address],
        Host::Name(name) => names.resolve(name, target, budget).await?,
    };
    found.truncate(MAX_ADDRESSES);
    if found.is_empty() {
        return Err(SendError::unreachable(target, "its name has no address"));
    }
    Ok(found)
}

/// Those of them that may be connected to.
pub(super) fn let_through(mut found: Vec<IpAddr>, private: &[IpNet]) -> Vec<IpAddr> {
    found.retain(|address| is_let_through(*address, private) || !stands(Defence::PublicAddresses));
    found
}

/// A resolver, and how many names it is asked for at once.
#[derive(Clone)]
pub(super) struct Names {
    resolver: Arc<dyn Resolver>,
    slots: Arc<Slots>,
}

impl Names {
    pub(super) fn new(resolver: impl Resolver + 'static) -> Self {
        Self { resolver: Arc::new(resolver), slots: Arc::new(Slots::new(RESOLVING)) }
    }

    /// Asks once. A call that does not wait for the answer any more keeps the place of the question
    /// until it comes.
    async fn resolve(
        &self,
        name: String,
        target: &Target,
        budget: &Budget,
    ) -> Result<Vec<IpAddr>, SendError> {
        let slot = self
            .slots
            .take(budget.resolving(), budget.tenant())
            .await
            .ok_or(SendError::Timeout(Stage::Connect))?;
        let (resolver, port) = (Arc::clone(&self.resolver), target.port());
        let asked = tokio::spawn(async move {
            let _slot = stands(Defence::UnansweredNames).then_some(slot);
            timeout(LONGEST, resolver.resolve(&name, port)).await
        });
        // A resolver of the embedder's own may panic.
        match resumed(asked.await) {
            Some(Ok(Ok(found))) => Ok(found),
            Some(Ok(Err(_)) | Err(_)) => {
                Err(SendError::unreachable(target, "its name cannot be resolved"))
            }
            None => Err(SendError::broken("toolcell is shutting down")),
        }
    }
}
