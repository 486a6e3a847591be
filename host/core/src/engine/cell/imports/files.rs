//! Implements `wasi:filesystem` for guests: access to the directories that a call's rights allow.
//!
//! [`link`] adds the functions to wasmtime's linker, the table of host functions. A guest (the
//! WebAssembly code of a tool) first asks for its preopened directories, from which all other paths
//! start: the granted ones; the scratch directory of the call as `/scratch`, and as `/tmp` if no
//! grant covers that; `/input` with the files of the call, if it has any; and, if `/` is not
//! granted, a simulated `/` (for a command, `/dev`) with nothing but devices. [`Files`] has the
//! open files and directories of the cell (the sandbox of one call) and the quota that each counts
//! in; it is built at the first use. wasmtime's own WASI host does the operations that only read
//! metadata. [`files`](crate::capability::files) does those that open or change something, and
//! counts them.
//! Invariants: only threads of the tenant's share wait for a disk. An open file counts against a
//! bound until it is closed, and so do the buffers of streams and listings.

mod devices;
mod handles;
mod listing;
mod streams;
mod times;
mod types;
mod ungranted;

use std::collections::{HashMap, VecDeque};
use std::{fs::File, io, sync::Arc, time::Duration};

use parking_lot::Mutex;
use toolcell_contract::grants::{Access, SCRATCH, TEMPORARY, is_below, rights::Rights};
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir};
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types as wasi, types::NewTimestamp};
use wasmtime_wasi::{FsPerms, OpenMode};

use super::seeded_random::SeededRandom;
use crate::capability::files::{Area, CallFiles, Mounts, OpenMark, Root, Scratch, is_exhausted};
use crate::engine::cell::Cell;
use crate::engine::cell::bounds::{blocking_pool::PoolAccess, host_memory::HostMemory};
use crate::tenant::{descriptors, limit_reached::LimitReached, share::Reservation};
use devices::Simulated;

/// The open files of a cell; built at the first use.
pub(crate) struct Files {
    /// Open files and directories, by descriptor.
    places: HashMap<u32, Place>,
    scratch: Option<Scratch>,
    pool: PoolAccess,
    /// The host memory that is charged for its streams and listings.
    pub(crate) host_memory: Arc<HostMemory>,
    /// The last path outside of the granted directories that was reported: libraries try the same
    /// one several times.
    ungranted: Option<(String, Access)>,
    /// The file times that the guest has set last, as time since 1970; it reads these back exactly.
    set: VecDeque<Duration>,
    /// The generator of `/dev/urandom` in a cell with a seed.
    chance: Option<Arc<Mutex<SeededRandom>>>,
    /// True if the log has the warning of a database that cannot be opened.
    is_wal_reported: bool,
}

/// An open file or directory, and the accounts that it counts in.
struct Place {
    /// True for the directory `/`.
    is_root: bool,
    /// The permit of the bound on open files.
    slot: Arc<Reservation>,
    /// The quota of a directory that can be written to.
    area: Option<Arc<Area>>,
    /// The hold of a file in such a directory.
    open_mark: Option<Arc<OpenMark>>,
    /// The path that the tool sees, in a dry run.
    path: Option<Arc<str>>,
}

/// Links the interfaces.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    preopens::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)?;
    wasi::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)
}

impl Files {
    pub(crate) fn new(way: PoolAccess) -> Self {
        Self {
            places: HashMap::new(),
            scratch: None,
            pool: way,
            host_memory: Arc::default(),
            ungranted: None,
            set: VecDeque::new(),
            chance: None,
            is_wal_reported: false,
        }
    }

    /// Remembers times that the guest sets.
    fn sets(&mut self, times: [NewTimestamp; 2]) {
        self.set.extend(times.into_iter().filter_map(times::exact));
        self.set.drain(..self.set.len().saturating_sub(times::REMEMBERED));
    }

    /// Returns true if a path outside of the granted directories differs from the last one.
    fn is_new_denial(&mut self, path: &str, access: Access) -> bool {
        let denial = Some((path.to_owned(), access));
        let is_new = self.ungranted != denial;
        self.ungranted = denial;
        is_new
    }

