//! Room in a directory of artifacts: what was not used for longest goes first.
//!
//! In: an entry that is to be written. Out: that there is room for it, or that there cannot be.
//! Invariants: nothing is touched but what a cache has written, known by its name; an entry that is
//! being read stays; who has opened a file keeps it, who has not finds that the entry is gone, and
//! neither is an error; any number of processes may do this at once, and be a few entries over the
//! bound together until the next one is written.

use std::collections::HashMap;
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::defence::{Defence, stands};

/// The files of an entry.
pub(super) const PARTS: [&str; 3] = ["mac", "code", "tools"];
/// How the name of a file begins and ends that is still being written, or was when its process
/// died.
pub(super) const UNFINISHED: (&str, &str) = ("unfinished-", ".part");
/// Bytes that a file takes of the disk at least, and a multiple of which it takes.
const BLOCK: u64 = 4096;
/// Hexadecimal digits that an entry's name begins with.
const DIGITS: usize = 64;

/// What is there of one entry.
#[derive(Debug)]
struct Kept {
    files: Vec<PathBuf>,
    bytes: u64,
    used: SystemTime,
}

/// Makes room for an entry with files of these lengths, in place of one of the same name and of
/// others.
///
/// # Errors
/// When it alone is more than may be there.
pub(super) fn make(dir: &Path, most: u64, name: &str, lengths: &[usize]) -> io::Result<()> {
    let needed: u64 = lengths.iter().map(|length| on_disk(*length as u64)).sum();
    if !stands(Defence::CacheBytes) {
        return Ok(());
    }
    let Some(most) = most.checked_sub(needed) else {
        return Err(io::Error::other(format!(
            "it needs {needed} bytes, and the cache holds {most} at most"
        )));
    };
    let mut kept = kept(dir);
    kept.remove(name);
    let mut bytes: u64 = kept.values().map(|kept| kept.bytes).sum();
    if bytes <= most {
        return Ok(());
    }
    let now = SystemTime::now();
    let mut kept: Vec<_> = kept.into_iter().collect();
    // What will be used in the future was not used for long: a clock was wrong.
    kept.sort_by_key(|(_, kept)| Some(kept.used).filter(|used| *used <= now));
    for (name, Kept { files, bytes: its, .. }) in kept {
        if bytes <= most {
            break;
        }
        if !is_read(&dir.join(format!("{name}.mac"))) {
            tracing::debug!(
                entry = name,
                "a compiled component is removed from the cache to make room"
            );
            files.iter().for_each(|file| drop(fs::remove_file(file)));
            bytes -= its;
        }
    }
    Ok(())
}

/// All entries, by name.
fn kept(dir: &Path) -> HashMap<String, Kept> {
    let mut entries = HashMap::new();
    for file in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = file.file_name();
        let Some(name) = name.to_str().and_then(entry) else { continue };
        // Gone meanwhile: another process makes room as well.
        let Ok(found) = file.metadata() else { continue };
        let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let nothing = || Kept { files: Vec::new(), bytes: 0, used };
        let kept = entries.entry(name.to_owned()).or_insert_with(nothing);
        kept.files.push(file.path());
        kept.bytes += on_disk(found.len());
        kept.used = kept.used.max(used);
    }
    entries
}

/// The entry that a file belongs to, if it is a cache's.
fn entry(file: &str) -> Option<&str> {
    if file.starts_with(UNFINISHED.0) && file.ends_with(UNFINISHED.1) {
        return Some(file);
    }
    let (name, part) = file.rsplit_once('.')?;
    let (digest, rest) = name.split_at_checked(DIGITS)?;
    let is_ours = PARTS.contains(&part)
        && digest.bytes().all(|b| b.is_ascii_hexdigit())
        && rest.starts_with('-');
    is_ours.then_some(name)
}

/// Whether a reader holds the entry.
fn is_read(mac: &Path) -> bool {
    super::open(mac).is_ok_and(|mac| matches!(mac.try_lock(), Err(TryLockError::WouldBlock)))
}

fn on_disk(length: u64) -> u64 {
    length.max(1).next_multiple_of(BLOCK)
}
