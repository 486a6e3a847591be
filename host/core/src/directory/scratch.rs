//! A directory of one call's own, empty when it begins and gone after it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tempfile::TempDir;

use super::Root;
use super::ledger::{Area, Ledger};
use crate::defence::{Defence, stands};
use crate::grants::{Room, SCRATCH};

/// Files that are removed where the cell ends; more go on a thread that may take its time.
const FEW: u64 = 16;

/// A directory of one call's own. Dropped, it is removed with all that is in it; links in it are not followed.
pub(crate) struct Scratch {
    dir: File,
    area: Arc<Area>,
    /// Present until it is dropped.
    kept: Option<TempDir>,
}

impl Scratch {
    pub(super) fn new(parent: &Path, room: Room) -> io::Result<Self> {
        let kept = tempfile::Builder::new().tempdir_in(parent)?;
        let dir = Dir::open_ambient_dir(kept.path(), ambient_authority())?.into_std_file();
        Ok(Self { dir, area: Arc::new(Area::new(room, Arc::new(Ledger::default()))), kept: Some(kept) })
    }

    /// The directory as its call gets it.
    pub(crate) fn root(&self) -> io::Result<Root> {
        Ok(Root { name: SCRATCH.to_owned(), dir: self.dir.try_clone()?, area: Some(Arc::clone(&self.area)) })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        let area = Arc::clone(&self.area);
        // Work that the call left behind finds the directory closed, and cannot make a file while it is removed.
        let remove = move || {
            area.close();
            let removed = if stands(Defence::ScratchRemoval) {
                kept.close()
            } else {
                let _left = kept.keep();
                Ok(())
            };
            if let Err(error) = removed {
                tracing::warn!(%error, "a call's own directory could not be removed");
            }
        };
        match crate::clock::sleeps() {
            Ok(threads) if !self.area.is_quiet(FEW) => drop(threads.spawn_blocking(remove)),
            Ok(_) | Err(_) => remove(),
        }
    }
}
