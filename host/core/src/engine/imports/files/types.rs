//! `wasi:filesystem/types`, function by function.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode, Filesize,
    Host, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};
use wasmtime_wasi::runtime::spawn_blocking;
use wasmtime_wasi::{FsPerms, OpenMode};

use super::Place;
use super::streams::{Reader, Writer};
use crate::defence::{Defence, stands};
use crate::directory::{Area, At, Hold, Opened, Opening, open};
use crate::engine::cell::Cell;

type Fd = Resource<Descriptor>;

impl Cell {
    fn directory(&self, fd: &Fd) -> FsResult<Dir> {
        match self.table.get(fd)? {
            Descriptor::Dir(dir) => Ok(dir.clone()),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn file(&self, fd: &Fd) -> FsResult<File> {
        match self.table.get(fd)? {
            Descriptor::File(file) => Ok(file.clone()),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// The directory and its account; where it has none, it is for reading.
    fn writable(&mut self, fd: &Fd) -> FsResult<(Dir, Arc<Area>)> {
        self.count_host_call().map_err(FsError::trap)?;
        let dir = self.directory(fd)?;
        Ok((dir, self.files().area(fd).ok_or(ErrorCode::NotPermitted)?))
    }

    fn writable_file(&mut self, fd: &Fd) -> FsResult<(File, Arc<Hold>)> {
        self.count_host_call().map_err(FsError::trap)?;
        let file = self.file(fd)?;
        Ok((file, self.files().hold(fd).ok_or(ErrorCode::NotPermitted)?))
    }

    /// Two directories with the same account: nothing is moved from one to another.
    fn writable_both(&mut self, one: &Fd, other: &Fd) -> FsResult<(Dir, Dir, Arc<Area>)> {
        let (from, area) = self.writable(one)?;
        let to = self.directory(other)?;
        let same = self.files().area(other).ok_or(ErrorCode::NotPermitted)?;
        let is_same = Arc::ptr_eq(&area, &same) || !stands(Defence::DirectoriesApart);
        if is_same { Ok((from, to, area)) } else { Err(ErrorCode::CrossDevice.into()) }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> FsResult<T> {
    spawn_blocking(work).await.map_err(FsError::from)
}

/// A time that a tool gives, where this machine can say it.
fn time(given: NewTimestamp) -> FsResult<Option<SystemTime>> {
    match given {
        NewTimestamp::NoChange => Ok(None),
        NewTimestamp::Now => Ok(Some(SystemTime::now())),
        NewTimestamp::Timestamp(at) => {
            let time = Duration::from_secs(at.seconds).checked_add(Duration::from_nanos(at.nanoseconds.into()));
            let time = time.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
            Ok(Some(time.ok_or(ErrorCode::Overflow)?))
        }
    }
}

impl Host for Cell {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        self.filesystem().filesystem_error_code(error)
    }
}

impl HostDescriptor for Cell {
    // -- what opens or changes something

    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        self.count_host_call().map_err(FsError::trap)?;
        let dir = self.directory(&fd)?;
        let area = self.files().area(&fd);
        let sync = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(sync) {
            return Err(ErrorCode::Unsupported.into());
        }
        let opening = Opening {
            read: flags.contains(DescriptorFlags::READ),
            write: flags.contains(DescriptorFlags::WRITE),
            create: open_flags.contains(OpenFlags::CREATE),
            exclusive: open_flags.contains(OpenFlags::EXCLUSIVE),
            truncate: open_flags.contains(OpenFlags::TRUNCATE),
            directory: open_flags.contains(OpenFlags::DIRECTORY),
            follow: path_flags.contains(PathFlags::SYMLINK_FOLLOW),
        };
        let changes = opening.create || opening.exclusive || opening.truncate;
        if opening.directory && changes {
            return Err(ErrorCode::Invalid.into());
        }
        let account = area.clone();
        match blocking(move || open(account.as_ref(), &dir.dir, &path, opening)).await? {
            Opened::Directory(dir) => self.push_directory(dir, area).map_err(FsError::trap),
            Opened::File(file, hold) => {
                let writes = opening.write || changes;
                let mode = match (writes, opening.read) {
                    (true, true) => OpenMode::READ | OpenMode::WRITE,
                    (true, false) => OpenMode::WRITE,
                    (false, _) => OpenMode::READ,
                };
                let perms = if hold.is_some() { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
                let opened = self.table.push(Descriptor::File(File::new(file, perms, mode, false)))?;
                if let Some(hold) = hold {
                    self.files().places.insert(opened.rep(), Place::File(Arc::new(hold)));
                }
                Ok(opened)
            }
        }
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        let rep = fd.rep();
        HostDescriptor::drop(&mut self.filesystem(), fd)?;
        self.files().places.remove(&rep);
        Ok(())
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        let (file, hold) = self.writable_file(&fd)?;
        blocking(move || hold.set_size(&file.file, size)).await
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        let (file, hold) = self.writable_file(&fd)?;
        blocking(move || hold.write(&file.file, &bytes, At::Offset(offset)).map(|()| bytes.len() as u64)).await
    }

    fn write_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        let (file, hold) = self.writable_file(&fd)?;
        let writer: DynOutputStream = Box::new(Writer::new(file.file, hold, At::Offset(offset)));
        Ok(self.table.push(writer)?)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        let (file, hold) = self.writable_file(&fd)?;
        let writer: DynOutputStream = Box::new(Writer::new(file.file, hold, At::End));
        Ok(self.table.push(writer)?)
    }

    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        let hold = self.files().hold(&fd);
        let plain = self.filesystem().read_via_stream(fd, offset)?;
        let Some(hold) = hold else { return Ok(plain) };
        let reader: DynInputStream = Box::new(Reader { stream: self.table.delete(plain)?, _hold: hold });
        Ok(self.table.push(reader)?)
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let (dir, area) = self.writable(&fd)?;
        blocking(move || area.create_directory(&dir.dir, &path)).await
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let (dir, area) = self.writable(&fd)?;
        blocking(move || area.remove_directory(&dir.dir, &path)).await
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let (dir, area) = self.writable(&fd)?;
        blocking(move || area.remove_file(&dir.dir, &path)).await
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        let (dir, area) = self.writable(&fd)?;
        blocking(move || area.create_link(&dir.dir, &target, &path)).await
    }

    async fn link_at(&mut self, fd: Fd, flags: PathFlags, path: String, new_fd: Fd, new_path: String) -> FsResult<()> {
        let (dir, new_dir, area) = self.writable_both(&fd, &new_fd)?;
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(ErrorCode::Invalid.into());
        }
        blocking(move || area.name_again(&dir.dir, &path, &new_dir.dir, &new_path)).await
    }

    async fn rename_at(&mut self, fd: Fd, path: String, new_fd: Fd, new_path: String) -> FsResult<()> {
        let (dir, new_dir, area) = self.writable_both(&fd, &new_fd)?;
        blocking(move || area.rename(&dir.dir, &path, &new_dir.dir, &new_path)).await
    }

    async fn set_times(&mut self, fd: Fd, accessed: NewTimestamp, modified: NewTimestamp) -> FsResult<()> {
        self.filesystem().set_times(fd, accessed, modified).await
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        if !flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return self.filesystem().set_times_at(fd, flags, path, accessed, modified).await;
        }
        // The engine's own way opens what is there, and would wait for the other end of a pipe.
        let (dir, area) = self.writable(&fd)?;
        let mut times = std::fs::FileTimes::new();
        times = time(accessed)?.map_or(times, |time| times.set_accessed(time));
        times = time(modified)?.map_or(times, |time| times.set_modified(time));
        blocking(move || {
            let opening = Opening { read: true, follow: true, ..Opening::default() };
            match open(Some(&area), &dir.dir, &path, opening)? {
                Opened::Directory(file) | Opened::File(file, _) => file.set_times(times),
            }
        })
        .await
    }

    // -- what only looks, or says how something will be used

    async fn advise(&mut self, fd: Fd, offset: Filesize, len: Filesize, advice: Advice) -> FsResult<()> {
        self.filesystem().advise(fd, offset, len, advice).await
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        self.filesystem().sync_data(fd).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        self.filesystem().get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        self.filesystem().get_type(fd).await
    }

    async fn read(&mut self, fd: Fd, len: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        self.filesystem().read(fd, len, offset).await
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<DirectoryEntryStream>> {
        self.filesystem().read_directory(fd).await
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        self.filesystem().sync(fd).await
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        self.filesystem().stat(fd).await
    }

    async fn stat_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        self.filesystem().stat_at(fd, flags, path).await
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        self.filesystem().readlink_at(fd, path).await
    }

    async fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        self.filesystem().is_same_object(one, other).await
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        self.filesystem().metadata_hash(fd).await
    }

    async fn metadata_hash_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> FsResult<MetadataHashValue> {
        self.filesystem().metadata_hash_at(fd, flags, path).await
    }
}

impl HostDirectoryEntryStream for Cell {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.filesystem().read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        HostDirectoryEntryStream::drop(&mut self.filesystem(), stream)
    }
}
