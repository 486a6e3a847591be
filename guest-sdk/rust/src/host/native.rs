//! Stand-ins for native tests: no host, no request to abort, no limits.
//!
//! Invariants: each thread, and so each test, has its own store, secrets and answers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::budget::Remaining;
use super::log::Level;
use super::{http, invoke as calls, kv, secrets};

pub(crate) fn log(level: Level, message: &str) {
    // Ignores errors, so that a test with a closed stderr still passes.
    let _ = writeln!(std::io::stderr(), "{level:?}: {message}");
}

pub(crate) fn progress(_done: u64, _total: Option<u64>, _message: Option<&str>) {}

pub(crate) fn abort_requested() -> bool {
    false
}

pub(crate) fn remaining() -> Remaining {
    Remaining { fuel: None, time: Duration::MAX, memory: u64::MAX }
}

/// The caller's request to end the call, which does not exist outside of a cell.
#[derive(Debug)]
pub(crate) struct Wish;

impl Wish {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn ready(&self) -> bool {
        false
    }

    pub(crate) fn block(&self) {
        panic!("outside of a cell no caller asks a tool to stop: this wait would never end");
    }

    pub(crate) fn handle(self) -> Option<u32> {
        None
    }
}

type Answer = Rc<dyn Fn(&http::Request<'_>) -> Result<http::Response, http::Error>>;
type Called = Rc<dyn Fn(&str, &Value) -> Result<Value, calls::Error>>;

thread_local! {
    static SECRETS: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
    static CALLED: RefCell<Option<Called>> = const { RefCell::new(None) };
    static ANSWER: RefCell<Option<Answer>> = const { RefCell::new(None) };
    static STORE: RefCell<Store> = const { RefCell::new(Store { entries: BTreeMap::new(), writes: 0 }) };
}

/// The name of a secret that the test has set.
#[derive(Debug)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn name(&self) -> String {
        self.0.clone()
    }
}

pub(crate) fn secret(name: &str) -> Result<Secret, secrets::Error> {
    reveal(name).map(|_| Secret(name.to_owned()))
}

pub(crate) fn reveal(name: &str) -> Result<String, secrets::Error> {
    SECRETS.with_borrow(|secrets| secrets.get(name).cloned()).ok_or_else(|| {
        let problem =
            format!("outside of a cell there is no secret of this name: set it with `secrets::set(\"{name}\", …)`");
        secrets::Error::Unavailable(problem)
    })
}

pub(crate) fn set_secret(name: String, value: String) {
    SECRETS.with_borrow_mut(|secrets| secrets.insert(name, value));
}

pub(crate) fn send(request: http::Request<'_>) -> Result<http::Response, http::Error> {
    // Cloned, not borrowed: an answer may set the next one.
    match ANSWER.with_borrow(Clone::clone) {
        Some(answer) => answer(&request),
        None => {
            let problem =
                "outside of a cell no server answers: set the answers with `http::answer_with(…)`";
            Err(http::Error::Unreachable(problem.to_owned()))
        }
    }
}

pub(crate) fn answer_with(
    answer: impl Fn(&http::Request<'_>) -> Result<http::Response, http::Error> + 'static,
) {
    ANSWER.set(Some(Rc::new(answer)));
}

/// Calls the test's function and returns its value as `{"value"}`.
pub(crate) fn invoke(name: &str, arguments: Value) -> Result<Value, calls::Error> {
    // Cloned, not borrowed: an answer may set the next one.
    match CALLED.with_borrow(Clone::clone) {
        Some(called) => called(name, &arguments).map(|value| json!({ "value": value })),
        None => {
            let problem = "outside of a cell no other tool answers: set the answers with `invoke::answer_with(…)`";
            Err(calls::Error::Unavailable(problem.to_owned()))
        }
    }
}

pub(crate) fn answer_calls_with(
    answer: impl Fn(&str, &Value) -> Result<Value, calls::Error> + 'static,
) {
    CALLED.set(Some(Rc::new(answer)));
}

/// The key-value store of a test.
struct Store {
    entries: BTreeMap<String, kv::Entry>,
    writes: u64,
}

/// Bytes of the longest key, as in a host.
const MAX_KEY: usize = 1 << 10;

fn check(key: &str) -> Result<(), kv::Error> {
    match key.len() {
        0 => Err(kv::Error::InvalidKey("the key is empty".to_owned())),
        1..=MAX_KEY => Ok(()),
        length => Err(kv::Error::InvalidKey(format!(
            "the key has {length} bytes, and at most {MAX_KEY} are allowed"
        ))),
    }
}

pub(crate) fn get(key: &str) -> Result<Option<kv::Entry>, kv::Error> {
    check(key)?;
    Ok(STORE.with_borrow(|store| store.entries.get(key).cloned()))
}

pub(crate) fn set(key: &str, value: &[u8], _time: Option<Duration>) -> Result<u64, kv::Error> {
    check(key)?;
    Ok(STORE.with_borrow_mut(|store| {
        store.writes += 1;
        let entry = kv::Entry { data: value.to_owned(), version: store.writes };
        store.entries.insert(key.to_owned(), entry);
        store.writes
    }))
}

pub(crate) fn delete(key: &str) -> Result<bool, kv::Error> {
    check(key)?;
    Ok(STORE.with_borrow_mut(|store| store.entries.remove(key).is_some()))
}

pub(crate) fn compare_and_swap(
    key: &str,
    expected: Option<u64>,
    value: &[u8],
    time: Option<Duration>,
) -> Result<Option<u64>, kv::Error> {
    if get(key)?.map(|entry| entry.version) == expected {
        set(key, value, time).map(Some)
    } else {
        Ok(None)
    }
}

/// Returns keys, and the cursor of the next page if there is one.
pub(crate) fn list(
    prefix: &str,
    cursor: Option<&str>,
    most: u32,
) -> Result<(Vec<String>, Option<String>), kv::Error> {
    STORE.with_borrow(|store| {
        let wanted = |key: &&String| {
            key.starts_with(prefix) && cursor.is_none_or(|cursor| key.as_str() > cursor)
        };
        let mut found = store.entries.keys().filter(wanted).cloned();
        let page: Vec<String> = found.by_ref().take(most as usize).collect();
        let cursor = found.next().and_then(|_| page.last().cloned());
        Ok((page, cursor))
    })
}
