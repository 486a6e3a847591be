//! Tests that hold for every key-value store: scripts of operations with their expected answers.
//!
//! A script has lines such as `set a one = 1`, one operation each. Each script runs against a store
//! in memory and against one on disk, with a clock that the test sets. After each line, the
//! tables of the namespace are checked for consistency.

mod disk;
mod model;
mod races;
mod room;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use toolcell_test_guests::rows;

use room::audit;

use super::store::Database;
use super::*;
use crate::os::clock::{Clock, Sleep};

/// A wall clock that a test sets, in milliseconds since 1970. It panics at [`BROKEN`].
#[derive(Debug, Default)]
struct TestClock(AtomicU64);

const BROKEN: u64 = u64::MAX;

impl TestClock {
    fn set(&self, at: u64) {
        self.0.store(at, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Instant {
        unreachable!("keys expire by the time of day")
    }

    fn wall(&self) -> SystemTime {
        match self.0.load(Ordering::SeqCst) {
            BROKEN => panic!("a broken clock"),
            at => UNIX_EPOCH + Duration::from_millis(at),
        }
    }

    fn sleep_until(&self, _: Instant) -> Sleep {
        unreachable!("a store does not sleep")
    }
}

struct Subject {
    name: &'static str,
    store: SqliteStore,
    hand: Arc<TestClock>,
    /// Removed after the store is closed.
    _dir: TempDir,
}

/// Returns an empty store of this kind, and its directory. The store on disk does not flush.
fn empty(kind: &str) -> (SqliteStore, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = match kind {
        "memory" => SqliteStore::in_memory(),
        _ => SqliteStore::of(Database::unflushed(dir.path())),
    };
    (store, dir)
}

/// Returns an empty store of each kind.
fn empty_stores(quota: Quota) -> [Subject; 2] {
    ["memory", "disk"].map(|name| {
        let (hand, (store, dir)) = (Arc::<TestClock>::default(), empty(name));
        let store = store.with_quota(quota).with_clock(hand.clone());
        Subject { name, store, hand, _dir: dir }
    })
}

fn notes() -> Namespace {
    Namespace::new(Some("acme"), "notes")
}

/// Expands `x*3` to `xxx`.
fn expand(word: &str) -> String {
    match word.split_once('*') {
        Some((word, times)) => word.repeat(times.parse().unwrap()),
        None => word.to_owned(),
    }
}

fn pages(
    store: &SqliteStore,
    namespace: &Namespace,
    prefix: &str,
    most: usize,
) -> Result<Vec<Vec<String>>, StoreError> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.list(namespace, prefix, cursor.as_deref(), most)?;
        pages.push(page.keys);
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(pages);
        }
    }
}

