//! Tests of a store on disk: other processes, kills, damaged files and a full disk.
//!
//! The test program starts itself again as a child that writes and reports each acknowledged value.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusqlite::{Connection, TransactionBehavior};

use super::*;
use crate::capability::kv::store::FILE;
use crate::os::private::tests::{make_link, make_pipe, mode, set_mode};

/// Directory in which the child process of a test writes.
const CHILD: &str = "TOOLCELL_TEST_STORE";

fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(dir).unwrap()
}

fn value(store: &SqliteStore, key: &str) -> Vec<u8> {
    store.get(&notes(), key).unwrap().unwrap().data
}

#[test]
fn store_persists_and_is_private_to_its_user() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("a/b");
    let version = open(&dir).set(&notes(), "k", b"value", None).unwrap();
    let store = open(&dir);
    let entry = store.get(&notes(), "k").unwrap().unwrap();
    assert_eq!((entry.data.as_slice(), entry.version), (&b"value"[..], version));
    assert!(store.delete(&notes(), "k").unwrap());
    drop(store);
    let again = open(&dir).set(&notes(), "k", b"", None).unwrap();
    assert!(again > version, "a version never comes again");
    assert_eq!((mode(&dir), mode(&dir.join(FILE))), (0o700, 0o600));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing else is left there");
}

/// Refused with the problem, the place and a hint.
#[test]
fn foreign_or_damaged_store_is_refused() {
    type Damage = fn(&Path);
    fn relabelled(file: &Path, pragma: &str, value: i64) {
        Connection::open(file).unwrap().pragma_update(None, pragma, value).unwrap();
    }
    let spoilt: [(&str, Damage); 11] = [
        ("has layout 3", |file| relabelled(file, "user_version", 3)),
        ("has layout 1", |file| relabelled(file, "user_version", 1)),
        ("that toolcell did not create", |file| relabelled(file, "application_id", 1)),
        ("that toolcell did not create", |file| {
            fs::remove_file(file).unwrap();
            Connection::open(file).unwrap().execute_batch("CREATE TABLE other (a)").unwrap();
            set_mode(file, 0o600);
        }),
        ("is not a toolcell store", |file| fs::write(file, "[component]\n".repeat(100)).unwrap()),
        ("is empty", |file| fs::write(file, "").unwrap()),
        ("is damaged", |file| {
            let content = fs::read(file).unwrap();
            fs::write(file, &content[..content.len() / 8192 * 4096]).unwrap();
        }),
        ("can be read or written by others", |file| set_mode(file, 0o640)),
        ("is a link", make_link),
        ("not a plain file", make_pipe),
        ("written by others", |file| set_mode(file.parent().unwrap(), 0o770)),
    ];
    for (needle, spoil) in spoilt {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).set(&notes(), "k", b"value", None).unwrap();
        spoil(&dir.path().join(FILE));
        for _ in 0..2 {
            let error = SqliteStore::open(dir.path()).unwrap_err();
            let (text, hint) = (error.to_string(), error.hint());
            assert!(error.is_environment() && text.contains(needle), "{needle}: {error}");
            assert!(text.contains(&*dir.path().to_string_lossy()) && !hint.is_empty(), "{needle}");
            let is_enough = !needle.contains("layout") || hint.contains("move it away");
            assert!(is_enough, "{needle}: {hint}");
        }
        if needle.contains("layout") {
            relabelled(&dir.path().join(FILE), "user_version", 2);
            assert_eq!(value(&open(dir.path()), "k"), b"value", "{needle}: nothing is lost");
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(SqliteStore::open(file.path()).unwrap_err().to_string().contains("cannot be made"));
}

/// Closing one instance does not lose what the other has just written. Fails without: a check of
/// the file that does not open and close it.
#[test]
fn store_can_be_open_twice_in_a_process() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for round in 0..20_u8 {
        store.set(&notes(), &format!("k{round}"), &[round], None).unwrap();
        let other = open(dir.path());
        store.set(&notes(), "again", &[round], None).unwrap();
        assert_eq!(value(&other, "again"), [round]);
        drop(other);
        assert!(spawn_writer(dir.path(), "1").wait().unwrap().success());
        let seen = store.get(&notes(), "next").unwrap();
        assert!(seen.is_some(), "{round}: it sees what the other process wrote");
    }
    audit(&store, &notes());
}

/// A write to a file that lost its name would be acknowledged and lost.
#[test]
fn moved_or_replaced_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (file, moved) = (dir.path().join(FILE), dir.path().join("moved"));
    let store = open(dir.path());
    store.set(&notes(), "k", b"value", None).unwrap();
    fs::rename(&file, &moved).unwrap();
    for is_replaced in [false, true] {
        if is_replaced {
            fs::copy(&moved, &file).unwrap();
        }
        let error = store.set(&notes(), "k", b"other", None).unwrap_err();
        assert!(error.to_string().contains("was moved or replaced"), "{error}");
    }
    fs::rename(&moved, &file).unwrap();
    assert_eq!(value(&store, "k"), b"value");
}

/// Eight processes at once: all values are there, no version occurs twice, and the sums are those
/// of one writer.
#[test]
fn concurrent_processes_share_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..8).map(|_| spawn_writer(dir.path(), "20")).collect();
    let mut versions = Vec::new();
    for mut child in children {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let told = lines.filter_map(|line| {
            line.strip_prefix("acknowledged ")?.rsplit_once(' ')?.1.parse::<u64>().ok()
        });
        versions.extend(told);
        assert!(child.wait().unwrap().success());
    }
    let all = versions.len();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!((all, versions.len()), (160, 160));
    audit(&open(dir.path()), &notes());
}

