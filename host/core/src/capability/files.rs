//! Opens the host directories that are granted to a component, and hands them to each of its calls.
//!
//! When a component is loaded, [`Mounts::open`] takes its [`Grants`] and opens each granted
//! directory once. It refuses a symbolic link, a directory of the operating system, one in which
//! users keep keys (such as `.ssh`), a directory shared by many users, and two directories that
//! overlap if one of them is writable. The error names the directory and gives a hint.
//! When a call begins, [`Mounts::roots`] returns an open handle of each directory that the call's
//! rights cover. A directory that is gone by then is left out. No link below a granted directory is
//! followed. [`Mounts::scratch`] creates the call's scratch directory: an empty directory that is
//! removed when the call ends.
//! A writable directory has an [`Area`], which counts its bytes and files against the quota of its
//! grant.
//! Not here: the WASI functions of guests (`engine/cell/imports/files`), and the decision which
//! directories a call may use ([`Rights`]).
//! Source: docs/threat-model.md, rows 25 to 32.

mod call_files;
mod forbidden;
mod ledger;
mod scratch;
mod temporary;
mod tree;
mod work;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use toolcell_contract::controls::enforced;
use toolcell_contract::error::Error;
use toolcell_contract::grants::rights::Rights;
use toolcell_contract::grants::{Access, Directory, Grants, SCRATCH};

use ledger::Ledger;
use scratch::ScratchRoot;

pub use call_files::CallFiles;
pub use forbidden::forbidden_root;
pub(crate) use ledger::{Area, OpenMark};
pub(crate) use scratch::Scratch;
pub use temporary::{TemporaryDirectory, remove_tree};
pub(crate) use work::{OpenSettings, Opened, WritePosition, open};

/// Magic numbers of filesystems that the kernel provides, wherever they are mounted: proc, sysfs,
/// devpts, cgroup, cgroup2, debugfs, tracefs, securityfs. Source: Linux, `magic.h`.
const KERNEL: [u64; 8] =
    [0x9fa0, 0x6265_6572, 0x1cd1, 0x0027_e0eb, 0x6367_7270, 0x6462_6720, 0x7472_6163, 0x7363_6673];

/// The granted directories of one component.
pub(crate) struct Mounts {
    mounts: Vec<Mount>,
    /// Creates the scratch directories of single calls.
    scratch: Option<ScratchRoot>,
}

/// One granted directory.
struct Mount {
    name: String,
    /// With every link in the path resolved.
    path: PathBuf,
    dir: File,
    access: Access,
    area: Option<Arc<Area>>,
}

/// A directory as one call gets it.
pub(crate) struct Root {
    pub(crate) name: String,
    pub(crate) dir: File,
    /// Counts the bytes and files that are written. `None` for a read-only directory.
    pub(crate) area: Option<Arc<Area>>,
}

impl Mounts {
    /// Opens the granted directories. Returns `None` if none is granted. If `counts` names a
    /// directory, all processes that name the same one share the quotas of the granted directories.
    ///
    /// # Errors
    /// [`Error::is_directory`] for the first directory that cannot be opened or must not be
    /// granted.
    pub(crate) fn open(grants: &Grants, counts: Option<&Path>) -> Result<Option<Self>, Error> {
        if grants.directories.is_empty() && grants.scratch.is_none() {
            return Ok(None);
        }
        let mut mounts = Vec::<Mount>::with_capacity(grants.directories.len());
        for directory in &grants.directories {
            let taken = grants.scratch.is_some() && directory.name == SCRATCH;
            if taken || mounts.iter().any(|other| other.name == directory.name) {
                let hint = "give each directory a different name";
                return Err(fault(directory, "another directory has this name", hint));
            }
            let mount = Mount::open(directory, counts)?;
            if let Some(other) = mounts.iter().find(|other| mount.conflicts(other)) {
                let problem = format!(
                    "it overlaps with the directory `{}`, and one of the two is granted for writing",
                    other.name
                );
                let hint = "grant only the outer directory, or grant both for reading only";
                return Err(fault(directory, problem, hint));
            }
            mounts.push(mount);
        }
        let scratch_root = |room| {
            ScratchRoot::new(room).map_err(|error| {
                let problem = "the temporary directory for it cannot be made";
                let hint = "set `TMPDIR` to a directory that you can write to";
                Error::directory(SCRATCH, &tempfile::env::temp_dir(), problem, hint)
                    .with_source(error)
            })
        };
        Ok(Some(Self { mounts, scratch: grants.scratch.map(scratch_root).transpose()? }))
    }

