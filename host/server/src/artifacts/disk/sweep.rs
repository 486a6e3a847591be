//! Removes expired artifacts from the disk, also those of tenants that send no requests or are no
//! longer served.
//!
//! `Artifacts::sweep_periodically` calls it once a minute while a server listens, and the store
//! calls it when it is opened. One sweep removes at most 1,000 files; the next removes the rest. It
//! locks the store for at most 16 files at a time, so that requests can use the store in between. A
//! tenant's directory is removed when it holds no artifact; a directory with files that the store
//! has not written stays.
//!
//! Source: docs/threat-model.md, row 97.

use std::fs;

use toolcell::controls::enforced;

use super::Store;

/// Files that one sweep removes. The next sweep removes the rest.
const MAX_REMOVED: usize = 1000;
/// Files that are removed under one lock of the store, before other requests can use it.
const PIECE: usize = 16;

impl Store {
    /// Removes expired artifacts, and the directories of tenants that have none left.
    pub(in crate::artifacts) fn sweep(&self) {
        if enforced!(ArtifactSweep) {
            self.sweep_up_to(MAX_REMOVED);
        }
    }

    /// Removes at most `most` files.
    pub(super) fn sweep_up_to(&self, most: usize) {
        let names: Vec<String> = self.tenants.lock().keys().cloned().collect();
        let mut left = most;
        for name in names {
            while left > 0 && self.sweep_piece(&name, &mut left) {}
        }
    }

    /// Removes up to `PIECE` expired artifacts of one tenant. Returns true if there may be more.
    fn sweep_piece(&self, name: &str, left: &mut usize) -> bool {
        let (path, now) = (self.root.join(name), self.clock.now());
        let mut tenants = self.tenants.lock();
        let Some(tenant) = tenants.get_mut(name) else { return false };
        let most = PIECE.min(*left);
        let removed = tenant.forget_expired(&path, now, most);
        *left -= removed;
        // A file that is being written needs its directory.
        if tenant.kept.is_empty() && tenant.writing.1 == 0 {
            // A directory with files that the store has not written stays.
            let _ = fs::remove_dir(&path);
            if tenant.quota.is_none() {
                tenants.remove(name);
            }
            return false;
        }
        removed == most
    }
}
