//! Each tenant's part of what the server bounds: bytes of bodies, requests, calls, MCP sessions.
//!
//! The sizes are those of a [`Share`]. Bodies, requests and running calls have a total, of which
//! [`rule`] says how much a tenant may hold: if there are several tenants, one that holds something
//! leaves free at least as much as it then holds. Sessions, streams and questions of MCP have no
//! total: [`Places`] limits each tenant by itself. Principals without a tenant count as one tenant.

use std::sync::Arc;

use toolcell::controls::enforced;
use toolcell::tenant::{Reservation, Share, ShareRule};

use super::principal::Principal;

/// Returns the rule of a tenant. `is_shared`: there are several.
pub(crate) fn rule(is_shared: bool) -> ShareRule {
    if is_shared { ShareRule::LeaveFreeOnceHeld } else { ShareRule::All }
}

/// As [`rule`], for requests and running calls.
pub(crate) fn request_rule(is_shared: bool) -> ShareRule {
    rule(is_shared && enforced!(RequestShare))
}

/// Places that each tenant has a number of, whatever others take.
pub(crate) struct Places {
    taken: Arc<Share>,
    rule: ShareRule,
}

impl Places {
    /// Allows at most this many places for each tenant.
    pub(crate) fn new(most: usize) -> Self {
        Self { taken: Share::new(u64::MAX), rule: ShareRule::Cap(most as u64) }
    }

    /// Takes one more place for the principal's tenant. `None`: the tenant is at its limit.
    pub(crate) fn enter(&self, principal: &Principal) -> Option<Reservation> {
        self.taken.take(principal.state(), 1, self.rule).ok()
    }
}
