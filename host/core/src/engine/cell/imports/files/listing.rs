//! Reads the entries of a directory for a guest, which then takes them one by one.
//!
//! `read_directory` of `types` calls [`Listing::of`] on a thread that may block. All entries are
//! read at once, so that the guest (the WebAssembly code of a tool) sees the directory at one
//! moment; `.` and `..` are left out. Each entry is charged to the host memory of the cell (a fresh
//! WebAssembly instance for one call) while it is read, so that a very large directory ends the
//! call instead of filling the host. The guest gets an error in place of a name that is not UTF-8.

use std::fs::File;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode, HostDirectoryEntryStream,
};
use wasmtime_wasi::p2::{FsError, FsResult};

use crate::engine::cell::{Cell, bounds::host_memory::Charge};

/// Entries that the guest has not read yet.
pub(super) struct Listing {
    entries: std::vec::IntoIter<Entry>,
    _charge: Charge,
}

/// An error for a name that is not UTF-8.
type Entry = Result<DirectoryEntry, ErrorCode>;

impl Listing {
    /// Reads all entries of a directory, without `.` and `..`.
    pub(super) fn of(dir: &File, mut charge: Charge) -> FsResult<Self> {
        let mut entries = Vec::new();
        // Opened again: a granted directory itself is open as a path only, which cannot be read.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(dir, c".", flags, Mode::empty()).map_err(failed)?;
        for entry in Dir::new(opened).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            charge.grow((size_of::<Entry>() + name.count_bytes()) as u64)?;
            let mut kind = entry.file_type();
            if kind == FileType::Unknown
                && let Ok(found) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            {
                // Some file systems do not tell the type in a listing. The type of an entry that is
                // gone meanwhile stays unknown.
                kind = FileType::from_raw_mode(found.st_mode);
            }
            let entry = |name: &str| DirectoryEntry { type_: of(kind), name: name.to_owned() };
            entries.push(name.to_str().map(entry).map_err(|_| ErrorCode::IllegalByteSequence));
        }
        Ok(Self { entries: entries.into_iter(), _charge: charge })
    }
}

impl HostDirectoryEntryStream for Cell {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.count_host_call()?;
        let listing = self.table.get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
        Ok(listing.entries.next().transpose()?)
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.count_host_call()?;
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

fn failed(error: rustix::io::Errno) -> FsError {
    std::io::Error::from(error).into()
}

fn of(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcell_contract::limits::Limits;

    use super::*;
    use crate::engine::cell::bounds::host_memory::HostMemory;

    fn names(listing: Listing) -> Vec<String> {
        let mut names: Vec<_> = listing.entries.map(|entry| entry.unwrap().name).collect();
        names.sort();
        names
    }

    /// Fails without: the charge of entries.
    #[test]
    fn listing_is_charged_until_dropped() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let (file, retained) = (File::open(dir.path()).unwrap(), Arc::<HostMemory>::default());
        let listing = Listing::of(&file, retained.charge(0).unwrap()).unwrap();
        assert_eq!(retained.charged(), 2 * (size_of::<Entry>() as u64 + 1));
        assert_eq!(names(listing), ["a", "b"]);
        assert_eq!(retained.charged(), 0);
        let all_but_one =
            retained.charge(Limits::HOST_BYTES - size_of::<Entry>() as u64 - 1).unwrap();
        assert!(Listing::of(&file, retained.charge(0).unwrap()).is_err());
        assert_eq!(retained.charged(), Limits::HOST_BYTES - size_of::<Entry>() as u64 - 1);
        drop(all_but_one);
    }
}
