//! `wasi:filesystem`: the directories of a call's rights.
//!
//! What only looks is done by the engine's own host. What opens or changes something is done by [`directory`](crate::directory),
//! which counts it.
//! Invariants: nothing is opened before a call first asks; no disk is waited for on a guest's thread.

mod streams;
mod types;

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types as wasi};
use wasmtime_wasi::{FsPerms, OpenMode};

use crate::directory::{Area, Hold, Mounts, Root, Scratch};
use crate::engine::cell::Cell;

/// What a cell has open, in a cell that has anything.
#[derive(Default)]
pub(in crate::engine) struct Files {
    /// Where each descriptor of a directory that can be written to, and of a file in one, is counted.
    places: HashMap<u32, Place>,
    scratch: Option<Scratch>,
}

#[derive(Clone)]
enum Place {
    Directory(Arc<Area>),
    File(Arc<Hold>),
}

/// Links it.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    preopens::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)?;
    wasi::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)
}

impl Files {
    /// What the call's rights leave of its component's directories, and one of its own.
    fn roots(&mut self, mounts: &Mounts, rights: &crate::rights::Rights) -> Vec<Root> {
        let mut roots = mounts.roots(rights);
        if self.scratch.is_none() {
            self.scratch = mounts.scratch(rights).unwrap_or_else(|error| {
                tracing::error!(%error, "a call gets no directory of its own");
                None
            });
        }
        roots.extend(self.scratch.as_ref().and_then(|scratch| scratch.root().ok()));
        roots
    }

    fn area(&self, descriptor: &Resource<Descriptor>) -> Option<Arc<Area>> {
        match self.places.get(&descriptor.rep()) {
            Some(Place::Directory(area)) => Some(Arc::clone(area)),
            Some(Place::File(_)) | None => None,
        }
    }

    fn hold(&self, descriptor: &Resource<Descriptor>) -> Option<Arc<Hold>> {
        match self.places.get(&descriptor.rep()) {
            Some(Place::File(hold)) => Some(Arc::clone(hold)),
            Some(Place::Directory(_)) | None => None,
        }
    }
}

impl Cell {
    /// A descriptor of a directory.
    fn push_directory(&mut self, dir: File, area: Option<Arc<Area>>) -> wasmtime::Result<Resource<Descriptor>> {
        let (perms, mode) = match area {
            Some(_) => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
            None => (FsPerms::ReadOnly, OpenMode::READ),
        };
        let descriptor = self.table.push(Descriptor::Dir(Dir::new(dir, perms, mode, false)))?;
        if let Some(area) = area {
            self.files().places.insert(descriptor.rep(), Place::Directory(area));
        }
        Ok(descriptor)
    }
}

impl preopens::Host for Cell {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        self.count_host_call()?;
        let Some((mounts, rights)) = self.mounts() else { return Ok(Vec::new()) };
        let roots = self.files().roots(&mounts, &rights);
        roots.into_iter().map(|Root { name, dir, area }| Ok((self.push_directory(dir, area)?, name))).collect()
    }
}
