//! Functions of `wasi:filesystem/types`, which guests call on descriptors of files and directories.
//!
//! A guest is the WebAssembly code of a tool. wasmtime's linker calls the functions on the [`Cell`]
//! of the guest's call. Each one counts the call into the host, finds what is behind the descriptor
//! (a file, a directory, a simulated device or root), and works on it on a thread that may block.
//! It returns a result or a WASI error code. Operations that open or change something go to
//! `capability/files`, which enforces rights and quota; those that only read metadata go to
//! wasmtime's own WASI host.
//! Opening takes a permit of the bound on open files. A database of SQLite in WAL mode, which
//! cannot work in a cell, is reported to the log once.

use std::{os::unix::fs::FileExt as _, sync::Arc};

use toolcell_contract::{event::LogLevel, grants::Access};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, File, WasiFilesystemCtxView, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntryStream, ErrorCode,
    Filesize, Host, HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};
use wasmtime_wasi::{FsPerms, OpenMode};

use super::devices::{Device, Simulated};
use super::times::{rounded_times, system_time};
use super::{ON_CALLING_THREAD, Place, listing::Listing, streams::Reader};
use crate::capability::files::{OpenSettings, Opened, WritePosition, open};
use crate::engine::cell::{Cell, host_span::host_span};

/// Bytes of the smallest database of SQLite.
const SQLITE_PAGE: u64 = 512;
/// The log text after the name of a database that SQLite cannot open here.
const WAL: &str = "is a SQLite database in WAL mode, which needs memory that processes share, and a cell has none: run `PRAGMA \
                   journal_mode = DELETE` on it outside";

type Fd = Resource<Descriptor>;
type View<'a> = WasiFilesystemCtxView<'a>;

/// Returns true for a SQLite database whose write version is that of WAL. Source: SQLite, database
/// file format, 1.3.
fn is_wal_database(file: &std::fs::File) -> bool {
    let mut header = [0; 20];
    let has_a_page = file.metadata().is_ok_and(|file| file.is_file() && file.len() >= SQLITE_PAGE);
    has_a_page
        && file.read_exact_at(&mut header, 0).is_ok()
        && header.starts_with(b"SQLite format 3\0")
        && header[18] == 2
}

impl Host for Cell {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.filesystem().filesystem_error_code(error)
    }
}

impl HostDescriptor for Cell {
    // -- operations that open or change something

    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        self.count_host_call()?;
        if let Some(device) = self.device(&fd, &path) {
            return device.open(&mut self.table, open_flags);
        }
        let opening = OpenSettings {
            read: flags.contains(DescriptorFlags::READ),
            write: flags.contains(DescriptorFlags::WRITE),
            create: open_flags.contains(OpenFlags::CREATE),
            exclusive: open_flags.contains(OpenFlags::EXCLUSIVE),
            truncate: open_flags.contains(OpenFlags::TRUNCATE),
            directory: open_flags.contains(OpenFlags::DIRECTORY),
            follow: path_flags.contains(PathFlags::SYMLINK_FOLLOW),
        };
        let changes = opening.create || opening.exclusive || opening.truncate;
        let writes = opening.write || changes;
        let access = if writes { Access::Write } else { Access::Read };
        let noted = self.note_path(&fd, &path, access, opening.directory)?;
        let dir = self.directory(&fd)?;
        let area = self.files().area_of(&fd);
        let sync = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(sync) {
            return Err(ErrorCode::Unsupported.into());
        }
        if opening.directory && changes {
            return Err(ErrorCode::Invalid.into());
        }
        let quota = area.clone();
        let slot = self.slot().map_err(|_| ErrorCode::Quota)?;
        let span = host_span(&self.scope.invocation, "wasi:filesystem", "open-at");
        let shown = path.clone();
        let opened = self.blocking(move || {
            let opened = open(quota.as_ref(), &dir.dir, &path, opening)?;
            let is_wal =
                matches!(&opened, Opened::File(file, _) if opening.read && is_wal_database(file));
            Ok((opened, is_wal))
        });
        let opened = opened.await.map(|(opened, is_wal)| {
            if is_wal && !std::mem::replace(&mut self.files().is_wal_reported, true) {
                self.scope.invocation.noted(LogLevel::Warn, format!("`{shown}` {WAL}"));
            }
            opened
        });
        if opened.is_err() {
            span.record("error", "failed");
        }
        match opened? {
            Opened::Directory(dir) => {
                let place = Place { is_root: false, slot, area, open_mark: None, path: noted };
                self.push_directory(dir, place).map_err(FsError::trap)
            }
            Opened::File(file, hold) => {
                let mode = match (writes, opening.read) {
                    (true, true) => OpenMode::READ | OpenMode::WRITE,
                    (true, false) => OpenMode::WRITE,
                    (false, _) => OpenMode::READ,
                };
                let perms = if hold.is_some() { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
                let file = File::new(file, perms, mode, ON_CALLING_THREAD);
                let opened = self.table.push(Descriptor::File(file))?;
                let open_mark = hold.map(Arc::new);
                let place = Place { is_root: false, slot, area: None, open_mark, path: None };
                self.files().places.insert(opened.rep(), place);
                Ok(opened)
            }
        }
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        if Simulated::of(&self.table, &fd).is_some() {
            return Simulated::close(&mut self.table, &fd);
        }
        let rep = fd.rep();
        HostDescriptor::drop(&mut self.filesystem(), fd)?;
        self.files().places.remove(&rep);
        Ok(())
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        let (file, hold) = self.writable_file(&fd)?;
        self.blocking(move || hold.set_size(&file.file, size)).await
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        if Device::of(&self.table, &fd).is_some() {
            return self.counted(bytes.len() as u64);
        }
        let (file, hold) = self.writable_file(&fd)?;
        self.blocking(move || {
            hold.write(&file.file, &bytes, WritePosition::Offset(offset))
                .map(|()| bytes.len() as u64)
        })
        .await
    }

