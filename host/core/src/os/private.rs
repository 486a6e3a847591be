//! Creates, opens and checks files and directories that only this user may write to.
//!
//! It serves files whose content must be trusted or kept secret: the compile cache, the key that
//! seals (encrypts) the states of questions, the store of keys and values, the counts of directory
//! quotas, a server's file of API keys. [`NotPrivate`] says why a file cannot be trusted. [`read`]
//! returns content only if no other user can read or write the file. [`open`] checks no owner: its
//! caller calls [`alone`], or authenticates the content itself. Opening a file follows no link and
//! does not wait for the other end of a pipe. [`directory`] follows links, and requires only that
//! no other user can write. A new file gets its name only after all of its content, so that readers
//! never see a part.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use rustix::fs::OFlags;
use tempfile::{NamedTempFile, TempPath};
use toolcell_contract::controls::enforced;

/// Mode bits that let others write, and those that give others any access.
const WRITE: u32 = 0o022;
const OTHERS_BITS: u32 = 0o077;

/// The reason why a file or directory is not private, as the end of a sentence that begins with its
/// path.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotPrivate {
    #[error("cannot be made: {0}")]
    NotCreated(#[source] io::Error),
    #[error("cannot be opened, or is a link")]
    NotOpened(#[source] io::Error),
    #[error("is a link")]
    Link,
    #[error("cannot be read")]
    Unread(#[source] io::Error),
    #[error("is not a plain file")]
    NotPlain,
    #[error("belongs to another user")]
    Foreign,
    #[error("can be written by others")]
    Writable,
    #[error("can be read or written by others")]
    Readable,
}

impl From<NotPrivate> for io::Error {
    fn from(unfit: NotPrivate) -> Self {
        match unfit {
            NotPrivate::NotCreated(error)
            | NotPrivate::NotOpened(error)
            | NotPrivate::Unread(error) => error,
            NotPrivate::Link
            | NotPrivate::NotPlain
            | NotPrivate::Foreign
            | NotPrivate::Writable
            | NotPrivate::Readable => Self::other(unfit),
        }
    }
}

/// Returns options to read a file, without following a link or waiting for the other end of a pipe.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Opens a file to read and write it. A missing one is created empty, for this user only.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// The device and the inode of a file, by which it is known under any name.
pub(crate) type Inode = (u64, u64);

/// Returns the device and the inode of a file.
pub(crate) fn inode(found: &Metadata) -> Inode {
    (found.dev(), found.ino())
}

/// Returns true if this open file or directory still has this path.
pub(crate) fn has_path(file: &File, path: &Path) -> bool {
    let found = (file.metadata(), fs::symlink_metadata(path));
    matches!(found, (Ok(open), Ok(named)) if inode(&open) == inode(&named))
}

/// Opens a plain file of any owner.
pub(crate) fn open(path: &Path) -> Result<File, NotPrivate> {
    let file = options().open(path).map_err(NotPrivate::NotOpened)?;
    if file.metadata().map_err(NotPrivate::Unread)?.is_file() {
        Ok(file)
    } else {
        Err(NotPrivate::NotPlain)
    }
}

/// Returns the metadata of a file that no other user could have read or written.
pub(crate) fn alone(file: &File) -> Result<Metadata, NotPrivate> {
    unread_by_others(file.metadata().map_err(NotPrivate::Unread)?)
}

/// Reads a key that no other user could have read or written. Returns `None` if the file has
/// another length.
pub(crate) fn key<const N: usize>(path: &Path) -> Result<Option<[u8; N]>, NotPrivate> {
    let mut file = open(path)?;
    if alone(&file)?.len() != N as u64 {
        return Ok(None);
    }
    let mut key = [0; N];
    file.read_exact(&mut key).map_err(NotPrivate::Unread)?;
    Ok(Some(key))
}

/// Checks a plain file without opening it, as [`alone`] does for an open one. Closing a file gives
/// up this process's locks on it, so a file that processes lock must not be opened for the check.
pub(crate) fn check_closed(path: &Path) -> Result<Metadata, NotPrivate> {
    let found = fs::symlink_metadata(path).map_err(NotPrivate::NotOpened)?;
    if found.is_symlink() {
        return Err(NotPrivate::Link);
    }
    if !found.is_file() {
        return Err(NotPrivate::NotPlain);
    }
    unread_by_others(found)
}

fn unread_by_others(found: Metadata) -> Result<Metadata, NotPrivate> {
    if is_ours(&found, OTHERS_BITS) || !enforced!(PrivateFile) {
        Ok(found)
    } else {
        Err(NotPrivate::Readable)
    }
}

/// Creates a directory if it does not exist, and checks that no other user can write to it.
pub(crate) fn directory(dir: &Path) -> Result<(), NotPrivate> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(NotPrivate::NotCreated)?;
    let found = fs::metadata(dir).map_err(NotPrivate::Unread)?;
    if !is_ours(&found, 0) {
        return Err(NotPrivate::Foreign);
    }
    if is_ours(&found, WRITE) { Ok(()) } else { Err(NotPrivate::Writable) }
}

/// Creates a file in a directory under a temporary name.
pub(crate) fn temporary_file(dir: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix("new-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(dir)
}

/// Gives a complete file its name. The first file to get the name keeps it.
pub(crate) fn publish(file: TempPath, path: &Path) -> io::Result<()> {
    match file.persist_noclobber(path) {
        Err(lost) if lost.error.kind() != io::ErrorKind::AlreadyExists => Err(lost.error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reads a file that only this user can read and write.
///
/// # Errors
/// If it cannot be opened, is a link or not a plain file, belongs to another user, or others can
/// read or write it. The kind is `NotFound` if there is no file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    alone(&file)?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// Replaces or creates a file as a whole, and creates its directory. Only this user can read and
/// write the new file. Readers see either the old content or the new one.
///
/// # Errors
/// If others can write to the directory, or the file cannot be written.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    directory(dir)?;
    let mut file = temporary_file(dir)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(dir)?.sync_all()
}

/// Returns true if this user owns it and none of these mode bits is set.
fn is_ours(found: &Metadata, bits: u32) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & bits == 0
}

#[cfg(test)]
pub(crate) mod tests {
    use rustix::fs::{CWD, FileType, Mode};

    use super::*;

    pub(crate) fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    pub(crate) fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// Replaces a file by a link to it.
    pub(crate) fn make_link(file: &Path) {
        let old = file.with_extension("old");
        fs::rename(file, &old).unwrap();
        std::os::unix::fs::symlink(old, file).unwrap();
    }

    /// Replaces a file by a pipe.
    pub(crate) fn make_pipe(file: &Path) {
        fs::remove_file(file).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, file, FileType::Fifo, mode, 0).unwrap();
    }

    fn result_text<T>(result: Result<T, NotPrivate>) -> String {
        result.err().map_or_else(|| "fit".to_owned(), |unfit| unfit.to_string())
    }

    /// Fails without: any one of the checks.
    #[test]
    fn unsafe_files_and_modes_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let file = temporary_file(dir.path()).unwrap().into_temp_path();
        publish(file, &at("file")).unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        for (name, opened, closed) in [
            ("file", "fit", "fit"),
            ("link", "cannot be opened, or is a link", "is a link"),
            ("pipe", "is not a plain file", "is not a plain file"),
        ] {
            assert_eq!(result_text(open(&at(name))), opened, "{name}");
            assert_eq!(result_text(check_closed(&at(name))), closed, "{name}");
        }
        let missing: io::Error = open(&at("missing")).unwrap_err().into();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let shared = "can be read or written by others";
        for (mode, expected) in [(0o600, "fit"), (0o640, shared), (0o602, shared)] {
            set_mode(&at("file"), mode);
            assert_eq!(result_text(alone(&open(&at("file")).unwrap())), expected, "{mode:o}");
            assert_eq!(result_text(check_closed(&at("file"))), expected, "{mode:o}");
        }
        assert_eq!(result_text(directory(&at("a/b"))), "fit");
        assert_eq!(mode(&at("a/b")), 0o700);
        set_mode(&at("a"), 0o720);
        assert_eq!(result_text(directory(&at("a"))), "can be written by others");
        assert!(result_text(directory(&at("file"))).starts_with("cannot be made"));
    }

    #[test]
    fn first_published_file_keeps_its_name() {
        let dir = tempfile::tempdir().unwrap();
        for content in ["first", "second"] {
            let file = temporary_file(dir.path()).unwrap();
            fs::write(file.path(), content).unwrap();
            publish(file.into_temp_path(), &dir.path().join("name")).unwrap();
        }
        assert_eq!(fs::read_to_string(dir.path().join("name")).unwrap(), "first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left there");
    }
}
