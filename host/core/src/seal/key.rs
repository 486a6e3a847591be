//! The sealing key that is kept in a directory.
//!
//! In: a directory. Out: the 32 bytes of its file `resume.key`, which are made when they are not there.
//! Invariants: never a key that another user could have read or written; no process sees a key half written; of processes
//! that make one at the same time all go on with the same.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use super::KEY_BYTES;
use crate::defence::{Defence, stands};
use crate::error::Error;

/// The file's name.
const FILE: &str = "resume.key";
/// What to do about the directory.
const OTHER_DIRECTORY: &str = "use a directory that is yours and that nobody else can write";
/// What to do about the file.
const REMOVE: &str = "remove it, and a new one is made; questions that are still open have to be asked again";

/// A new key.
pub(super) fn fresh() -> Result<[u8; KEY_BYTES], Error> {
    let mut key = [0; KEY_BYTES];
    match getrandom::fill(&mut key) {
        Ok(()) => Ok(key),
        Err(error) => Err(Error::seal_key("there is no randomness", "the machine is at fault").with_source(error)),
    }
}

/// The directory's key.
pub(super) fn kept_in(dir: &Path) -> Result<[u8; KEY_BYTES], Error> {
    let path = dir.join(FILE);
    secure(dir)?;
    if let Some(key) = read(&path)? {
        return Ok(key);
    }
    keep(dir, &path, fresh()?).map_err(|error| failed(dir, "no key can be written there", error))?;
    read(&path)?.ok_or_else(|| Error::seal_key(format!("{} does not stay", path.display()), OTHER_DIRECTORY))
}

/// Makes the directory if it is not there, and sees to it that it is this user's.
fn secure(dir: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| failed(dir, "cannot be made", error))?;
    let found = fs::metadata(dir).map_err(|error| failed(dir, "cannot be read", error))?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(Error::seal_key(format!("{} belongs to another user", dir.display()), OTHER_DIRECTORY));
    }
    if found.mode() & 0o022 != 0 {
        return Err(Error::seal_key(format!("{} can be written by others", dir.display()), OTHER_DIRECTORY));
    }
    Ok(())
}

/// Puts the key into its place in one step. Whoever comes first wins.
fn keep(dir: &Path, path: &Path, key: [u8; KEY_BYTES]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(dir)?;
    file.write_all(&key)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(lost) if lost.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error),
    }
}

/// The key in the file, if there is a file.
fn read(path: &Path) -> Result<Option<[u8; KEY_BYTES]>, Error> {
    // Never through a link, never waiting for the other end of a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let problem = format!("{} cannot be opened, or is a link", path.display());
            return Err(Error::seal_key(problem, REMOVE).with_source(error));
        }
    };
    let doubtful = |what: &str| Error::seal_key(format!("{} {what}", path.display()), REMOVE);
    let found = file.metadata().map_err(|error| doubtful("cannot be read").with_source(error))?;
    if !found.is_file() {
        return Err(doubtful("is not a plain file"));
    }
    let is_ours = found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
    if !is_ours && stands(Defence::SealingKey) {
        return Err(doubtful("can be read by others, so they may know the key"));
    }
    if found.len() != KEY_BYTES as u64 {
        return Err(doubtful("has not the length of a key"));
    }
    exactly(file).map(Some).map_err(|error| doubtful("cannot be read").with_source(error))
}

fn exactly(mut file: File) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key)?;
    Ok(key)
}

fn failed(dir: &Path, what: &str, error: io::Error) -> Error {
    Error::seal_key(format!("{}: {what}", dir.display()), OTHER_DIRECTORY).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_this_user_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("a/b");
        let key = kept_in(&dir).unwrap();
        assert_eq!(kept_in(&dir).unwrap(), key);
        assert_ne!(kept_in(&scratch.path().join("c")).unwrap(), key);
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(dir.join(FILE)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing else is left there");
    }

    #[test]
    fn makers_at_the_same_time_go_on_with_one_key() {
        let scratch = tempfile::tempdir().unwrap();
        let keys: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| kept_in(scratch.path()).unwrap())).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }

    /// Refused with what is wrong and what to do, and left as it is.
    #[test]
    fn a_doubtful_key_is_refused() {
        type Spoil = fn(&Path);
        let spoilt: [(&str, Spoil); 5] = [
            ("read by others", |key| fs::set_permissions(key, Permissions::from_mode(0o640)).unwrap()),
            ("length", |key| fs::write(key, "short").unwrap()),
            ("is a link", |key| {
                fs::rename(key, key.with_extension("old")).unwrap();
                std::os::unix::fs::symlink(key.with_extension("old"), key).unwrap();
            }),
            ("not a plain file", |key| {
                fs::remove_file(key).unwrap();
                let fifo = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, key, fifo, rustix::fs::Mode::RUSR, 0).unwrap();
            }),
            ("written by others", |key| {
                fs::set_permissions(key.parent().unwrap(), Permissions::from_mode(0o770)).unwrap();
            }),
        ];
        for (needle, spoil) in spoilt {
            let dir = tempfile::tempdir().unwrap();
            kept_in(dir.path()).unwrap();
            spoil(&dir.path().join(FILE));
            for _ in 0..2 {
                let error = kept_in(dir.path()).unwrap_err();
                assert!(error.is_environment() && error.to_string().contains(needle), "{needle}: {error}");
                assert!(!error.hint().is_empty());
            }
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(kept_in(file.path()).unwrap_err().to_string().contains("cannot be made"));
    }
}