    /// Returns the directories that the call's rights allow, and the call's scratch directory.
    fn roots(&mut self, mounts: &Mounts, rights: &Rights) -> io::Result<Vec<Root>> {
        let mut roots = mounts.roots(rights)?;
        if self.scratch.is_none() {
            self.scratch = match mounts.scratch(rights) {
                Err(error) if !is_exhausted(&error) => {
                    tracing::error!(%error, "a call's scratch directory could not be made");
                    None
                }
                made => made?,
            };
        }
        if let Some(scratch) = &self.scratch {
            roots.push(scratch.root(SCRATCH)?);
            if !roots.iter().any(|root| is_below(TEMPORARY, &root.name)) {
                roots.push(scratch.root(TEMPORARY)?);
            }
        }
        Ok(roots)
    }

    fn place_of(&self, descriptor: &Resource<Descriptor>) -> Option<&Place> {
        self.places.get(&descriptor.rep())
    }

    fn area_of(&self, descriptor: &Resource<Descriptor>) -> Option<Arc<Area>> {
        self.place_of(descriptor)?.area.clone()
    }

    fn open_mark(&self, descriptor: &Resource<Descriptor>) -> Option<Arc<OpenMark>> {
        self.place_of(descriptor)?.open_mark.clone()
    }
}

impl Cell {
    /// Takes a permit for one more open file or directory.
    fn slot(&self) -> Result<Arc<Reservation>, LimitReached> {
        descriptors::take(&self.scope.resources.descriptors, &self.scope.invocation.tenant)
            .map(Arc::new)
    }

    /// Adds a descriptor of a directory.
    fn push_directory(
        &mut self,
        dir: File,
        place: Place,
    ) -> wasmtime::Result<Resource<Descriptor>> {
        let (perms, mode) = match place.area {
            Some(_) => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
            None => (FsPerms::ReadOnly, OpenMode::READ),
        };
        let descriptor =
            self.table.push(Descriptor::Dir(Dir::new(dir, perms, mode, ON_CALLING_THREAD)))?;
        self.files().places.insert(descriptor.rep(), place);
        Ok(descriptor)
    }
}

impl From<LimitReached> for FsError {
    fn from(reached: LimitReached) -> Self {
        Self::trap(reached)
    }
}

/// Lets wasmtime's own host work on the thread that calls it, which is one that may block.
const ON_CALLING_THREAD: bool = true;

impl preopens::Host for Cell {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        self.count_host_call()?;
        let mut roots = match self.scope.mounts.clone() {
            Some(mounts) => {
                let rights = Arc::clone(&self.scope.rights);
                self.files().roots(&mounts, &rights)?
            }
            None => Vec::new(),
        };
        if let Some(files) = &self.scope.invocation.files {
            // Replaces a granted directory of the same name.
            roots.retain(|root| !is_below(&root.name, CallFiles::DIRECTORY));
            roots.push(files.root()?);
        }
        let is_root_granted = roots.iter().any(|root| root.name == ungranted::NAME);
        let mut opened = Vec::with_capacity(roots.len() + 1);
        for Root { name, dir, area } in roots {
            let path = self.scope.resources.recorder.as_ref().map(|_| name.as_str().into());
            let is_root = name == ungranted::NAME;
            let place = Place { is_root, slot: self.slot()?, area, open_mark: None, path };
            let descriptor = self.push_directory(dir, place)?;
            opened.push((descriptor, name));
        }
        if !is_root_granted {
            // A command without a grant for `/` gets only the devices.
            let is_command = self.captured().is_some() && self.scope.resources.recorder.is_none();
            let name = if is_command { ungranted::DEVICES } else { ungranted::NAME };
            if !opened.iter().any(|(_, opened)| opened == name) {
                // At the end, since some programs take the first directory as their own.
                let directory = Simulated::Directory(name).push(&mut self.table)?;
                opened.push((directory, name.to_owned()));
            }
        }
        Ok(opened)
    }
}
