//! Scratch directories: one empty directory for each call, removed when the call ends.
//!
//! A component with a grant for scratch space gets a [`ScratchRoot`] when it is loaded, a private
//! directory among the temporary files. For each call, [`ScratchRoot::scratch`] creates a directory
//! in it and returns a [`Scratch`], which gives the call its handle and counts its content against
//! the quota of the grant.
//! Dropping the `Scratch` refuses further changes and then removes the directory, in place if it is
//! small and on a blocking thread otherwise. The removal follows no link and uses few file
//! descriptors and no recursion, however deep the tree of the tool is. Errors are logged.
//! The first `ScratchRoot` of a process also removes what killed processes left behind.

use std::io;
use std::sync::{Arc, Once};

use parking_lot::RwLock;
use toolcell_contract::controls::enforced;
use toolcell_contract::grants::DirectoryQuota;

use super::Root;
use super::ledger::{Area, Ledger};
use super::temporary::TemporaryDirectory;

/// Scratch directories with at most this many files are removed where the cell ends; larger ones
/// are removed on a blocking thread.
const MAX_INLINE_FILES: u64 = 16;

/// The parent of the calls' scratch directories, private to this user. When it is dropped, it is
/// removed with everything left in it.
pub(super) struct ScratchRoot {
    quota: DirectoryQuota,
    place: TemporaryDirectory,
    /// Read-locked while a scratch directory is removed. The removal of this parent waits for the
    /// write lock.
    removals: Arc<RwLock<()>>,
}

/// A directory for one call. When it is dropped, it is removed with all its content; links in it
/// are not followed.
pub(crate) struct Scratch {
    place: Option<TemporaryDirectory>,
    area: Arc<Area>,
    removals: Arc<RwLock<()>>,
}

impl ScratchRoot {
    pub(super) fn new(quota: DirectoryQuota) -> io::Result<Self> {
        static COLLECTED: Once = Once::new();
        COLLECTED.call_once(TemporaryDirectory::collect);
        Ok(Self { quota, place: TemporaryDirectory::new()?, removals: Arc::default() })
    }

    /// Creates a directory for a call.
    pub(super) fn scratch(&self) -> io::Result<Scratch> {
        let place = Some(self.place.new_inside()?);
        let area = Arc::new(Area::new(self.quota, Arc::new(Ledger::default())));
        Ok(Scratch { place, area, removals: Arc::clone(&self.removals) })
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &std::path::Path {
        self.place.path()
    }
}

impl Drop for ScratchRoot {
    fn drop(&mut self) {
        let _alone = self.removals.write();
        if let Err(error) = self.place.remove() {
            tracing::warn!(%error, "the temporary directory of the calls' scratch directories could not be removed");
        }
    }
}

impl Scratch {
    /// Returns the directory as its call gets it, under this name.
    pub(crate) fn root(&self, name: &str) -> io::Result<Root> {
        let place = self.place.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(Root {
            name: name.to_owned(),
            dir: place.handle().try_clone()?,
            area: Some(Arc::clone(&self.area)),
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let (area, removals) = (Arc::clone(&self.area), Arc::clone(&self.removals));
        // Closes the area first, so that work left behind by the call cannot create a file during
        // the removal.
        let remove = move || {
            area.close();
            let _one = removals.read();
            let removed = if enforced!(ScratchRemoval) { place.remove() } else { Ok(()) };
            if let Err(error) = removed {
                tracing::warn!(%error, "a call's scratch directory could not be removed");
            }
        };
        match crate::os::clock::sleeps() {
            Ok(threads) if !self.area.is_quiet(MAX_INLINE_FILES) => {
                drop(threads.spawn_blocking(remove))
            }
            Ok(_) | Err(_) => remove(),
        }
    }
}
