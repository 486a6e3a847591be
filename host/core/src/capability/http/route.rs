//! Decides whether a request would be sent, without sending it.
//!
//! `Egress::route` takes a tool's rights, a method and a URL, and returns a [`Route`]: open, denied
//! by the rights, to private addresses only (with the networks that a rule would have to name), or
//! without an address. It looks the host name up, but does not connect. `toolcell` uses it to
//! explain a decision to an operator.
//! The decision is made by the functions that decide when a request is sent, so both agree.

use ipnet::IpNet;
use toolcell_contract::grants::rights::{Denial, Rights};
use toolcell_contract::grants::{Method, Target, networks_of};

use super::connection::resolve::{allowed_addresses, lookup};
use super::{Budget, Egress, allowed};

/// The result of [`Egress::route`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// It would be sent.
    Open,
    /// The tool's rights do not allow it.
    Denied(Denial),
    /// The request is granted, but its host has only private addresses. The granting rule would
    /// have to name these networks, which are the smallest that suffice.
    Private(Vec<IpNet>),
    /// The request is granted, but its host's name has no address now.
    Unresolved(String),
}

impl Egress {
    /// Decides whether a tool's request would be sent. Looks the host's name up; sends nothing to
    /// the host.
    ///
    /// # Cancel safety
    /// May be dropped: a lookup that has begun continues in the background.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn route(&self, rights: &Rights, method: Method, target: &Target) -> Route {
        let private = match allowed(rights, method, target) {
            Ok(private) => private,
            Err(denial) => return Route::Denied(denial),
        };
        match lookup(&self.names, target, &Budget::default()).await {
            Err(problem) => Route::Unresolved(problem.to_string()),
            Ok(found) if !allowed_addresses(found.clone(), &private).is_empty() => Route::Open,
            Ok(found) => {
                let mut networks: Vec<IpNet> = found.into_iter().flat_map(networks_of).collect();
                networks.sort_unstable();
                networks.dedup();
                Route::Private(networks)
            }
        }
    }
}
