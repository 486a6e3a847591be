//! Tests of the cache of compiled code: which entries are used, which are not, and how room is
//! made.

use tempfile::TempDir;

use super::*;
use crate::engine::Engine;
use crate::os::private::tests::{make_link, make_pipe, mode, set_mode};

/// Bytes of a page of memory.
const PAGE: usize = 4096;

fn open(dir: &Path) -> Cache {
    Cache::open(dir, Engine::DEFAULT_CACHE_BYTES).unwrap()
}

/// Returns an empty cache of this many bytes, and its directory.
fn empty(bytes: u64) -> (TempDir, Cache) {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(dir.path(), bytes).unwrap();
    (dir, cache)
}

#[test]
fn stored_entry_is_read_back() {
    let (dir, cache) = empty(Engine::DEFAULT_CACHE_BYTES);
    assert!(cache.get("a").is_none());
    cache.put("a", b"code", b"tools").unwrap();
    let entry = open(dir.path()).get("a").unwrap();
    assert_eq!((fs::read(entry.code).unwrap(), entry.tools), (b"code".to_vec(), b"tools".to_vec()));
    assert_eq!(mode(&dir.path().join("key")), 0o600);
}

/// Such a directory may hold more than a cache.
#[test]
fn existing_directory_keeps_its_permissions() {
    let dir = tempfile::tempdir().unwrap();
    for (given, is_used) in [(0o755, true), (0o700, true), (0o775, false), (0o777, false)] {
        set_mode(dir.path(), given);
        let opened = Cache::open(dir.path(), Engine::DEFAULT_CACHE_BYTES);
        assert_eq!((opened.is_ok(), mode(dir.path())), (is_used, given), "{given:o}");
    }
    let made = dir.path().join("a/b");
    set_mode(dir.path(), 0o700);
    open(&made);
    assert_eq!(mode(&made), 0o700);
}

/// A change to any byte of any part removes the entry.
#[test]
fn tampered_entry_is_refused_and_removed() {
    let (_dir, cache) = empty(Engine::DEFAULT_CACHE_BYTES);
    for part in ["code", "tools", "mac"] {
        for byte in 0..4 {
            cache.put("a", b"code", b"tool").unwrap();
            let path = cache.path("a", part);
            let mut content = fs::read(&path).unwrap();
            content[byte] ^= 1;
            fs::write(&path, content).unwrap();
            assert!(cache.get("a").is_none(), "{part} {byte}");
            assert!(!path.exists(), "{part} is left behind");
        }
    }
}

/// One bit of each byte of the first page of the code. Source: docs/threat-model.md, row 57.
#[test]
fn changed_code_byte_invalidates_the_entry() {
    let (_dir, cache) = empty(Engine::DEFAULT_CACHE_BYTES);
    let code = [0x5a; 2 * PAGE];
    for byte in 0..PAGE {
        cache.put("a", &code, b"tools").unwrap();
        let mut changed = code;
        changed[byte] ^= 1 << (byte % 8);
        fs::write(cache.path("a", "code"), changed).unwrap();
        assert!(cache.get("a").is_none(), "byte {byte}");
        let is_left = eviction::PARTS.iter().any(|part| cache.path("a", part).exists());
        assert!(!is_left, "byte {byte}");
    }
}

#[test]
fn entry_copied_to_another_key_or_cache_is_refused() {
    let [(_one, first), (_two, second)] = [(); 2].map(|()| empty(Engine::DEFAULT_CACHE_BYTES));
    first.put("a", b"code", b"tools").unwrap();
    for part in ["code", "tools", "mac"] {
        fs::copy(first.path("a", part), first.path("b", part)).unwrap();
        fs::copy(first.path("a", part), second.path("a", part)).unwrap();
    }
    assert!(first.get("b").is_none() && second.get("a").is_none() && first.get("a").is_some());
}

/// A key that other users can read, or that is too short, is replaced, and all entries with it.
#[test]
fn insecure_cache_key_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    let doubtful: [fn(&Path); 4] =
        [|key| set_mode(key, 0o644), |key| fs::write(key, "short").unwrap(), make_pipe, make_link];
    for spoil in doubtful {
        open(dir.path()).put("a", b"code", b"tools").unwrap();
        let before = fs::read(&key).unwrap();
        spoil(&key);
        assert!(open(dir.path()).get("a").is_none());
        assert_ne!(fs::read(&key).unwrap(), before);
        let _ = fs::remove_file(key.with_extension("old"));
    }
}

/// For example when the process is out of descriptors: it fails, and the next process uses the same
/// key.
#[test]
fn unreadable_cache_key_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    let too_many = || Err(NotPrivate::NotOpened(rustix::io::Errno::MFILE.into()));
    assert!(secret_in(too_many(), &key).unwrap().is_none(), "there is none");
    open(dir.path());
    assert!(secret_in(too_many(), &key).is_err());
    assert!(secret_in(private::key(&key), &key).unwrap().is_some());
}

#[test]
fn cache_path_that_is_a_file_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(Cache::open(file.path(), 1).unwrap_err().is_environment());
}

