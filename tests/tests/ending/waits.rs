//! A guest that waits for the host until its deadline ends as `timeout/blocked`, whatever it waits for, every time.

use std::collections::BTreeMap;
use std::future::pending;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::kv::{Entry, KeyStore, Namespace, Page, StoreError};
use toolcell::{
    CallOptions, Egress, Engine, Executor, Grants, HttpRule, Limits, Placed, Placement, Resolved, Resolver,
    SecretFuture, SecretSource, SecretUse, Tool, ToolCall,
};
use toolcell_test_guests::{Hostile, Misdeed, Place};
use toolcell_tests::{PLACEMENTS, ending, load, wait};

use super::{PATIENCE, tool};

/// Calls of each kind, in each placement. They run together, so that the host is busy when their deadlines pass.
const CALLS: usize = 24;
/// The same for what occupies a thread of the host's for as long as it waits.
const CALLS_WITH_THREADS: usize = 6;

/// A name that is never resolved.
struct NoAnswer;

impl Resolver for NoAnswer {
    fn resolve(&self, _host: &str, _port: u16) -> Resolved {
        Box::pin(pending())
    }
}

/// A secret that never comes.
struct NoSecret;

impl SecretSource for NoSecret {
    fn secret<'a>(&'a self, _tenant: Option<&'a str>, _name: &'a str) -> SecretFuture<'a> {
        Box::pin(pending())
    }
}

/// A store that does not come back until its gate is gone.
struct Gated(Mutex<mpsc::Receiver<()>>);

impl Gated {
    fn wait<T>(&self) -> Result<T, StoreError> {
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).recv();
        Err(StoreError::Unavailable("the gate is gone".into()))
    }
}

impl KeyStore for Gated {
    fn get(&self, _: &Namespace, _: &str) -> Result<Option<Entry>, StoreError> {
        self.wait()
    }

    fn set(&self, _: &Namespace, _: &str, _: &[u8], _: Option<Duration>) -> Result<u64, StoreError> {
        self.wait()
    }

    fn delete(&self, _: &Namespace, _: &str) -> Result<bool, StoreError> {
        self.wait()
    }

    fn compare_and_swap(
        &self,
        _: &Namespace,
        _: &str,
        _: Option<u64>,
        _: &[u8],
        _: Option<Duration>,
    ) -> Result<Option<u64>, StoreError> {
        self.wait()
    }

    fn list(&self, _: &Namespace, _: &str, _: Option<&str>, _: usize) -> Result<Page, StoreError> {
        self.wait()
    }
}

/// A server that answers each request with these bytes, says nothing more, and keeps the connection.
fn says(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while stream.read(&mut piece).is_ok_and(|count| count > 0) {
                    let _ = stream.write_all(bytes);
                }
            });
        }
    });
    address
}

/// The beginning of a response of which the rest never comes.
const HALF: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nthe first half";

fn engine(placement: Placement) -> toolcell::EngineBuilder {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("waits");
    Engine::builder().cells(40).threads(2).placement(placement).cache(cache)
}

fn reaching(url: &str) -> Grants {
    let rule: HttpRule = format!("GET,POST {url}").parse().expect("a rule");
    let mut grants = Grants::default();
    grants.http.push(rule.with_private(["127.0.0.0/8".parse().expect("a network")]));
    grants
}

/// So many calls at once, each with a deadline of its own: how often they ended how.
fn endings(tool: &Tool, arguments: &Value, calls: usize) -> BTreeMap<String, usize> {
    let (tool, arguments) = (tool.clone(), arguments.clone());
    let endings = wait(async move {
        let calls: Vec<_> = (0..calls)
            .map(|number| {
                let (tool, call) =
                    (tool.clone(), ToolCall::with_value("1", tool.definition().name.as_str(), &arguments));
                let limits = Limits::default().with_timeout(Duration::from_millis(30 + number as u64));
                let call = async move {
                    let executor = Executor::new().with_limits(limits);
                    tokio::time::timeout(PATIENCE, executor.call(&tool, call, CallOptions::default())).await
                };
                tokio::spawn(call)
            })
            .collect();
        let mut endings = Vec::new();
        for call in calls {
            endings.push(ending(&call.await.expect("no panic").expect("it ends").result));
        }
        endings
    });
    endings.into_iter().fold(BTreeMap::new(), |mut counted, ending| {
        *counted.entry(ending).or_default() += 1;
        counted
    })
}

fn assert_blocked(kind: &str, placement: Placement, tool: &Tool, arguments: &Value, calls: usize) {
    let endings = endings(tool, arguments, calls);
    assert_eq!(endings, BTreeMap::from([("timeout/blocked".to_owned(), calls)]), "{kind}, {placement:?}");
}

#[test]
fn for_a_pollable() {
    for placement in PLACEMENTS {
        let engine = engine(placement).build().expect("an engine");
        for misdeed in [Misdeed::Sleep, Misdeed::SleepLongest, Misdeed::PollMany, Misdeed::AwaitAbort] {
            let guest = load(&engine, Hostile::new(Place::Execute, misdeed).component()).expect("loads");
            assert_blocked(&format!("{misdeed:?}"), placement, &guest.tools()[0], &json!({}), CALLS);
        }
    }
}

#[test]
fn for_a_request() {
    let (silent, half) = (says(b""), says(HALF));
    for placement in PLACEMENTS {
        let engine = engine(placement).build().expect("an engine");
        for (what, server) in [("a response", silent), ("the rest of a body", half)] {
            let url = format!("http://{server}");
            let fetch = tool(&engine, "fetch", "fetch", reaching(&url));
            let arguments = json!({"url": format!("{url}/")});
            assert_blocked(&format!("http.send: {what}"), placement, &fetch, &arguments, CALLS);
            let caller = tool(&engine, "caller", "caller", reaching(&url));
            let arguments = json!({"authority": server.to_string(), "path": "/", "body": "some"});
            assert_blocked(&format!("wasi:http: {what}"), placement, &caller, &arguments, CALLS);
        }
    }
}

#[test]
fn for_a_name() {
    for placement in PLACEMENTS {
        let engine = engine(placement).egress(Egress::new().with_resolver(NoAnswer)).build().expect("an engine");
        let fetch = tool(&engine, "fetch", "fetch", reaching("http://one.example"));
        assert_blocked("a name", placement, &fetch, &json!({"url": "http://one.example/"}), CALLS);
    }
}

#[test]
fn for_a_secret() {
    let server = says(b"");
    for placement in PLACEMENTS {
        let engine = engine(placement).secrets(NoSecret).build().expect("an engine");
        let url = format!("http://{server}");
        let mut grants = reaching(&url);
        let rule = grants.http[0].clone();
        grants.secrets.insert("fetch_token".into(), SecretUse::new(rule, Placed::Bearer));
        let fetch = tool(&engine, "fetch", "fetch", grants);
        let arguments = json!({"url": format!("{url}/"), "with_token": true});
        assert_blocked("a secret", placement, &fetch, &arguments, CALLS);
    }
}

#[test]
fn for_a_store() {
    for placement in PLACEMENTS {
        let (opens, gate) = mpsc::channel();
        let engine = engine(placement).keys(Gated(Mutex::new(gate))).build().expect("an engine");
        let mut grants = Grants::default();
        grants.keys.push("write notes/*".parse().expect("a rule"));
        let notes = tool(&engine, "notes", "notes", grants);
        let arguments = json!({"action": "add", "title": "milk", "text": "two litres"});
        assert_blocked("a store", placement, &notes, &arguments, CALLS_WITH_THREADS);
        drop(opens);
    }
}
