//! Counts and removes directory trees of any depth, with few file descriptors and without
//! recursion.
//!
//! A tool chooses the shape of the trees that it creates, so depth and breadth are hostile input.
//! [`count`] takes an open directory and returns its bytes and its number of names; a file with
//! several names counts its bytes once. The ledger (the count of a directory against its quota)
//! calls it for a granted directory. [`clear`], which `temporary` calls, removes all content of a
//! directory: it moves each subdirectory up to the root under a number, and removes it there.
//! Invariants: no link is followed; no path is longer than one name; the number of open descriptors
//! does not depend on the depth.
//! Source: docs/threat-model.md, rows 26 and 30.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::os::private::{self, Inode};

/// Returns the device and inode number of a file.
pub(super) fn inode(file: &File) -> io::Result<Inode> {
    file.metadata().map(|found| private::inode(&found))
}

/// Opens a directory for reading. Fails for a link.
pub(super) fn open_dir(dir: impl AsFd, path: impl Arg) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(dir, path, flags, Mode::empty())?))
}

/// Returns the names in a directory, without `.` and `..`.
fn names(dir: &File) -> io::Result<impl Iterator<Item = io::Result<CString>>> {
    let names = Dir::read_from(dir)?.map(|entry| Ok(entry?.file_name().to_owned()));
    Ok(names.filter(|name| !name.as_deref().is_ok_and(|name| [c".", c".."].contains(&name))))
}

// -- counting

/// Returns the bytes and names in a directory. A file with several names is counted once.
pub(super) fn count(dir: &File) -> io::Result<(u64, u64)> {
    let mut count = Count::default();
    let mut here = open_dir(dir, c".")?;
    let mut levels = vec![Level { inode: inode(&here)?, waiting: count.add(&here)? }];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.waiting.pop() {
            let below = open_dir(&here, &name)?;
            let waiting = count.add(&below)?;
            if !waiting.is_empty() {
                levels.push(Level { inode: inode(&below)?, waiting });
                here = below;
            }
            continue;
        }
        levels.pop();
        if let Some(above) = levels.last() {
            here = open_dir(&here, c"..")?;
            if inode(&here)? != above.inode {
                return Err(io::Error::other("a directory below it was moved during the count"));
            }
        }
    }
    Ok((count.bytes, count.names))
}

/// A directory on the path down from the root.
struct Level {
    inode: Inode,
    /// Subdirectories that were not entered yet.
    waiting: Vec<CString>,
}

#[derive(Default)]
struct Count {
    bytes: u64,
    names: u64,
    /// Device and inode number of each file with several names.
    seen: HashSet<(u64, u64)>,
}

impl Count {
    /// Counts the entries of one directory. Returns its subdirectories, which the caller enters.
    fn add(&mut self, dir: &File) -> io::Result<Vec<CString>> {
        let mut directories = Vec::new();
        for name in names(dir)? {
            let name = name?;
            let found = statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            self.names += 1;
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                directories.push(name);
            } else if found.st_nlink <= 1 || self.seen.insert((found.st_dev, found.st_ino)) {
                self.bytes =
                    self.bytes.saturating_add(u64::try_from(found.st_size).unwrap_or_default());
            }
        }
        Ok(directories)
    }
}

// -- removing

/// Removes the content of a directory. Entries of a subdirectory are moved up to the root, so that
/// nothing is ever reached through more than one name.
pub(super) fn clear(dir: &File) -> io::Result<()> {
    let root = open_dir(dir, c".")?;
    let (mut next, mut moved) = (0, 0);
    for name in names(&root)? {
        remove(&root, &name?, &mut moved)?;
        while next < moved {
            remove(&root, &number(next)?, &mut moved)?;
            next += 1;
        }
    }
    Ok(())
}

/// Removes one entry of the root. If it is a directory, its non-empty subdirectories are moved to
/// the root under numbers.
fn remove(root: &File, name: &CStr, moved: &mut u64) -> io::Result<()> {
    if is_gone(root, name)? {
        return Ok(());
    }
    let dir = open_dir(root, name)?;
    for below in names(&dir)? {
        let below = below?;
        if is_gone(&dir, &below)? {
            continue;
        }
        loop {
            let free = number(*moved)?;
            *moved += 1;
            match renameat(&dir, &below, root, &free) {
                Ok(()) => break,
                // The tool used this name itself: that entry is removed when its number comes.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    if is_gone(root, name)? { Ok(()) } else { Err(Errno::NOTEMPTY.into()) }
}

fn number(number: u64) -> io::Result<CString> {
    Ok(CString::new(number.to_string())?)
}

/// Removes an entry. Returns true if it was removed or did not exist, false for a directory that is
/// not empty.
fn is_gone(dir: &File, name: &CStr) -> io::Result<bool> {
    let as_file = match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(true),
        Err(error) => error,
    };
    match unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(Errno::NOTDIR) => Err(as_file.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::mkdirat;

    use super::*;

    /// Creates nested directories. Returns the lowest.
    fn deepen(dir: &File, name: &CStr, levels: usize) -> File {
        let mut here = open_dir(dir, c".").unwrap();
        for _ in 0..levels {
            mkdirat(&here, name, Mode::RWXU).unwrap();
            here = open_dir(&here, name).unwrap();
        }
        here
    }

    fn file(dir: &File, name: &CStr, bytes: u64) {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        File::from(openat(dir, name, flags, Mode::RUSR).unwrap()).set_len(bytes).unwrap();
    }

    /// A tree deeper than the longest path, broad as well, with links to a canary, and with names
    /// that are numbers.
    #[test]
    fn deep_trees_are_counted_and_removed() {
        let (tree, canary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(canary.path().join("canary"), "alive").unwrap();
        let root = open_dir(rustix::fs::CWD, tree.path()).unwrap();
        for (name, levels) in [(c"0", 100), (c"1", 100), (c"deep", 850)] {
            let lowest = deepen(&root, name, levels);
            file(&lowest, c"7", 10);
            rustix::fs::symlinkat(canary.path(), &lowest, c"2").unwrap();
        }
        for number in 2..30 {
            fs::create_dir_all(tree.path().join(format!("{number}/{number}/a"))).unwrap();
            file(&root, &CString::new(format!("{}", 1_000 + number)).unwrap(), 1);
        }
        symlink(canary.path(), tree.path().join("away")).unwrap();
        let link = canary.path().as_os_str().len() as u64;
        let names = 100 + 100 + 850 + 3 * 2 + 28 * 4 + 1;
        assert_eq!(count(&root).unwrap(), (3 * (10 + link) + 28 + link, names));
        clear(&root).unwrap();
        assert_eq!(count(&root).unwrap(), (0, 0));
        assert_eq!(fs::read_to_string(canary.path().join("canary")).unwrap(), "alive");
    }
}
