//! The scratch directory of one call: empty at its start, removed at its end.
//!
//! Invariants: whatever a tool has made in it, it is removed with a few file descriptors and
//! without recursion.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use parking_lot::RwLock;
use rustix::fs::CWD;
use tempfile::Builder;

use super::Root;
use super::ledger::{Area, Ledger};
use super::temporary::TemporaryDirectory;
use super::tree;
use crate::defence::{Defence, stands};
use crate::grants::Room;

/// Files that are removed where the cell ends; more go on a thread that may take its time.
const FEW: u64 = 16;

/// Where the directories of single calls are made: private to this user. Dropped, it is removed
/// with what is left in it.
pub(super) struct Nest {
    room: Room,
    place: Place,
    /// Held while one of them is removed; the removal of the nest waits for that.
    removals: Arc<RwLock<()>>,
}

/// A directory of one call's own. Dropped, it is removed with all that is in it; links in it are
/// not followed.
pub(crate) struct Scratch {
    place: Option<Place>,
    area: Arc<Area>,
    removals: Arc<RwLock<()>>,
}

/// A directory among the temporary files, open.
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) dir: File,
}

impl Place {
    fn new(made: tempfile::TempDir) -> io::Result<Self> {
        let dir = tree::place(CWD, made.path())?;
        // From here on it is removed by what knows how: a tool may have made it deeper than
        // recursion goes.
        Ok(Self { path: made.keep(), dir })
    }

    fn remove(&self) -> io::Result<()> {
        tree::clear(&self.dir)?;
        match fs::remove_dir(&self.path) {
            // With the nest.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

impl Nest {
    pub(super) fn new(room: Room) -> io::Result<Self> {
        static COLLECTED: Once = Once::new();
        COLLECTED.call_once(TemporaryDirectory::collect);
        Ok(Self { room, place: TemporaryDirectory::new()?.into_place(), removals: Arc::default() })
    }

    /// A new directory for a call.
    pub(super) fn scratch(&self) -> io::Result<Scratch> {
        let place = Place::new(Builder::new().tempdir_in(&self.place.path)?)?;
        let area = Arc::new(Area::new(self.room, Arc::new(Ledger::default())));
        Ok(Scratch { place: Some(place), area, removals: Arc::clone(&self.removals) })
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &std::path::Path {
        &self.place.path
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        let _alone = self.removals.write();
        if let Err(error) = self.place.remove() {
            tracing::warn!(%error, "the temporary directory of the calls' scratch directories could not be removed");
        }
    }
}

impl Scratch {
    /// The directory as its call gets it, under this name.
    pub(crate) fn root(&self, name: &str) -> io::Result<Root> {
        let place = self.place.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(Root {
            name: name.to_owned(),
            dir: place.dir.try_clone()?,
            area: Some(Arc::clone(&self.area)),
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let (area, removals) = (Arc::clone(&self.area), Arc::clone(&self.removals));
        // Work that the call left behind finds the directory closed, and cannot make a file while
        // it is removed.
        let remove = move || {
            area.close();
            let _one = removals.read();
            let removed = if stands(Defence::ScratchRemoval) { place.remove() } else { Ok(()) };
            if let Err(error) = removed {
                tracing::warn!(%error, "a call's scratch directory could not be removed");
            }
        };
        match crate::clock::sleeps() {
            Ok(threads) if !self.area.is_quiet(FEW) => drop(threads.spawn_blocking(remove)),
            Ok(_) | Err(_) => remove(),
        }
    }
}
