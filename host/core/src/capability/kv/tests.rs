//! Tests that hold for every key-value store: scripts of operations with their expected answers.
//!
//! A script is a text such as `set a one = 1`, one operation per line. Each script runs against a
//! store in memory and against one on disk, with a clock that the test sets. After each line, the
//! tables of the namespace are checked for consistency. Submodules test what scripts cannot:
//! processes, threads, random operations and space.

mod disk;
mod model;
mod races;
mod room;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

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
    store: Arc<dyn KeyStore>,
    audit: Box<dyn Fn(&Namespace) + Send + Sync>,
    hand: Arc<TestClock>,
    /// Removed after the store is closed.
    _dir: TempDir,
}

impl Subject {
    fn new(name: &'static str, (store, dir): (SqliteStore, TempDir), hand: Arc<TestClock>) -> Self {
        let store = Arc::new(store);
        let audited = store.clone();
        Self {
            name,
            store,
            audit: Box::new(move |namespace| audit(&audited, namespace)),
            hand,
            _dir: dir,
        }
    }
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
    ["memory", "disk"].map(|kind| {
        let (hand, (store, dir)) = (Arc::<TestClock>::default(), empty(kind));
        Subject::new(kind, (store.with_quota(quota).with_clock(hand.clone()), dir), hand)
    })
}

fn namespace() -> Namespace {
    Namespace::new(Some("acme"), "notes")
}

/// Expands `x*3` to `xxx`.
fn expand(word: &str) -> String {
    match word.split_once('*') {
        Some((word, times)) => word.repeat(times.parse().unwrap()),
        None => word.to_owned(),
    }
}

fn answer_text<T>(result: Result<T, StoreError>, say: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => say(value),
        Err(StoreError::InvalidKey) => "invalid".into(),
        Err(StoreError::OverQuota(problem)) => {
            format!("over: {}", problem.split(": delete").next().unwrap())
        }
        Err(error) => panic!("{error}"),
    }
}

fn pages(
    store: &dyn KeyStore,
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
fn run(subject: &Subject, namespace: &mut Namespace, line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    let ttl = |at: usize| words.get(at).map(|ttl| Duration::from_millis(ttl.parse().unwrap()));
    let store = &subject.store;
    let option =
        |version: Option<u64>| version.map_or_else(|| "none".into(), |version| version.to_string());
    match *words {
        ["as", tenant, component] => {
            *namespace = Namespace::new(Some(tenant).filter(|tenant| *tenant != "-"), component)
        }
        ["at", time] => subject.hand.set(time.parse().unwrap()),
        ["set", key, data, ..] => {
            let data = expand(data);
            return answer_text(
                store.set(namespace, &expand(key), data.as_bytes(), ttl(3)),
                |version| version.to_string(),
            );
        }
        ["get", key] => {
            return answer_text(store.get(namespace, &expand(key)), |entry| {
                entry.map_or_else(|| "none".into(), |entry| String::from_utf8(entry.data).unwrap())
            });
        }
        ["delete", key] => {
            return answer_text(store.delete(namespace, &expand(key)), |was_there| {
                was_there.to_string()
            });
        }
        ["swap", key, expected, data, ..] => {
            let expected = expected.parse().ok();
            return answer_text(
                store.compare_and_swap(namespace, &expand(key), expected, data.as_bytes(), ttl(4)),
                option,
            );
        }
        ["list", most, ref prefix @ ..] => {
            let pages =
                pages(&**store, namespace, &expand(&prefix.concat()), most.parse().unwrap());
            return answer_text(pages, |pages| {
                let pages = pages.iter().map(|page| page.join(" ")).collect::<Vec<_>>().join(" | ");
                if pages.is_empty() { "nothing".into() } else { pages }
            });
        }
        _ => panic!("{line}"),
    }
    "ok".into()
}

fn script(quota: Quota, script: &str) {
    for subject in empty_stores(quota) {
        let mut namespace = namespace();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (operation, expected) = line.split_once(" = ").unwrap_or((line, "ok"));
            let answer = run(&subject, &mut namespace, operation);
            assert_eq!(answer, expected.trim(), "{}: {line}", subject.name);
            (subject.audit)(&namespace);
        }
    }
}

#[test]
fn writes_get_new_versions_and_swaps_check_them() {
    script(
        Quota::default(),
        "get a              = none
         set a one          = 1
         get a              = one
         set a two          = 2
         get a              = two
         set b three        = 3
         swap a 1 x         = none
         swap a none x      = none
         get a              = two
         swap a 2 four      = 4
         get a              = four
         delete a           = true
         delete a           = false
         get a              = none
         swap a 4 x         = none
         swap a none five   = 5
         get a              = five
         get b              = three
         list 10            = a b",
    );
}

#[test]
fn keys_have_one_to_1024_bytes() {
    script(
        Quota::default(),
        "set a*0 x       = invalid
         get a*0         = invalid
         delete a*0      = invalid
         swap a*0 1 x    = invalid
         set a*1024 x    = 1
         set ä*512 x     = 2
         get a*1024      = x
         set a*1025 x    = invalid
         get a*1025      = invalid
         delete ä*513    = invalid
         swap a*1025 1 x = invalid
         list 5 a*1024   = a
         list 5 a*1025   = invalid"
            .replace("= a\n", &format!("= {}\n", "a".repeat(1024)))
            .as_str(),
    );
}

