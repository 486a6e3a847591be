//! Simulates `/dev/null`, `/dev/urandom` and `/dev/random` for guests.
//!
//! `types` asks [`Device::at_path`] when a guest (the WebAssembly code of a tool) opens a path
//! below `/` or `/dev`, and then works on the [`Device`] instead of a file. The devices need no
//! grant, and no device of the host is opened. Reads return nothing, or at most 4096 random bytes;
//! writes are discarded. If the engine has a seed, the bytes come from a generator of the cell (a
//! fresh WebAssembly instance for one call), so that a call can be repeated; otherwise from the
//! operating system.
//! Source: docs/threat-model.md, rows 6 and 53.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rand_core::TryRng as _;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue, OpenFlags,
};
use wasmtime_wasi::p2::pipe::{ClosedInputStream, SinkOutputStream};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, FsResult, InputStream, Pollable, StreamError, StreamResult,
};

use crate::engine::cell::Cell;
use crate::engine::cell::imports::seeded_random::{Purpose, SeededRandom};

/// Bytes that one read of a device returns at most.
const PIECE: usize = 4096;

/// An open device, as the table has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Device {
    Null,
    Random,
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
        table.get(&Resource::<Self>::new_borrow(fd.rep())).ok().copied()
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
        Ok(Resource::new_own(table.push(self)?.rep()))
    }

    pub(super) fn close(
        table: &mut ResourceTable,
        fd: &Resource<Descriptor>,
    ) -> wasmtime::Result<()> {
        table.delete(Resource::<Self>::new_own(fd.rep()))?;
        Ok(())
    }

    /// Returns a stream that discards what is written.
    pub(super) fn writer(self, table: &mut ResourceTable) -> FsResult<Resource<DynOutputStream>> {
        let writer: DynOutputStream = Box::new(SinkOutputStream);
        Ok(table.push(writer)?)
    }

    pub(super) const TYPE: DescriptorType = DescriptorType::CharacterDevice;
    pub(super) const STAT: DescriptorStat = DescriptorStat {
        type_: Self::TYPE,
        link_count: 1,
        size: 0,
        data_access_timestamp: None,
        data_modification_timestamp: None,
        status_change_timestamp: None,
    };

    pub(super) fn flags() -> DescriptorFlags {
        DescriptorFlags::READ | DescriptorFlags::WRITE
    }

    pub(super) fn hash(self) -> MetadataHashValue {
        MetadataHashValue { lower: 1 + self as u64, upper: 0 }
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
        let Some(seed) = self.resources().seed else { return Randomness(None) };
        let call = self.invocation.call.id.clone();
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