/// A process holds the file's lock. The wait ends by its time limit, with an error and without a
/// change.
#[test]
fn locked_store_is_busy_after_the_time_limit() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    store.database.patience = Duration::from_millis(20);
    store.set(&notes(), "k", b"value", None).unwrap();
    let other = Connection::open(dir.path().join(FILE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let busy = store.set(&notes(), "k", b"other", None).unwrap_err();
    let StoreError::Busy(problem) = &busy else { panic!("{busy}") };
    assert!(problem.contains("in use by other processes"), "{problem}");
    assert_eq!(value(&store, "k"), b"value", "reading waits for no writer");
    other.execute_batch("ROLLBACK").unwrap();
    store.set(&notes(), "k", b"other", None).unwrap();
}

/// Any changed byte: the store is refused, or reads return what was written.
#[test]
fn damaged_data_is_never_returned() {
    let mut random = fastrand::Rng::with_seed(4);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(FILE);
    let store = open(dir.path());
    for key in 0..20 {
        store.set(&notes(), &format!("k{key}"), &[key; 3000], None).unwrap();
    }
    drop(store);
    let whole = fs::read(&file).unwrap();
    let written = whole.iter().rposition(|byte| *byte != 0).unwrap();
    let mut refused = 0;
    for _ in 0..40 {
        let mut content = whole.clone();
        let at = random.usize(..written);
        content[at] ^= random.u8(1..);
        fs::write(&file, content).unwrap();
        match SqliteStore::open(dir.path()) {
            Err(error) => refused += usize::from(error.is_environment()),
            Ok(store) => {
                for key in 0..20 {
                    match store.get(&notes(), &format!("k{key}")) {
                        Ok(entry) => {
                            assert!(entry.is_none_or(|entry| entry.data == [key; 3000]), "{at}")
                        }
                        Err(StoreError::Unavailable(problem)) => {
                            assert!(problem.contains("damaged"), "{problem}");
                            refused += 1;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    }
    assert!(refused > 0);
}

/// Limits the file to this many pages of 4 KiB; 0 removes the limit. The store has one connection
/// here.
fn pages(store: &SqliteStore, pages: u32) {
    let pages = if pages == 0 { u32::MAX - 1 } else { pages };
    let limit = |rows: &Connection| {
        Ok(rows.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
    };
    store.database.transaction(TransactionBehavior::Deferred, limit).unwrap();
}

/// Writes are refused, all acknowledged values can be read, and writes work again once there is
/// room.
#[test]
fn full_disk_loses_no_acknowledged_write() {
    let (store, _dir) = empty("disk");
    pages(&store, 1024);
    let acknowledged =
        (0..1000).find(|at| match store.set(&notes(), &at.to_string(), &[7; 50_000], None) {
            Ok(_) => false,
            Err(StoreError::Full(problem)) => {
                assert!(problem.contains("store.db is full"), "{problem}");
                true
            }
            Err(error) => panic!("{error}"),
        });
    let acknowledged = acknowledged.unwrap();
    assert!(acknowledged > 5, "{acknowledged}");
    for _ in 0..3 {
        for at in 0..acknowledged {
            assert_eq!(value(&store, &at.to_string()), [7; 50_000], "{at}");
        }
        let refused = store.set(&notes(), "more", &[7; 500_000], None);
        assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    }
    assert!(store.delete(&notes(), "0").unwrap());
    pages(&store, 0);
    store.set(&notes(), "more", &[7; 500_000], None).unwrap();
    audit(&store, &notes());
}

/// Starts a process that writes this many values, or without end, and reports each acknowledged
/// one.
fn spawn_writer(dir: &Path, values: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "capability::kv::tests::disk::child_writes_until_killed", "--nocapture"])
        .env(CHILD, dir)
        .env("TOOLCELL_TEST_VALUES", values)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The child process. Does nothing without its parent.
#[test]
fn child_writes_until_killed() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let values = std::env::var("TOOLCELL_TEST_VALUES").unwrap().parse().unwrap_or(u64::MAX);
    let store = open(Path::new(&dir));
    let first = store.get(&notes(), "next").unwrap().map_or(0, |entry| entry.version);
    for at in first..first.saturating_add(values) {
        let (key, data) = (at % 500, at.to_string());
        let version = store.set(&notes(), &format!("key {key}"), data.as_bytes(), None).unwrap();
        println!("\nacknowledged {key} {at} {version}");
        store.set(&notes(), "next", b"", None).unwrap();
    }
}

/// Killed at random moments, again and again: every acknowledged write is there.
#[test]
fn killed_process_loses_no_acknowledged_write() {
    let mut random = fastrand::Rng::with_seed(9);
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let mut acknowledged = std::collections::BTreeMap::new();
    for round in 0..20 {
        let mut child = spawn_writer(&dir, "for ever");
        let kill_after = random.usize(..30);
        let (mut count, mut killed) = (0, false);
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            if !killed && count >= kill_after {
                child.kill().unwrap();
                killed = true;
            }
            if let Some(told) = line.unwrap().strip_prefix("acknowledged ") {
                let [key, value, version] = told.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{told}")
                };
                let written = (value.to_owned(), version.parse::<u64>().unwrap());
                acknowledged.insert(format!("key {key}"), written);
                count += 1;
            }
        }
        assert!(killed && !child.wait().unwrap().success(), "{round}");
        let store = open(&dir);
        audit(&store, &notes());
        for (key, (value, version)) in &acknowledged {
            let entry = store.get(&notes(), key).unwrap().unwrap();
            // A later write may be there although it was not acknowledged.
            let is_it = entry.version == *version && entry.data == value.as_bytes();
            assert!(is_it || entry.version > *version, "{round}: {key} {value} {version}");
        }
    }
    assert!(acknowledged.len() > 50, "{}", acknowledged.len());
}
