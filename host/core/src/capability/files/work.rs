//! Opens, writes, renames and removes files for a tool, inside of one directory and within its
//! quota.
//!
//! The WASI functions of a guest (the WebAssembly code of a tool) call [`open`] and the methods of
//! [`Area`] and [`OpenMark`], on a thread that may block. They take an open directory and a
//! relative path. They return a handle, or an I/O error that the guest gets as an errno. An
//! operation that changes something holds the lock of the directory, checks for room first, and
//! reports the change to the `ledger`, which counts the directory's content.
//! Invariants: no path leads out of the directory; an operation that does not fit changes nothing;
//! only regular files and directories are opened, and no open waits for the other end of a pipe; no
//! link is created that leads upwards.
//!
//! Two libraries resolve paths. This module uses `cap-std` for all that opens or changes something,
//! because it chooses the flags. Functions that only read metadata (`stat`, `readlink`, times) use
//! the engine's WASI host. Both resolve beneath the directory with `openat2`, or name by name on a
//! kernel without it. One operation uses one of them and checks the descriptor that it opened; none
//! relies on what the other found. The advisories of both have to be followed.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Component, Path};
use std::sync::Arc;

use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;
use rustix::io::Errno;
use toolcell_contract::controls::enforced;

use super::is_exhausted;
use super::ledger::{Area, NamedEntry, OpenMark, Probe};
use crate::tenant::share::Reservation;

/// Flags with which a file or directory is opened, as in WASI.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OpenSettings {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) create: bool,
    pub(crate) exclusive: bool,
    pub(crate) truncate: bool,
    pub(crate) directory: bool,
    pub(crate) follow: bool,
}

/// The result of an open.
pub(crate) enum Opened {
    Directory(File),
    /// A regular file. In a writable directory also its entry in the ledger.
    File(File, Option<OpenMark>),
}

/// The position of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WritePosition {
    /// This many bytes from the file's start.
    Offset(u64),
    /// The file's end.
    End,
}

/// Opens the file or directory at a path. Without an area it can only be read.
pub(crate) fn open(
    area: Option<&Arc<Area>>,
    dir: &File,
    path: &str,
    opening: OpenSettings,
) -> io::Result<Opened> {
    let changes = opening.write || opening.create || opening.truncate;
    if area.is_none() && changes && enforced!(ReadOnly) {
        return Err(Errno::PERM.into());
    }
    let dir = capability(dir)?;
    // Reading needs the turn as well, so that a file does not lose its name before it is held.
    let mut turn = area.map(|area| area.lock_changes()).transpose()?;
    let file = match (options(opening), turn.as_mut().filter(|_| opening.create)) {
        (options, None) => dir.open_with(path, &options)?,
        (options, Some(_)) if !opening.exclusive && exists(&dir, path, opening) => {
            dir.open_with(path, &options)?
        }
        (mut options, Some(turn)) => {
            // Never creates through a dangling link: the target would be another path than the one
            // that was checked.
            turn.has_room(0, 1)?;
            let file = dir.open_with(path, options.create_new(true))?;
            turn.count_entry(0);
            file
        }
    };
    let file = file.into_std();
    let found = file.metadata()?;
    if found.is_dir() {
        return if changes { Err(Errno::ISDIR.into()) } else { Ok(Opened::Directory(file)) };
    }
    if opening.directory {
        return Err(Errno::NOTDIR.into());
    }
    if !found.is_file() && enforced!(PlainFiles) {
        return Err(Errno::ACCESS.into());
    }
    let hold = area.map(|area| area.mark_open(&file));
    if let Some(turn) = turn.as_mut().filter(|_| opening.truncate && found.len() > 0) {
        file.set_len(0)?;
        turn.resized(found.len(), 0, true);
    }
    drop(turn);
    Ok(Opened::File(file, hold))
}

/// Returns options that never block, for instance on a pipe's other end, and never truncate: the
/// kind of the file must be known first.
fn options(opening: OpenSettings) -> OpenOptions {
    let follow = if opening.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | follow).bits();
    let write = opening.write || opening.create || opening.truncate;
    let mut options = OpenOptions::new();
    options.read(opening.read || !write).write(write).custom_flags(flags.cast_signed());
    options
}

fn exists(dir: &Dir, path: &str, opening: OpenSettings) -> bool {
    if opening.follow { dir.metadata(path).is_ok() } else { dir.symlink_metadata(path).is_ok() }
}

fn capability(dir: &File) -> io::Result<Dir> {
    dir.try_clone().map(Dir::from_std_file)
}

/// Returns the entry that an operation is going to remove. `permit` is for the handle of a file that
/// some cell has open.
fn entry_at(dir: &Dir, path: &str, permit: Option<Arc<Reservation>>) -> io::Result<NamedEntry> {
    let found = dir.symlink_metadata(path)?;
    let bytes = (!found.is_dir()).then(|| found.len());
    let mut probe = None;
    if found.is_file() && found.nlink() <= 1 {
        match dir.open_with(path, &options(OpenSettings::default())) {
            Ok(file) => probe = Probe::of(file.into_std(), permit)?,
            Err(error) if is_exhausted(&error) => return Err(error),
            // It cannot be opened here, and counts as closed.
            Err(_) => {}
        }
    }
    Ok(NamedEntry { inode: (found.dev(), found.ino()), links: found.nlink(), bytes, probe })
}

