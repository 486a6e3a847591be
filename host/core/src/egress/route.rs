//! Whether a request would leave, and why not, without sending it.
//!
//! In: a tool's rights and a request. Out: a [`Route`].
//! Invariants: decided by the functions that decide when the request is sent.

use ipnet::IpNet;

use super::resolve::{found, let_through};
use super::{Budget, Egress, SendError, allowed};
use crate::grants::{Method, Target, networks_of};
use crate::rights::{Denial, Rights};

/// Whether a request would leave.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// It would.
    Open,
    /// It is not within the tool's rights.
    Denied(Denial),
    /// Every address of its host is private. The rule that grants it would have to name these networks, the smallest that
    /// do.
    Private(Vec<IpNet>),
    /// It is granted, and its host's name has no address now.
    Unresolved(String),
}

impl Egress {
    /// Decides what a tool's request would meet, up to the connection. A host's name is looked up; nothing is sent to the
    /// host.
    ///
    /// # Cancel safety
    /// May be dropped: a lookup that has begun goes on in the background.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    pub async fn route(&self, rights: &Rights, method: Method, target: &Target) -> Route {
        let private = match allowed(rights, method, target) {
            Ok(private) => private,
            Err(SendError::Denied(denial)) => return Route::Denied(denial),
            Err(other) => return Route::Unresolved(other.to_string()),
        };
        match found(&self.names, target, &Budget::of(None)).await {
            Err(problem) => Route::Unresolved(problem.to_string()),
            Ok(found) if !let_through(found.clone(), &private).is_empty() => Route::Open,
            Ok(found) => {
                let mut networks: Vec<IpNet> = found.into_iter().flat_map(networks_of).collect();
                networks.sort_unstable();
                networks.dedup();
                Route::Private(networks)
            }
        }
    }
}