/// A file that cannot be read now may be whole.
#[test]
fn unreadable_entry_is_kept() {
    let (dir, cache) = empty(Engine::DEFAULT_CACHE_BYTES);
    cache.put("a", b"code", b"tools").unwrap();
    for part in eviction::PARTS {
        let (path, aside) = (cache.path("a", part), dir.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(cache.get("a").is_none(), "{part}");
        fs::remove_dir(&path).unwrap();
        assert!(cache.get("a").is_none(), "{part}");
        fs::rename(&aside, &path).unwrap();
        assert!(cache.get("a").is_some(), "{part}");
    }
}

/// Bytes on disk of an entry with little content: one block for each of its files.
const SMALL: u64 = 3 * 4096;
const HOUR: Duration = Duration::from_hours(1);

fn name(number: usize) -> String {
    format!("{number:064x}-0123456789abcdef")
}

fn put(cache: &Cache, number: usize) {
    cache.put(&name(number), b"code", number.to_string().as_bytes()).unwrap();
}

/// Sets the entry's last use to this time.
fn set_last_use(cache: &Cache, number: usize, at: SystemTime) {
    for part in eviction::PARTS {
        File::open(cache.path(&name(number), part)).unwrap().set_modified(at).unwrap();
    }
}

/// Returns the numbers of the entries that are whole.
fn complete_entries(cache: &Cache) -> Vec<usize> {
    let exists = |number: &usize, part: &str| cache.path(&name(*number), part).exists();
    let is_whole = |number: &usize| eviction::PARTS.iter().all(|part| exists(number, part));
    (0..10).filter(is_whole).collect()
}

#[test]
fn least_recently_used_entry_is_evicted() {
    let ((_dir, cache), now) = (empty(4 * SMALL), SystemTime::now());
    for number in 0..4 {
        put(&cache, number);
        set_last_use(&cache, number, now - HOUR * (10 - number as u32));
    }
    assert!(cache.get(&name(0)).is_some());
    put(&cache, 4);
    assert_eq!(complete_entries(&cache), [0, 2, 3, 4], "the first and the last were just used");
    put(&cache, 4);
    assert_eq!(complete_entries(&cache), [0, 2, 3, 4], "an entry takes its own place");
    set_last_use(&cache, 4, now + HOUR);
    put(&cache, 5);
    assert_eq!(complete_entries(&cache), [0, 2, 3, 5], "nothing was of use in the future");
    cache.put(&name(6), &[0; 4097], b"").unwrap();
    assert_eq!(complete_entries(&cache), [0, 5, 6], "one more block than there was");
}

#[test]
fn oversized_entry_evicts_nothing() {
    let (_dir, cache) = empty(2 * SMALL);
    [0, 1].into_iter().for_each(|number| put(&cache, number));
    assert!(cache.put(&name(0), &vec![0; 2 * SMALL as usize], b"").is_err());
    assert_eq!(complete_entries(&cache), [0, 1]);
    assert_eq!(cache.get(&name(0)).unwrap().tools, b"0");
}

/// This applies to readers in this process and in others.
#[test]
fn entry_in_use_is_not_evicted() {
    let ((dir, cache), now) = (empty(2 * SMALL), SystemTime::now());
    [0, 1].into_iter().for_each(|number| put(&cache, number));
    let reading = Cache::open(dir.path(), 1).unwrap().get(&name(0)).unwrap();
    set_last_use(&cache, 0, now - HOUR);
    put(&cache, 2);
    assert_eq!(complete_entries(&cache), [0, 2]);
    drop(reading);
    put(&cache, 3);
    assert_eq!(complete_entries(&cache), [2, 3]);
}

/// The directory may be any, and a process may have died in it.
#[test]
fn only_cache_files_are_removed() {
    let (dir, cache) = empty(SMALL);
    let digits = "0".repeat(64);
    let others =
        ["notes.txt", "main.code", &digits, &format!("{digits}.code"), &format!("{digits}-1.txt")];
    let parts =
        ["unfinished-abc.part", &format!("{digits}-1.code"), &format!("{digits}-1-quick.mac")];
    for file in others.iter().chain(&parts) {
        fs::write(dir.path().join(file), [0; 10_000]).unwrap();
        File::open(dir.path().join(file)).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    put(&cache, 1);
    let is_there = |file: &&str| dir.path().join(file).exists();
    assert!(others.iter().all(is_there) && !parts.iter().any(is_there));
    assert_eq!(complete_entries(&cache), [1]);
    assert!(open(dir.path()).get(&name(1)).is_some(), "the key is another");
}

#[test]
fn use_is_recorded_once_an_hour() {
    let ((_dir, cache), now) = (empty(Engine::DEFAULT_CACHE_BYTES), SystemTime::now());
    let noted = || fs::metadata(cache.path(&name(0), "mac")).unwrap().modified().unwrap();
    put(&cache, 0);
    for (last, is_noted) in [(now - HOUR / 2, false), (now - 2 * HOUR, true), (now + HOUR, true)] {
        set_last_use(&cache, 0, last);
        let before = noted();
        assert!(cache.get(&name(0)).is_some());
        assert_eq!(noted() != before, is_noted, "{last:?}");
    }
}

/// Each thread uses the directory as another process would; it is too small for all entries.
#[test]
fn concurrent_caches_share_a_directory_safely() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path());
    std::thread::scope(|scope| {
        for process in 0..4 {
            let cache = Cache::open(dir.path(), 3 * SMALL).unwrap();
            scope.spawn(move || {
                for round in 0..100 {
                    let number = (process + round) % 10;
                    let (key, tools) = (name(number), number.to_string().into_bytes());
                    match cache.get(&key) {
                        Some(entry) => assert_eq!(entry.tools, tools),
                        // If another process removed the entry that was to be replaced, that is no
                        // fault.
                        None => drop(cache.put(&key, b"code", &tools)),
                    }
                }
            });
        }
    });
    put(&open(dir.path()), 0);
    assert!(open(dir.path()).get(&name(0)).is_some());
}
