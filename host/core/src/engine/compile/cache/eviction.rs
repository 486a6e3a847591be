//! Makes room in the cache directory: removes the entries that were not used for the longest time.
//!
//! The cache calls [`make`] before it writes an entry, with the bound in bytes and the lengths of
//! the new files. It fails only if the entry alone is larger than the bound. The time of use is the
//! modification time of an entry's files.
//! Invariants: only files that a cache has written are removed, recognised by their names. An entry
//! that is being read (its MAC file is locked) stays. Any number of processes may do this at the
//! same time: a file that another process removed is not an error, and together they can exceed the
//! bound by a few entries until the next one is written.

use std::collections::HashMap;
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use toolcell_contract::controls::bound;

/// The extensions of an entry's files.
pub(super) const PARTS: [&str; 3] = ["mac", "code", "tools"];
/// Prefix and suffix of the name of a file that is being written, or was when its process died.
pub(super) const UNFINISHED: (&str, &str) = ("unfinished-", ".part");
/// Bytes. A file takes a multiple of this of the disk, and at least one.
const BLOCK: u64 = 4096;
/// Hexadecimal digits that an entry's name begins with.
const DIGITS: usize = 64;

/// The files of one entry, their bytes on disk, and its last use.
struct CacheEntry {
    files: Vec<PathBuf>,
    bytes: u64,
    used: SystemTime,
}

/// Makes room for an entry with files of these lengths. The entry of the same name does not count,
/// since it is replaced.
///
/// # Errors
/// If the entry alone is larger than the bound.
pub(super) fn make(dir: &Path, most: u64, name: &str, lengths: &[usize]) -> io::Result<()> {
    let needed: u64 = lengths.iter().map(|length| on_disk(*length as u64)).sum();
    let Some(most) = bound!(CacheBytes, most).checked_sub(needed) else {
        return Err(io::Error::other(format!(
            "it needs {needed} bytes, and the cache holds {most} at most"
        )));
    };
    let mut kept = all_entries(dir);
    kept.remove(name);
    let mut bytes: u64 = kept.values().map(|kept| kept.bytes).sum();
    if bytes <= most {
        return Ok(());
    }
    let now = SystemTime::now();
    let mut kept: Vec<_> = kept.into_iter().collect();
    // A time of use in the future comes from a wrong clock; such an entry is removed first.
    kept.sort_by_key(|(_, kept)| Some(kept.used).filter(|used| *used <= now));
    for (name, CacheEntry { files, bytes: its, .. }) in kept {
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

/// Returns all entries, by name.
fn all_entries(dir: &Path) -> HashMap<String, CacheEntry> {
    let mut entries = HashMap::new();
    for file in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = file.file_name();
        let Some(name) = name.to_str().and_then(entry) else { continue };
        // Another process has removed it meanwhile, to make room.
        let Ok(found) = file.metadata() else { continue };
        let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let nothing = || CacheEntry { files: Vec::new(), bytes: 0, used };
        let kept = entries.entry(name.to_owned()).or_insert_with(nothing);
        kept.files.push(file.path());
        kept.bytes += on_disk(found.len());
        kept.used = kept.used.max(used);
    }
    entries
}

/// Returns the name of the entry that a file belongs to, if a cache has written it.
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

/// Returns true if a reader holds the entry.
fn is_read(mac: &Path) -> bool {
    super::open(mac).is_ok_and(|mac| matches!(mac.try_lock(), Err(TryLockError::WouldBlock)))
}

fn on_disk(length: u64) -> u64 {
    length.max(1).next_multiple_of(BLOCK)
}