    fn write_via_stream(
        &mut self,
        fd: Fd,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&fd, WritePosition::Offset(offset))
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&fd, WritePosition::End)
    }

    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        self.count_host_call()?;
        if let Some(device) = Device::of(&self.table, &fd) {
            return self.device_reader(device);
        }
        let Descriptor::File(file) = self.descriptor(&fd)?.clone() else {
            return Err(ErrorCode::IsDirectory.into());
        };
        let hold = self.files().open_mark(&fd);
        let reader: DynInputStream = Box::new(Reader::new(self.source(&fd, file)?, hold, offset));
        Ok(self.table.push(reader)?)
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let (dir, area) = self.writable(&fd, &path)?;
        self.blocking(move || area.create_directory(&dir.dir, &path)).await
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let (dir, area) = self.writable(&fd, &path)?;
        self.blocking(move || area.remove_directory(&dir.dir, &path)).await
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let (dir, area) = self.writable(&fd, &path)?;
        let permit = self.slot().ok();
        self.blocking(move || area.remove_file(&dir.dir, &path, permit)).await
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        let (dir, area) = self.writable(&fd, &path)?;
        self.blocking(move || area.create_link(&dir.dir, &target, &path)).await
    }

    async fn link_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        new_fd: Fd,
        new_path: String,
    ) -> FsResult<()> {
        let (dir, new_dir, area) = self.writable_both((&fd, &path), (&new_fd, &new_path))?;
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(ErrorCode::Invalid.into());
        }
        self.blocking(move || area.name_again(&dir.dir, &path, &new_dir.dir, &new_path)).await
    }

    async fn rename_at(
        &mut self,
        fd: Fd,
        path: String,
        new_fd: Fd,
        new_path: String,
    ) -> FsResult<()> {
        let (dir, new_dir, area) = self.writable_both((&fd, &path), (&new_fd, &new_path))?;
        let permit = self.slot().ok();
        self.blocking(move || area.rename(&dir.dir, &path, &new_dir.dir, &new_path, permit)).await
    }

    async fn set_times(
        &mut self,
        fd: Fd,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.run_wasi(&fd, async move |host, fd| host.set_times(fd, accessed, modified).await)
            .await?;
        self.files().sets([accessed, modified]);
        Ok(())
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            // wasmtime's own host would open the file, and wait for the other end of a pipe.
            let (dir, area) = self.writable(&fd, &path)?;
            let mut times = std::fs::FileTimes::new();
            times = system_time(accessed)?.map_or(times, |time| times.set_accessed(time));
            times = system_time(modified)?.map_or(times, |time| times.set_modified(time));
            self.blocking(move || {
                let opening = OpenSettings { read: true, follow: true, ..OpenSettings::default() };
                match open(Some(&area), &dir.dir, &path, opening)? {
                    Opened::Directory(file) | Opened::File(file, _) => file.set_times(times),
                }
            })
            .await?;
        } else {
            self.note_path(&fd, &path, Access::Write, false)?;
            let look = async move |host: &mut View<'_>, fd| {
                host.set_times_at(fd, flags, path, accessed, modified).await
            };
            self.run_wasi(&fd, look).await?;
        }
        self.files().sets([accessed, modified]);
        Ok(())
    }

    // -- operations that read metadata, or announce a use

    async fn advise(
        &mut self,
        fd: Fd,
        offset: Filesize,
        len: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        self.run_wasi(&fd, async move |host, fd| host.advise(fd, offset, len, advice).await).await
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        self.run_wasi(&fd, async move |host, fd| host.sync_data(fd).await).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        if let Some(simulated) = Simulated::of(&self.table, &fd) {
            return self.counted(simulated.flags());
        }
        self.run_wasi(&fd, async move |host, fd| host.get_flags(fd).await).await
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        if let Some(simulated) = Simulated::of(&self.table, &fd) {
            return self.counted(simulated.kind());
        }
        self.run_wasi(&fd, async move |host, fd| host.get_type(fd).await).await
    }

    async fn read(&mut self, fd: Fd, len: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        if let Some(device) = Device::of(&self.table, &fd) {
            let device = self.counted(device)?;
            return self.read_device(device, len);
        }
        self.run_wasi(&fd, async move |host, fd| host.read(fd, len, offset).await).await
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<DirectoryEntryStream>> {
        let dir = self.directory(&fd)?;
        self.count_host_call()?;
        let charge = self.files().host_memory.charge(0)?;
        let listing = self.wait_for(move || Listing::of(&dir.dir, charge)).await??;
        Ok(Resource::new_own(self.table.push(listing)?.rep()))
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        self.run_wasi(&fd, async move |host, fd| host.sync(fd).await).await
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        if let Some(simulated) = Simulated::of(&self.table, &fd) {
            return self.counted(simulated.stat());
        }
        let (clock, set) = (self.clock(), self.files().set.clone());
        self.run_wasi(&fd, async move |host, fd| {
            host.stat(fd).await.map(|file| rounded_times(file, clock, &set))
        })
        .await
    }

    async fn stat_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        if let Some(device) = self.device(&fd, &path) {
            return self.counted(Simulated::Device(device).stat());
        }
        self.note_path(&fd, &path, Access::Read, false)?;
        let (clock, set) = (self.clock(), self.files().set.clone());
        let look = async move |host: &mut View<'_>, fd| {
            host.stat_at(fd, flags, path).await.map(|file| rounded_times(file, clock, &set))
        };
        self.run_wasi(&fd, look).await
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        self.note_path(&fd, &path, Access::Read, false)?;
        self.run_wasi(&fd, async move |host, fd| host.readlink_at(fd, path).await).await
    }

    async fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        // A simulated one is not a file or directory of the host.
        let [first, second] = [&one, &other].map(|fd| Simulated::of(&self.table, fd));
        if first.is_some() || second.is_some() {
            self.count_host_call()?;
            return Ok(first == second);
        }
        let same = match self.descriptor(&other).cloned() {
            Ok(other) => {
                let look = async move |host: &mut View<'_>, one| {
                    let other = host.table.push(other)?;
                    host.is_same_object(one, other).await.map_err(FsError::trap)
                };
                self.run_wasi(&one, look).await
            }
            Err(error) => Err(error),
        };
        same.or_else(|error| Err(error.downcast()?.into()))
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        if let Some(simulated) = Simulated::of(&self.table, &fd) {
            return self.counted(simulated.hash());
        }
        self.run_wasi(&fd, async move |host, fd| host.metadata_hash(fd).await).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        if let Some(device) = self.device(&fd, &path) {
            return self.counted(Simulated::Device(device).hash());
        }
        self.note_path(&fd, &path, Access::Read, false)?;
        self.run_wasi(&fd, async move |host, fd| host.metadata_hash_at(fd, flags, path).await).await
    }
}
