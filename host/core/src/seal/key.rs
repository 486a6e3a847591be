//! Loads the sealing key from a directory, and creates it at the first use.
//!
//! `Sealer::from_directory` calls [`load_or_create`] with a directory and gets the 32 bytes of its
//! file `resume.key`. A key that another user could have read or written is never used and not
//! replaced; the error says what to do. The file gets its name only once it is complete, so no
//! process sees a partial key, and of several processes that create one at the same time all use
//! the same key.

use std::io::{self, Write as _};
use std::path::Path;

use toolcell_contract::error::Error;

use super::KEY_BYTES;
use crate::os::private::{self, NotPrivate};

/// The file's name.
const FILE: &str = "resume.key";
/// Hint for a fault of the directory.
const OTHER_DIRECTORY: &str =
    "use a directory that belongs to you and that no other user can write to";
/// Hint for a fault of the file.
const REMOVE: &str =
    "remove the file, and a new key is made; questions that are still open must be asked again";

/// Returns a new random key.
pub(super) fn random_key() -> Result<[u8; KEY_BYTES], Error> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| {
        let hint = "see the cause: `getrandom` of the operating system failed";
        Error::seal_key("the system has no randomness", hint).with_source(error)
    })?;
    Ok(key)
}

/// Returns the key in the directory and creates it if it is missing.
pub(super) fn load_or_create(dir: &Path) -> Result<[u8; KEY_BYTES], Error> {
    let path = dir.join(FILE);
    private::directory(dir).map_err(|unfit| key_error(dir, unfit, OTHER_DIRECTORY))?;
    if let Some(key) = read(&path)? {
        return Ok(key);
    }
    let failed = |problem| Error::seal_key(problem, OTHER_DIRECTORY);
    write_key(dir, &path, random_key()?).map_err(|error| {
        failed(format!("{}: no key can be written there", dir.display())).with_source(error)
    })?;
    read(&path)?.ok_or_else(|| failed(format!("{} does not stay", path.display())))
}

/// Writes the key, then gives the file its name atomically.
fn write_key(dir: &Path, path: &Path, key: [u8; KEY_BYTES]) -> io::Result<()> {
    let mut file = private::temporary_file(dir)?;
    file.write_all(&key)?;
    file.as_file().sync_all()?;
    private::publish(file.into_temp_path(), path)
}

/// Reads the key from the file, if the file exists.
fn read(path: &Path) -> Result<Option<[u8; KEY_BYTES]>, Error> {
    match private::key(path) {
        Ok(Some(key)) => Ok(Some(key)),
        Ok(None) => {
            let problem = format!("{} does not have the length of a key", path.display());
            Err(Error::seal_key(problem, REMOVE))
        }
        Err(NotPrivate::NotOpened(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(unfit) => Err(key_error(path, unfit, REMOVE)),
    }
}

fn key_error(path: &Path, unfit: NotPrivate, hint: &'static str) -> Error {
    Error::seal_key(format!("{} {unfit}", path.display()), hint).with_source(unfit)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::os::private::tests::{make_link, make_pipe, mode, set_mode};

    #[test]
    fn sealing_key_is_created_once_and_private() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("a/b");
        let key = load_or_create(&dir).unwrap();
        assert_eq!(load_or_create(&dir).unwrap(), key);
        assert_ne!(load_or_create(&scratch.path().join("c")).unwrap(), key);
        assert_eq!((mode(&dir), mode(&dir.join(FILE))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing else is left there");
    }

    #[test]
    fn concurrent_creators_share_one_key() {
        let scratch = tempfile::tempdir().unwrap();
        let keys: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> =
                (0..8).map(|_| scope.spawn(|| load_or_create(scratch.path()).unwrap())).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }

    /// Refused with the problem and a hint, and left unchanged.
    #[test]
    fn insecure_sealing_key_is_refused() {
        type Damage = fn(&Path);
        let spoilt: [(&str, Damage); 5] = [
            ("read or written by others", |key| set_mode(key, 0o640)),
            ("length", |key| fs::write(key, "short").unwrap()),
            ("is a link", make_link),
            ("not a plain file", make_pipe),
            ("written by others", |key| set_mode(key.parent().unwrap(), 0o770)),
        ];
        for (needle, spoil) in spoilt {
            let dir = tempfile::tempdir().unwrap();
            load_or_create(dir.path()).unwrap();
            spoil(&dir.path().join(FILE));
            for _ in 0..2 {
                let error = load_or_create(dir.path()).unwrap_err();
                assert!(error.is_environment() && !error.hint().is_empty(), "{needle}: {error}");
                assert!(error.to_string().contains(needle), "{needle}: {error}");
            }
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(load_or_create(file.path()).unwrap_err().to_string().contains("cannot be made"));
    }
}
