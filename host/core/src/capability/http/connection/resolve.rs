//! Resolves the host name of a request to addresses, and keeps those that the request may connect
//! to.
//!
//! [`addresses`] takes a URL, the private networks that the granting rule names, and the call's
//! budget. It looks the name up once, checks each address, and returns the allowed ones; if none is
//! left, the request is refused. An address is allowed if it is on the public internet or in one of
//! the named networks. A host that is an address itself is checked in the same way.
//! An embedder (the program that uses this library) can replace the [`Resolver`]; it need not be
//! trusted, because its answers are checked. At most 64 addresses of an answer are used. A lookup
//! runs for at most 30 seconds and counts against the limits of the call and of the tenant until it
//! ends, even if the request has ended before.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use toolcell_contract::controls::enforced;
use toolcell_contract::grants::{Host, Method, Target, is_allowed_address};
use toolcell_contract::panic_guard::resume_panic;

use super::threads::RESOLVING;
use crate::capability::http::{Budget, SendError, TimeoutPhase};
use crate::tenant::slots::Slots;
use ipnet::IpNet;

/// Addresses of one answer that are used. Legitimate names have fewer, and each may cost a
/// connection attempt.
const MAX_ADDRESSES: usize = 64;

/// Longest lookup. The system's resolver takes as long for three servers that do not answer, each
/// asked twice for five seconds.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(30);

/// The future that [`Resolver::resolve`] returns.
pub type ResolveFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a host name. It is called once for each request. Every address in the
/// answer is checked, so a resolver need not be trusted.
pub trait Resolver: Send + Sync {
    /// Returns the addresses of this host, in the order in which they are to be tried. It runs on
    /// threads of this library, which have tokio's I/O and timers.
    ///
    /// # Cancel safety
    /// The future is not dropped when the request's time is over: it runs until it ends, for at
    /// most half a minute, because a lookup of the operating system cannot be interrupted. Until it
    /// ends, it counts against the tenant's quota.
    fn resolve(&self, host: &str, port: u16) -> ResolveFuture;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> ResolveFuture {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, port)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Returns the addresses that this request may be sent to. The name is resolved once, and every
/// address is checked.
pub(crate) async fn addresses(
    names: &Names,
    (method, target): (Method, &Target),
    private: &[IpNet],
    budget: &Budget,
) -> Result<Vec<IpAddr>, SendError> {
    let found = allowed_addresses(lookup(names, target, budget).await?, private);
    if found.is_empty() { Err(SendError::private(method, target)) } else { Ok(found) }
}

/// Returns the addresses of a host; at least one.
pub(crate) async fn lookup(
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

/// Returns the addresses that may be connected to.
pub(crate) fn allowed_addresses(mut found: Vec<IpAddr>, private: &[IpNet]) -> Vec<IpAddr> {
    found.retain(|address| is_allowed_address(*address, private) || !enforced!(PublicAddresses));
    found
}

/// A resolver with a limit of concurrent lookups.
#[derive(Clone)]
pub(crate) struct Names {
    resolver: Arc<dyn Resolver>,
    slots: Arc<Slots>,
}

impl Names {
    pub(crate) fn new(resolver: impl Resolver + 'static) -> Self {
        Self { resolver: Arc::new(resolver), slots: Arc::new(Slots::new(RESOLVING)) }
    }

    /// Resolves a name once. The lookup keeps its permit until it ends, even if the call no longer
    /// waits for it.
    async fn resolve(
        &self,
        name: String,
        target: &Target,
        budget: &Budget,
    ) -> Result<Vec<IpAddr>, SendError> {
        let slot = self.slots.take(&budget.0.resolving, &budget.0.tenant).await;
        let slot = slot.ok_or(SendError::Timeout(TimeoutPhase::Connect))?;
        let (resolver, port) = (Arc::clone(&self.resolver), target.port());
        let asked = tokio::spawn(async move {
            let _slot = enforced!(UnansweredNames).then_some(slot);
            timeout(LOOKUP_TIMEOUT, resolver.resolve(&name, port)).await
        });
        // An embedder's resolver may panic.
        match resume_panic(asked.await) {
            Some(Ok(Ok(found))) => Ok(found),
            Some(Ok(Err(_)) | Err(_)) => {
                Err(SendError::unreachable(target, "its name cannot be resolved"))
            }
            None => Err(SendError::broken("toolcell is shutting down")),
        }
    }
}