impl Area {
    pub(crate) fn create_directory(&self, dir: &File, path: &str) -> io::Result<()> {
        let dir = capability(dir)?;
        self.add_name(0, || dir.create_dir(path))
    }

    pub(crate) fn remove_directory(&self, dir: &File, path: &str) -> io::Result<()> {
        // Drops a trailing slash of a directory's name: the path resolver would read it as `/.`.
        let path = if path.starts_with('/') { path } else { path.trim_end_matches('/') };
        self.remove_name(dir, path, None, Dir::remove_dir)
    }

    /// Removes a file. `permit` is for the handle by which the ledger knows how long a file stays
    /// open; without it, a file that some cell has open is not removed.
    pub(crate) fn remove_file(
        &self,
        dir: &File,
        path: &str,
        permit: Option<Arc<Reservation>>,
    ) -> io::Result<()> {
        self.remove_name(dir, path, permit, Dir::remove_file)
    }

    /// Creates a link that leads downwards, so that it never leads out of the directory, wherever
    /// it is moved and whichever process follows it.
    pub(crate) fn create_link(&self, dir: &File, target: &str, path: &str) -> io::Result<()> {
        let down = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if enforced!(LinkTargets)
            && (target.is_empty() || !Path::new(target).components().all(down))
        {
            return Err(Errno::PERM.into());
        }
        let dir = capability(dir)?;
        self.add_name(target.len() as u64, || dir.symlink(target, path))
    }

    /// Creates a hard link.
    pub(crate) fn name_again(
        &self,
        dir: &File,
        path: &str,
        new_dir: &File,
        new_path: &str,
    ) -> io::Result<()> {
        let (dir, new_dir) = (capability(dir)?, capability(new_dir)?);
        self.add_name(0, || dir.hard_link(path, &new_dir, new_path))
    }

    /// Adds a name, with this many bytes of its own.
    fn add_name(&self, bytes: u64, add: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut turn = self.lock_changes()?;
        turn.has_room(bytes, 1)?;
        add()?;
        turn.count_entry(bytes);
        Ok(())
    }

    /// Removes a name. The bytes of a file that is still open stay counted.
    fn remove_name<'a>(
        &self,
        dir: &File,
        path: &'a str,
        permit: Option<Arc<Reservation>>,
        remove: fn(&Dir, &'a str) -> io::Result<()>,
    ) -> io::Result<()> {
        let dir = capability(dir)?;
        let mut turn = self.lock_changes()?;
        let was = entry_at(&dir, path, permit)?;
        remove(&dir, path)?;
        turn.unnamed(was);
        Ok(())
    }

    /// Renames an entry. `permit` is for the entry that it replaces, as in
    /// [`remove_file`](Self::remove_file).
    pub(crate) fn rename(
        &self,
        dir: &File,
        path: &str,
        new_dir: &File,
        new_path: &str,
        permit: Option<Arc<Reservation>>,
    ) -> io::Result<()> {
        let (dir, new_dir) = (capability(dir)?, capability(new_dir)?);
        let mut turn = self.lock_changes()?;
        let moved = dir.symlink_metadata(path)?;
        if !moved.is_dir() && new_path.ends_with('/') {
            // A trailing slash names a directory, but the path resolver drops the slash.
            return Err(Errno::NOTDIR.into());
        }
        let replaced = match entry_at(&new_dir, new_path, permit) {
            Err(error) if is_exhausted(&error) => return Err(error),
            found => found.ok().filter(|found| found.inode != (moved.dev(), moved.ino())),
        };
        dir.rename(path, &new_dir, new_path)?;
        if let Some(replaced) = replaced {
            turn.unnamed(replaced);
        }
        Ok(())
    }
}

impl OpenMark {
    /// Writes all of the bytes, or nothing if they do not fit.
    pub(crate) fn write(&self, file: &File, bytes: &[u8], at: WritePosition) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.resize(file, |before| {
            let start = match at {
                WritePosition::Offset(offset) => offset,
                WritePosition::End => before,
            };
            let end = start.checked_add(bytes.len() as u64).ok_or(Errno::FBIG)?;
            Ok((end.max(before), move || file.write_all_at(bytes, start)))
        })
    }

    pub(crate) fn set_size(&self, file: &File, size: u64) -> io::Result<()> {
        self.resize(file, |_| Ok((size, move || file.set_len(size))))
    }

    /// Resizes a file: `plan` takes its size and returns the size after the change, and the change.
    fn resize<F: FnOnce() -> io::Result<()>>(
        &self,
        file: &File,
        plan: impl FnOnce(u64) -> io::Result<(u64, F)>,
    ) -> io::Result<()> {
        let mut turn = self.area.lock_changes()?;
        let before = file.metadata()?.len();
        let (after, change) = plan(before)?;
        turn.has_room(after.saturating_sub(before), 0)?;
        let changed = change();
        // The real size on the disk, also if the change failed half-way.
        let found = file.metadata()?;
        turn.resized(before, found.len(), found.nlink() > 0);
        changed
    }
}
