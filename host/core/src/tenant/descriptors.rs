//! Counts the files and directories that cells have open on the host, with a bound for all and one
//! for each tenant.
//!
//! A process has a limited number of file descriptors. When a guest is about to open a file, the
//! engine calls [`Descriptors::take`], which returns a [`Slot`] that is given back on drop, or the
//! error that ends the call. Cells (fresh WebAssembly instances, one for each call) leave half of
//! the process's descriptors to everything else, and a tenant never has more than half of the
//! cells' part. Engines share the count of the process unless they have a bound of their own.
//!
//! Source: docs/threat-model.md, row 31.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use toolcell_contract::controls::bound;
use toolcell_contract::outcome::tool_error::{LimitHit, LimitKind};

use super::limit_reached::LimitReached;

/// Descriptors that are assumed for a process without a limit.
const UNLIMITED: u64 = 1 << 20;

/// The bound, and the count of open files.
pub(crate) struct Descriptors {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    tenants: HashMap<String, usize>,
}

/// A permit for one open file.
pub(crate) struct Slot {
    descriptors: Arc<Descriptors>,
    tenant: Option<String>,
}

impl Descriptors {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// The descriptors of this process, which all engines without a bound of their own share.
    pub(crate) fn of_process() -> Arc<Self> {
        static OF_PROCESS: LazyLock<Arc<Descriptors>> = LazyLock::new(|| {
            let most = getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED).min(UNLIMITED) / 2;
            Descriptors::new(usize::try_from(most).unwrap_or(usize::MAX))
        });
        Arc::clone(&OF_PROCESS)
    }

    /// Takes a permit for one more file.
    ///
    /// # Errors
    /// A [`LimitReached`] if all descriptors, or the tenant's half of them, are taken.
    pub(crate) fn take(self: &Arc<Self>, tenant: Option<&str>) -> Result<Slot, LimitReached> {
        let mut open = self.open.lock();
        let full = |limit: usize| {
            tracing::warn!(
                tenant,
                limit,
                "a call was ended: its tool opened a file, and the limit on open files was reached"
            );
            LimitReached(LimitHit::new(LimitKind::OpenFiles, limit as u64, limit as u64 + 1))
        };
        if open.all >= bound!(OpenFiles, self.most) {
            return Err(full(self.most));
        }
        if let Some(tenant) = tenant {
            let (theirs, most) =
                (open.tenants.entry(tenant.to_owned()).or_default(), self.most.div_ceil(2));
            if *theirs >= bound!(TenantFiles, most) {
                return Err(full(most));
            }
            *theirs += 1;
        }
        open.all += 1;
        Ok(Slot { descriptors: Arc::clone(self), tenant: tenant.map(str::to_owned) })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.descriptors.open.lock();
        open.all -= 1;
        if let Some(tenant) = &self.tenant
            && let Some(theirs) = open.tenants.get_mut(tenant)
        {
            *theirs -= 1;
            if *theirs == 0 {
                open.tenants.remove(tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails without: the bound; a tenant's half of it.
    #[test]
    fn open_files_are_bounded_in_total_and_per_tenant() {
        let descriptors = Descriptors::new(5);
        let take =
            |tenant| descriptors.take(tenant).map_err(|LimitReached(hit)| (hit.kind, hit.limit));
        let mut hog: Vec<_> = (0..3).map(|_| take(Some("hog")).unwrap()).collect();
        assert_eq!(take(Some("hog")).err(), Some((LimitKind::OpenFiles, 3)));
        let others = [take(Some("other")).unwrap(), take(None).unwrap()];
        for tenant in [Some("third"), None] {
            assert_eq!(take(tenant).err(), Some((LimitKind::OpenFiles, 5)), "{tenant:?}");
        }
        hog.pop();
        let again = take(Some("hog")).unwrap();
        drop((again, hog, others));
        let open = descriptors.open.lock();
        assert_eq!((open.all, open.tenants.len()), (0, 0), "all of it comes back");
    }

    #[test]
    fn cells_use_at_most_half_of_the_descriptors() {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED).min(UNLIMITED);
        assert_eq!(Descriptors::of_process().most as u64, limit / 2);
    }
}
