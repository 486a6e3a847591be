//! Counts the files and directories that cells have open on the host, with a bound for all and one
//! for each tenant.
//!
//! A process has a limited number of file descriptors. When a guest is about to open a file, the
//! engine calls [`take`], which returns a [`Reservation`] that is given back on drop, or the
//! error that ends the call. Cells leave half of the process's descriptors to everything else, and
//! a tenant never has more than half of the cells' part. Engines share the count of the process
//! unless they have a bound of their own.
//!
//! Source: docs/threat-model.md, row 31.

use std::sync::{Arc, LazyLock};

use rustix::process::{Resource, getrlimit};
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::outcome::tool_error::{LimitHit, LimitKind};

use super::share::{Reservation, Share, ShareRule};
use super::{limit_reached::LimitReached, state::TenantState};

/// Descriptors that are assumed for a process without a limit.
const UNLIMITED: u64 = 1 << 20;

/// Creates the count of open files, with this bound.
pub(crate) fn descriptors(most: u64) -> Arc<Share> {
    Share::new(bound!(OpenFiles, most))
}

/// The descriptors of this process, which all engines without a bound of their own share.
pub(crate) fn of_process() -> Arc<Share> {
    static OF_PROCESS: LazyLock<Arc<Share>> = LazyLock::new(|| {
        descriptors(getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED).min(UNLIMITED) / 2)
    });
    Arc::clone(&OF_PROCESS)
}

/// Takes a permit for one more file.
///
/// # Errors
/// A [`LimitReached`] if all descriptors, or the tenant's half of them, are taken.
pub(crate) fn take(
    open: &Arc<Share>,
    tenant: &Arc<TenantState>,
) -> Result<Reservation, LimitReached> {
    let rule = tenant.rule(ShareRule::Fraction(if enforced!(TenantFiles) { 2 } else { 1 }));
    open.take(tenant, 1, rule).map_err(|full| {
        let (tenant, limit) = (tenant.name(), full.limit);
        tracing::warn!(tenant, limit, "a tool has reached the limit on open files");
        LimitReached(LimitHit::new(LimitKind::OpenFiles, limit, limit + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails without: the bound; a tenant's half of it.
    #[test]
    fn open_files_are_bounded_in_total_and_per_tenant() {
        let files = descriptors(5);
        let hit = |LimitReached(hit)| (hit.kind, hit.limit);
        let take = |tenant| take(&files, &TenantState::of(tenant)).map_err(hit);
        let mut hog: Vec<_> = (0..3).map(|_| take(Some("hog")).unwrap()).collect();
        assert_eq!(take(Some("hog")).err(), Some((LimitKind::OpenFiles, 3)));
        let others = [take(Some("other")).unwrap(), take(None).unwrap()];
        for tenant in [Some("third"), None] {
            assert_eq!(take(tenant).err(), Some((LimitKind::OpenFiles, 5)), "{tenant:?}");
        }
        hog.pop();
        let again = take(Some("hog")).unwrap();
        drop((again, hog, others));
        let all = files.take(&TenantState::of(None), 5, ShareRule::All);
        assert!(all.is_ok(), "all of it comes back");
    }

    #[test]
    fn cells_use_at_most_half_of_the_descriptors() {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED).min(UNLIMITED);
        assert_eq!(of_process().size(), limit / 2);
    }
}