    /// Opens the directories that a call with these rights may use. A directory that is gone, or
    /// has become a link, is left out.
    ///
    /// # Errors
    /// If too many files are open: the directory exists and cannot be opened now.
    pub(crate) fn roots(&self, rights: &Rights) -> io::Result<Vec<Root>> {
        let mut roots = Vec::new();
        for mount in &self.mounts {
            for (name, access) in rights.openings(&mount.name, mount.access) {
                let below = name.strip_prefix(mount.name.trim_end_matches('/')).unwrap_or_default();
                let area = if access == Access::Write { mount.area.clone() } else { None };
                let dir = if_present(descend(&mount.dir, below), &name)?;
                roots.extend(dir.map(|dir| Root { name, dir, area }));
            }
        }
        Ok(roots)
    }

    /// Creates a scratch directory for a call, if one is granted and the call's rights include all
    /// of it.
    ///
    /// # Errors
    /// The error of the filesystem of temporary files.
    pub(crate) fn scratch(&self, rights: &Rights) -> io::Result<Option<Scratch>> {
        let Some(root) = &self.scratch else { return Ok(None) };
        // Only full rights are useful: a scratch directory is empty when the call begins.
        let mut openings = rights.openings(SCRATCH, Access::Write).into_iter();
        let is_whole = openings.any(|(name, access)| name == SCRATCH && access == Access::Write);
        is_whole.then(|| root.scratch()).transpose()
    }
}

impl Mount {
    fn open(directory: &Directory, counts: Option<&Path>) -> Result<Self, Error> {
        // Drops a trailing slash, which would make the check below follow a link.
        let path: PathBuf = directory.path.components().collect();
        let cannot = |error: io::Error| {
            fault(directory, "it cannot be opened", "make the directory, or correct its path")
                .with_source(error)
        };
        let found = path.symlink_metadata().map_err(cannot)?;
        if found.is_symlink() && enforced!(MountedLinks) {
            let hint = "grant the directory that the link leads to, by that directory's own path";
            return Err(fault(directory, "it is a symbolic link", hint));
        }
        if !found.is_dir() {
            let hint = "grant the directory that it lies in";
            return Err(fault(directory, "it is not a directory", hint));
        }
        let path = path.canonicalize().map_err(cannot)?;
        let dir =
            Dir::open_ambient_dir(&path, ambient_authority()).map_err(cannot)?.into_std_file();
        let kernels = "is in a filesystem of the kernel, such as proc or sysfs";
        let unfit = forbidden_root(&path).or_else(|| is_kernels(&dir).then(|| kernels.to_owned()));
        if let Some(why) = unfit.filter(|_| enforced!(MachineDirectories)) {
            let hint = "grant a directory made for the tool";
            return Err(fault(directory, format!("it {why}"), hint));
        }
        let area = match directory.access {
            Access::Read => None,
            Access::Write => {
                let counts = counts.filter(|_| enforced!(SharedCounts));
                let ledger = Ledger::of(&dir, counts).map_err(|error| {
                    let place = counts.map_or_else(String::new, |dir| format!(" (its count is in {})", dir.display()));
                    let problem = format!("its contents cannot be counted{place}: {error}");
                    let hint = "check the permissions of the directory and of the files that keep its count";
                    fault(directory, problem, hint).with_source(error)
                })?;
                Some(Arc::new(Area::new(directory.quota, ledger)))
            }
        };
        Ok(Self { name: directory.name.clone(), path, dir, access: directory.access, area })
    }

    fn conflicts(&self, other: &Self) -> bool {
        let reads = self.access == Access::Read && other.access == Access::Read;
        let same = || matches!((tree::inode(&self.dir), tree::inode(&other.dir)), (Ok(one), Ok(two)) if one == two);
        enforced!(Overlaps)
            && !reads
            && (self.path.starts_with(&other.path) || other.path.starts_with(&self.path) || same())
    }
}

/// Returns true if the process or the system has no file descriptor left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Returns the opened directory, or `None` if it is gone.
fn if_present(opened: io::Result<File>, name: &str) -> io::Result<Option<File>> {
    match opened {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if is_exhausted(&error) => {
            tracing::error!(%error, name, "too many files are open: a granted directory cannot be opened");
            Err(error)
        }
        Err(error) => {
            tracing::warn!(%error, name, "a granted directory is gone or cannot be opened");
            Ok(None)
        }
    }
}

fn fault(directory: &Directory, problem: impl std::fmt::Display, hint: &'static str) -> Error {
    Error::directory(&directory.name, &directory.path, problem, hint)
}

fn is_kernels(dir: &File) -> bool {
    rustix::fs::fstatfs(dir)
        .is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| KERNEL.contains(&kind)))
}

/// Opens a directory below another one without following any link, because a tool may have created
/// one.
fn descend(dir: &File, below: &str) -> io::Result<File> {
    let follow = if enforced!(OverlayLinks) { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | follow;
    let mut found = dir.try_clone()?;
    for part in below.split('/').filter(|part| !part.is_empty()) {
        found = File::from(rustix::fs::openat(&found, part, flags, Mode::empty())?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
