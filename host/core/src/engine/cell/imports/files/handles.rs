//! Finds the file or directory behind a guest's descriptor, and runs disk operations on threads
//! that may block.
//!
//! A guest is the WebAssembly code of a tool. The functions in `types` begin with these methods of
//! [`Cell`]. `directory`, `file`, `writable` and `writable_file` take a descriptor (the guest's
//! number of an open file) and return a handle, with the quota that a change counts in, or an error
//! such as `NotPermitted`. `blocking` runs an operation of this crate in the tenant's share of the
//! thread pool; `run_wasi` does so with a function of wasmtime's own WASI host.
//! Nothing can be moved between two directories with different quotas. If abandoned work blocks all
//! of the tenant's threads, the guest gets `Busy`.

use std::{io, sync::Arc};

use futures_util::FutureExt as _;
use toolcell_contract::{controls::enforced, grants::Access, outcome::tool_error::BlockedOn};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::{DynOutputStream, FsError, FsResult};
use wasmtime_wasi::{p2::bindings::filesystem::types::ErrorCode, p2::pipe::SinkOutputStream};

use super::devices::{Device, Simulated};
use super::streams::{PIECE, Source, Writer};
use crate::capability::files::{Area, OpenMark, WritePosition, is_exhausted};
use crate::engine::cell::{Cell, bounds::blocking_pool::Unserved};

type Fd = Resource<Descriptor>;

impl Cell {
    pub(super) fn descriptor(&self, fd: &Fd) -> FsResult<&Descriptor> {
        match Simulated::of(&self.table, fd) {
            None => Ok(self.table.get(fd)?),
            Some(Simulated::Directory(_)) => Err(ErrorCode::NoEntry.into()),
            Some(Simulated::Device(_)) => Err(ErrorCode::Unsupported.into()),
        }
    }

    pub(super) fn directory(&self, fd: &Fd) -> FsResult<Dir> {
        match self.descriptor(fd)? {
            Descriptor::Dir(dir) => Ok(dir.clone()),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    pub(super) fn file(&self, fd: &Fd) -> FsResult<File> {
        match self.descriptor(fd)? {
            Descriptor::File(file) => Ok(file.clone()),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// Returns the directory and its quota, for a change at this path below it.
    ///
    /// # Errors
    /// `NotPermitted` if the directory is read-only.
    pub(super) fn writable(&mut self, fd: &Fd, path: &str) -> FsResult<(Dir, Arc<Area>)> {
        self.note_path(fd, path, Access::Write, false)?;
        self.counted_area(fd)
    }

    fn counted_area(&mut self, fd: &Fd) -> FsResult<(Dir, Arc<Area>)> {
        self.count_host_call()?;
        let dir = self.directory(fd)?;
        Ok((dir, self.files().area_of(fd).ok_or(ErrorCode::NotPermitted)?))
    }

    pub(super) fn writable_file(&mut self, fd: &Fd) -> FsResult<(File, Arc<OpenMark>)> {
        self.count_host_call()?;
        let file = self.file(fd)?;
        Ok((file, self.files().open_mark(fd).ok_or(ErrorCode::NotPermitted)?))
    }

    /// Returns two directories with the same quota: nothing can be moved between quotas.
    pub(super) fn writable_both(
        &mut self,
        (one, path): (&Fd, &str),
        (other, other_path): (&Fd, &str),
    ) -> FsResult<(Dir, Dir, Arc<Area>)> {
        self.note_path(one, path, Access::Write, false)?;
        self.note_path(other, other_path, Access::Write, false)?;
        let (from, area) = self.counted_area(one)?;
        let to = self.directory(other)?;
        let same = self.files().area_of(other).ok_or(ErrorCode::NotPermitted)?;
        let is_same = Arc::ptr_eq(&area, &same) || !enforced!(DirectoriesApart);
        if is_same { Ok((from, to, area)) } else { Err(ErrorCode::CrossDevice.into()) }
    }

    /// Runs this on a thread that may block, within the cell's and the tenant's share.
    pub(super) async fn wait_for<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> FsResult<T> {
        self.awaits(BlockedOn::File);
        let way = self.files().pool.clone();
        way.run(work).await.map_err(|unserved| match unserved {
            Unserved::Blocked => ErrorCode::Busy.into(),
            Unserved::Failed(error) => FsError::trap(error),
        })
    }

    pub(super) async fn blocking<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> FsResult<T> {
        self.wait_for(work).await?.map_err(|error| {
            // The guest's list of errors has none for too many open files; `quota` is the nearest.
            if is_exhausted(&error) { ErrorCode::Quota.into() } else { FsError::from(error) }
        })
    }

    /// Runs a function of wasmtime's own WASI host on a descriptor, on a thread that may block.
    pub(super) async fn run_wasi<T: Send + 'static, L>(&mut self, fd: &Fd, look: L) -> FsResult<T>
    where
        L: AsyncFnOnce(&mut WasiFilesystemCtxView<'_>, Fd) -> FsResult<T> + Send + 'static,
    {
        self.count_host_call()?;
        let seen = self.descriptor(fd)?.clone();
        let asked = self.wait_for(move || {
            let (mut ctx, mut table) = (WasiFilesystemCtx::default(), ResourceTable::new());
            let fd = table.push(seen)?;
            let mut view = WasiFilesystemCtxView { ctx: &mut ctx, table: &mut table };
            let answer = look(&mut view, fd).now_or_never();
            // wasmtime's host works on the calling thread, so the future never waits.
            answer.unwrap_or_else(|| {
                Err(FsError::trap(wasmtime::Error::msg("an answer that is not there yet")))
            })
        });
        asked.await?
    }

    /// Returns a stream that writes to a file, or discards what is written to a device.
    pub(super) fn writer(
        &mut self,
        fd: &Fd,
        at: WritePosition,
    ) -> FsResult<Resource<DynOutputStream>> {
        let writer: DynOutputStream = if Device::of(&self.table, fd).is_some() {
            self.counted(Box::new(SinkOutputStream))?
        } else {
            let (file, hold) = self.writable_file(fd)?;
            Box::new(Writer::new(self.source(fd, file)?, hold, at))
        };
        Ok(self.table.push(writer)?)
    }

    /// Returns the source of a file's stream.
    pub(super) fn source(&mut self, fd: &Fd, file: File) -> FsResult<Source> {
        let files = self.files();
        let charge = files.host_memory.charge(PIECE as u64)?;
        let slot = files.place_of(fd).map(|place| Arc::clone(&place.slot));
        Ok(Source { file: file.file, pool: files.pool.clone(), _slot: slot, _charge: charge })
    }
}