#[test]
fn expired_keys_never_come_back() {
    script(
        Quota::default(),
        "at 1000
         set a one 10       = 1
         set b two 20       = 2
         set c three        = 3
         set d four 0       = 4
         get d              = none
         at 1009
         get a              = one
         list 1             = a | b | c
         at 1010
         get a              = none
         list 1             = b | c
         at 1000
         get a              = none
         list 5             = b c
         swap a 1 x         = none
         swap a none y 10   = 5
         get a              = y
         set b two          = 6
         set c three 5      = 7
         at 1005
         delete c           = false
         at 1000
         get c              = none
         at 99999999999999
         list 5             = b
         at 0
         list 5             = b
         set e six 1        = 8
         get e              = six
         set e six 18446744073709551615 = 9
         at 99999999999999
         get e              = six",
    );
}

#[test]
fn quotas_are_exact() {
    let quota = Quota { bytes: 20, keys: 3, value: 10 };
    script(
        quota,
        "set a v*10         = 1
         set a v*11         = over: a value of 11 bytes exceeds the limit of 10 bytes
         get a              = vvvvvvvvvv
         set b v*8          = 2
         set c v            = over: the store would hold 22 bytes, and the limit is 20
         delete b           = true
         set b v*6          = 3
         set c v            = 4
         set d v*0          = over: the store would have 4 keys, and the limit is 3
         swap d none v      = over: the store would have 4 keys, and the limit is 3
         set c v*2          = over: the store would hold 21 bytes, and the limit is 20
         set b v*5          = 5
         set c v*2          = 6
         set b v*5          = 7
         swap b 7 vvvvvvv   = over: the store would hold 22 bytes, and the limit is 20
         get b              = vvvvv
         delete c           = true
         delete b           = true
         set d v*8 5        = 8
         set e v*8          = over: the store would hold 29 bytes, and the limit is 20
         at 5
         set e v*8          = 9
         get d              = none
         as other notes
         set a v*10         = 1
         list 5             = a",
    );
}

#[test]
fn key_lists_are_sorted_and_paged() {
    script(
        Quota::default(),
        "list 3             = nothing
         set n/2 x          = 1
         set n/1 x          = 2
         set n/3 x          = 3
         set m x            = 4
         set o x            = 5
         set n x            = 6
         set ñ x            = 7
         list 100           = m n n/1 n/2 n/3 o ñ
         list 3             = m n n/1 | n/2 n/3 o | ñ
         list 2 n/          = n/1 n/2 | n/3
         list 3 n/          = n/1 n/2 n/3
         list 0 n/          = n/1 | n/2 | n/3
         list 18446744073709551615 n = n n/1 n/2 n/3
         list 1 z           = nothing",
    );
}

#[test]
fn namespaces_are_isolated() {
    script(
        Quota::default(),
        "as a notes
         set k one          = 1
         as b notes
         get k              = none
         list 5             = nothing
         delete k           = false
         swap k 1 x         = none
         set k two          = 1
         as a note
         get sk             = none
         as - notes
         get k              = none
         as a notes
         get k              = one",
    );
    for subject in empty_stores(Quota::default()) {
        let spaces = [
            Namespace::new(None, "t"),
            Namespace::new(Some(""), "t"),
            Namespace::new(Some("t"), ""),
        ];
        for (at, space) in spaces.iter().enumerate() {
            assert_eq!(subject.store.list(space, "", None, 5).unwrap().keys.len(), 0, "{at}");
            subject.store.set(space, "k", space.component().as_bytes(), None).unwrap();
        }
    }
}

#[test]
fn only_cursors_from_a_page_of_the_list_are_valid() {
    for subject in empty_stores(Quota::default()) {
        let (store, space) = (&subject.store, namespace());
        for key in ["a", "b", "c"] {
            store.set(&space, key, b"", None).unwrap();
        }
        let cursor = store.list(&space, "", None, 1).unwrap().cursor.unwrap();
        assert_eq!(store.list(&space, "", Some(&cursor), 5).unwrap().keys, ["b", "c"]);
        // The cursor's key may have been removed in the meantime.
        store.delete(&space, "a").unwrap();
        assert_eq!(store.list(&space, "", Some(&cursor), 5).unwrap().keys, ["b", "c"]);
        for bad in ["", "!", "a", "_w", "=", &"YWFh".repeat(400), "\0"] {
            assert_eq!(
                store.list(&space, "", Some(bad), 5),
                Err(StoreError::InvalidKey),
                "{bad:?}"
            );
        }
        assert_eq!(
            store.list(&space, "b", Some(&cursor), 5),
            Err(StoreError::InvalidKey),
            "of another list"
        );
    }
}

/// The clock panics in the middle of a write: the store is unchanged, and the next write works.
#[test]
fn panicking_clock_leaves_the_store_unchanged() {
    for kind in ["memory", "disk"] {
        let (hand, (store, dir)) = (Arc::<TestClock>::default(), empty(kind));
        let store = store.with_clock(hand.clone());
        let Subject { name, store, audit, hand, _dir } = Subject::new(kind, (store, dir), hand);
        let space = namespace();
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
            assert!(
                toolcell_contract::panic_guard::guarded(operation).is_none(),
                "{name}, {number}"
            );
            hand.set(0);
            assert_eq!(store.get(&space, "a").unwrap().unwrap().data, b"1", "{name}, {number}");
            store.set(&space, "c", b"3", None).unwrap();
            audit(&space);
        }
    }
}
