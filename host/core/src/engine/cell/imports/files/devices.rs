//! Simulates `/dev/null`, `/dev/urandom` and `/dev/random` for guests.
//!
//! A [`Simulated`] descriptor is a device, or an empty directory of `ungranted`. `types` asks
//! [`Device::at_path`] when a guest (the WebAssembly code of a tool) opens a path below `/` or
//! `/dev`, and then works on the [`Device`] instead of a file. The devices need no grant, and no
//! device of the host is opened. Reads return nothing, or at most 4096 random bytes; writes are
//! discarded. If the engine has a seed, the bytes come from a generator of the cell (a fresh
//! WebAssembly instance for one call), so that a call can be repeated; otherwise from the operating
//! system.
//! Source: docs/threat-model.md, rows 6 and 53.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rand_core::TryRng as _;
use wasmtime::component::{Resource, ResourceTable, ResourceTableError};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue, OpenFlags,
};
use wasmtime_wasi::p2::{
    DynInputStream, FsResult, InputStream, Pollable, StreamError, StreamResult,
};
use wasmtime_wasi::{filesystem::Descriptor, p2::pipe::ClosedInputStream};

use crate::engine::cell::Cell;
use crate::engine::cell::imports::seeded_random::{Purpose, SeededRandom};

/// Bytes that one read of a device returns at most.
const PIECE: usize = 4096;

/// A descriptor without a file or directory of the host behind it, as the table has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Simulated {
    /// An empty directory of this name.
    Directory(&'static str),
    Device(Device),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Device {
    Null,
    Random,
}

impl Simulated {
    /// Returns what is simulated behind a descriptor, if it is.
    pub(super) fn of(table: &ResourceTable, fd: &Resource<Descriptor>) -> Option<Self> {
        table.get(&Resource::<Self>::new_borrow(fd.rep())).ok().copied()
    }

    pub(super) fn push(
        self,
        table: &mut ResourceTable,
    ) -> Result<Resource<Descriptor>, ResourceTableError> {
        Ok(Resource::new_own(table.push(self)?.rep()))
    }

    pub(super) fn close(
        table: &mut ResourceTable,
        fd: &Resource<Descriptor>,
    ) -> wasmtime::Result<()> {
        table.delete(Resource::<Self>::new_own(fd.rep()))?;
        Ok(())
    }

    pub(super) fn kind(self) -> DescriptorType {
        match self {
            Self::Directory(_) => DescriptorType::Directory,
            Self::Device(_) => DescriptorType::CharacterDevice,
        }
    }

    pub(super) fn stat(self) -> DescriptorStat {
        DescriptorStat {
            type_: self.kind(),
            link_count: 1,
            size: 0,
            data_access_timestamp: None,
            data_modification_timestamp: None,
            status_change_timestamp: None,
        }
    }

    pub(super) fn flags(self) -> DescriptorFlags {
        match self {
            Self::Directory(_) => DescriptorFlags::READ,
            Self::Device(_) => DescriptorFlags::READ | DescriptorFlags::WRITE,
        }
    }

    pub(super) fn hash(self) -> MetadataHashValue {
        let lower = match self {
            Self::Directory(_) => 0,
            Self::Device(device) => 1 + device as u64,
        };
        MetadataHashValue { lower, upper: 0 }
    }
}

impl Device {
    /// Returns the device of this path.
    pub(super) fn at_path(path: &str) -> Option<Self> {
        match path {
            "/dev/null" => Some(Self::Null),
            "/dev/urandom" | "/dev/random" => Some(Self::Random),
            _ => None,
        }
    }

    /// Returns the device behind a descriptor, if it is one.
    pub(super) fn of(table: &ResourceTable, fd: &Resource<Descriptor>) -> Option<Self> {
        match Simulated::of(table, fd)? {
            Simulated::Device(device) => Some(device),
            Simulated::Directory(_) => None,
        }
    }

    pub(super) fn open(
        self,
        table: &mut ResourceTable,
        flags: OpenFlags,
    ) -> FsResult<Resource<Descriptor>> {
        if flags.contains(OpenFlags::DIRECTORY) {
            return Err(ErrorCode::NotDirectory.into());
        }
        if flags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) {
            return Err(ErrorCode::Exist.into());
        }
        Ok(Simulated::Device(self).push(table)?)
    }
}

impl Cell {
    /// Reads a device. The second value is true at the end of the file.
    pub(super) fn read_device(&mut self, device: Device, len: u64) -> FsResult<(Vec<u8>, bool)> {
        let len = usize::try_from(len).unwrap_or(PIECE).min(PIECE);
        Ok(match device {
            Device::Null => (Vec::new(), true),
            Device::Random => (self.randomness().bytes(len).map_err(|_| ErrorCode::Io)?, false),
        })
    }

    /// Opens a stream that reads a device.
    pub(super) fn device_reader(&mut self, device: Device) -> FsResult<Resource<DynInputStream>> {
        let reader: DynInputStream = match device {
            Device::Null => Box::new(ClosedInputStream),
            Device::Random => Box::new(self.randomness()),
        };
        Ok(self.table.push(reader)?)
    }

    fn randomness(&mut self) -> Randomness {
        let Some(seed) = self.scope.resources.deterministic.seed else { return Randomness(None) };
        let call = self.scope.invocation.call.id.clone();
        let made = || Arc::new(Mutex::new(SeededRandom::new(seed, &call, Purpose::Device)));
        Randomness(Some(Arc::clone(self.files().chance.get_or_insert_with(made))))
    }
}

/// Random bytes: of the generator that all devices of the cell share, if there is a seed; else of
/// the operating system.
struct Randomness(Option<Arc<Mutex<SeededRandom>>>);

impl Randomness {
    fn bytes(&self, len: usize) -> Result<Vec<u8>, getrandom::Error> {
        let mut bytes = vec![0; len];
        match &self.0 {
            Some(chance) => {
                let Ok(()) = chance.lock().try_fill_bytes(&mut bytes);
            }
            None => getrandom::fill(&mut bytes)?,
        }
        Ok(bytes)
    }
}

impl InputStream for Randomness {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let bytes = self.bytes(size.min(PIECE));
        bytes.map(Bytes::from).map_err(|_| StreamError::Closed)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Randomness {
    async fn ready(&mut self) {}
}