/// Runs one line of a script. Returns its answer as text.
fn run(Subject { store, hand, .. }: &Subject, namespace: &mut Namespace, line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().map(expand).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let ttl = |at: usize| words.get(at).map(|ttl| Duration::from_millis(ttl.parse().unwrap()));
    let or_none = |answer: Option<String>| answer.unwrap_or_else(|| "none".into());
    let answer = match *words {
        ["as", tenant, component] => {
            *namespace = Namespace::new(Some(tenant).filter(|tenant| *tenant != "-"), component);
            Ok("ok".to_owned())
        }
        ["at", time] => {
            hand.set(time.parse().unwrap());
            Ok("ok".to_owned())
        }
        ["set", key, data, ..] => {
            store.set(namespace, key, data.as_bytes(), ttl(3)).map(|version| version.to_string())
        }
        ["get", key] => store
            .get(namespace, key)
            .map(|entry| or_none(entry.map(|entry| String::from_utf8(entry.data).unwrap()))),
        ["delete", key] => store.delete(namespace, key).map(|was_there| was_there.to_string()),
        ["swap", key, expected, data, ..] => store
            .compare_and_swap(namespace, key, expected.parse().ok(), data.as_bytes(), ttl(4))
            .map(|version| or_none(version.map(|version| version.to_string()))),
        ["list", most, ref prefix @ ..] => {
            pages(store, namespace, &prefix.concat(), most.parse().unwrap()).map(|pages| {
                let pages = pages.iter().map(|page| page.join(" ")).collect::<Vec<_>>().join(" | ");
                if pages.is_empty() { "nothing".into() } else { pages }
            })
        }
        _ => panic!("{line}"),
    };
    match answer {
        Ok(text) => text,
        Err(StoreError::InvalidKey) => "invalid".into(),
        Err(StoreError::OverQuota(problem)) => {
            format!("over: {}", problem.split(": delete").next().unwrap())
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs the lines of a table of `cases/capability/kv.yaml`.
fn script(quota: Quota, table: &str) {
    for subject in empty_stores(quota) {
        let mut namespace = notes();
        for line in rows::<&str>("capability/kv", table) {
            let (operation, expected) = line.split_once(" = ").unwrap_or((line, "ok"));
            let answer = run(&subject, &mut namespace, operation);
            assert_eq!(answer, expand(expected), "{}, {table}: {line}", subject.name);
            audit(&subject.store, &namespace);
        }
    }
}

#[test]
fn stores_answer_scripts_of_operations() {
    for table in [
        "writes_get_new_versions_and_swaps_check_them",
        "expired_keys_never_come_back",
        "key_lists_are_sorted_and_paged",
        "versions_are_never_reused",
    ] {
        script(Quota::default(), table);
    }
}

#[test]
fn keys_have_one_to_1024_bytes() {
    script(Quota::default(), "keys_have_one_to_1024_bytes");
}

#[test]
fn quotas_are_exact() {
    script(Quota { bytes: 20, keys: 3, value: 10 }, "quotas_are_exact");
}

#[test]
fn namespaces_are_isolated() {
    script(Quota::default(), "namespaces_are_isolated");
    for subject in empty_stores(Quota::default()) {
        for (tenant, component) in [(None, "t"), (Some(""), "t"), (Some("t"), "")] {
            let space = Namespace::new(tenant, component);
            assert_eq!(subject.store.list(&space, "", None, 5).unwrap().keys.len(), 0, "{space:?}");
            subject.store.set(&space, "k", component.as_bytes(), None).unwrap();
        }
    }
}

#[test]
fn only_cursors_from_a_page_of_the_list_are_valid() {
    for subject in empty_stores(Quota::default()) {
        let (store, space) = (&subject.store, notes());
        for key in ["a", "b", "c"] {
            store.set(&space, key, b"", None).unwrap();
        }
        let cursor = store.list(&space, "", None, 1).unwrap().cursor.unwrap();
        assert_eq!(store.list(&space, "", Some(&cursor), 5).unwrap().keys, ["b", "c"]);
        // The cursor's key may have been removed in the meantime.
        store.delete(&space, "a").unwrap();
        assert_eq!(store.list(&space, "", Some(&cursor), 5).unwrap().keys, ["b", "c"]);
        for bad in ["", "!", "a", "_w", "=", &"YWFh".repeat(400), "\0"] {
            let listed = store.list(&space, "", Some(bad), 5);
            assert_eq!(listed, Err(StoreError::InvalidKey), "{bad:?}");
        }
        let other = store.list(&space, "b", Some(&cursor), 5);
        assert_eq!(other, Err(StoreError::InvalidKey), "of another list");
    }
}

/// The clock panics in the middle of a write: the store is unchanged, and the next write works.
#[test]
fn panicking_clock_leaves_the_store_unchanged() {
    for Subject { _dir, name, store, hand } in empty_stores(Quota::default()) {
        let space = notes();
        store.set(&space, "a", b"1", None).unwrap();
        let operations: [&dyn Fn(); 5] = [
            &|| drop(store.set(&space, "a", b"2", None)),
            &|| drop(store.delete(&space, "a")),
            &|| drop(store.compare_and_swap(&space, "b", None, b"2", None)),
            &|| drop(store.get(&space, "a")),
            &|| drop(store.list(&space, "", None, 5)),
        ];
        for (number, operation) in operations.into_iter().enumerate() {
            hand.set(BROKEN);
            let done = toolcell_contract::panic_guard::guarded(operation);
            assert!(done.is_none(), "{name}, {number}");
            hand.set(0);
            assert_eq!(store.get(&space, "a").unwrap().unwrap().data, b"1", "{name}, {number}");
            store.set(&space, "c", b"3", None).unwrap();
            audit(&store, &space);
        }
    }
}
