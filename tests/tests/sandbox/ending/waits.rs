//! A guest that waits for the host until its deadline always ends as `timeout/blocked`, no matter
//! what it waits for.

use std::future::pending;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::grants::{HttpRule, Injection, SecretGrant};
use toolcell::http::{Egress, ResolveFuture, Resolver};
use toolcell::runtime::Placement;
use toolcell::secrets::{SecretFuture, SecretSource};
use toolcell::{CallOptions, Engine, Executor, Grants, Limits, Tool, ToolCall};
use toolcell_test_guests::Misdeed;
use toolcell_tests::server::{answering, silent};
use toolcell_tests::{PLACEMENTS, ending, tool, wait};

use super::PATIENCE;
use crate::load_misdeed;
use crate::watched_store::WatchedStore;

/// Calls of each kind, in each placement. They run together, so that the host is busy when their
/// deadlines pass.
const CALLS: usize = 24;
/// Calls of the kinds that occupy a host thread while they wait.
const CALLS_WITH_THREADS: usize = 6;
/// Time of a call: enough for its guest to reach its wait on a busy machine.
const TIME: Duration = Duration::from_millis(400);

/// A resolver that never answers.
struct NoAnswer;

impl Resolver for NoAnswer {
    fn resolve(&self, _host: &str, _port: u16) -> ResolveFuture {
        Box::pin(pending())
    }
}

/// A source of secrets that never answers.
struct NoSecret;

impl SecretSource for NoSecret {
    fn secret<'a>(&'a self, _tenant: Option<&'a str>, _name: &'a str) -> SecretFuture<'a> {
        Box::pin(pending())
    }
}

/// The beginning of a response without its rest.
const HALF: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nthe first half";

fn engine(placement: Placement) -> toolcell::runtime::EngineBuilder {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("waits");
    Engine::builder().cells(40).threads(2).placement(placement).cache(cache)
}

/// Grants requests to a loopback address.
pub(crate) fn reaching(url: &str) -> Grants {
    let rule: HttpRule = format!("GET,POST {url}").parse().expect("a rule");
    let mut grants = Grants::default();
    grants.http.push(rule.with_private(["127.0.0.0/8".parse().expect("a network")]));
    grants
}

/// Makes this many concurrent calls, each with its own deadline. Returns their endings, and their
/// numbers of host calls.
fn endings(tool: &Tool, arguments: &Value, calls: usize) -> Vec<(String, u64)> {
    let (tool, arguments) = (tool.clone(), arguments.clone());
    wait(async move {
        let call = |number: usize| {
            let (tool, call) = (
                tool.clone(),
                ToolCall::with_value("1", tool.definition().name.as_str(), &arguments),
            );
            let limits = Limits {
                timeout: TIME + Duration::from_millis(number as u64),
                ..Limits::default()
            };
            tokio::spawn(async move {
                let executor = Executor::new().with_limits(limits);
                tokio::time::timeout(PATIENCE, executor.call(&tool, call, CallOptions::default()))
                    .await
            })
        };
        let mut endings = Vec::new();
        for call in (0..calls).map(call).collect::<Vec<_>>() {
            let completion = call.await.expect("no panic").expect("it ends");
            endings.push((ending(&completion.result), completion.usage.host_calls));
        }
        endings
    })
}

/// The last host call of each of these guests is the one that it waits in. On a busy machine some
/// may not reach it in time: those were still running.
fn assert_blocked(kind: &str, placement: Placement, tool: &Tool, arguments: &Value, calls: usize) {
    let endings = endings(tool, arguments, calls);
    let most = endings.iter().map(|(_, host_calls)| *host_calls).max().expect("a call");
    for (ending, host_calls) in &endings {
        let is_good =
            ending == "timeout/blocked" || (*host_calls < most && ending == "timeout/deadline");
        assert!(is_good, "{kind}, {placement:?}: {endings:?}");
    }
}

#[test]
fn pollable_wait_times_out_as_blocked() {
    for placement in PLACEMENTS {
        let engine = engine(placement).build().expect("an engine");
        // Polls a list, as a language's own library does.
        let sleeps = tool(&engine, "mischief", "sleeps", Grants::default());
        assert_blocked("a list", placement, &sleeps, &json!({}), CALLS);
        for misdeed in [Misdeed::Sleep, Misdeed::SleepLongest, Misdeed::AwaitAbort] {
            let guest = load_misdeed(&engine, misdeed).tools()[0].clone();
            assert_blocked(&format!("{misdeed:?}"), placement, &guest, &json!({}), CALLS);
        }
    }
}

#[test]
fn request_wait_times_out_as_blocked() {
    let (silent, half) = (silent(), answering(HALF));
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
fn name_lookup_wait_times_out_as_blocked() {
    for placement in PLACEMENTS {
        let egress = Egress::new().with_resolver(NoAnswer);
        let engine = engine(placement).egress(egress).build().expect("an engine");
        let fetch = tool(&engine, "fetch", "fetch", reaching("http://one.example"));
        assert_blocked("a name", placement, &fetch, &json!({"url": "http://one.example/"}), CALLS);
    }
}

#[test]
fn secret_wait_times_out_as_blocked() {
    let server = silent();
    for placement in PLACEMENTS {
        let engine = engine(placement).secrets(NoSecret).build().expect("an engine");
        let url = format!("http://{server}");
        let mut grants = reaching(&url);
        let rule = grants.http[0].clone();
        grants.secrets.insert("fetch_token".into(), SecretGrant::new(rule, Injection::Bearer));
        let fetch = tool(&engine, "fetch", "fetch", grants);
        let arguments = json!({"url": format!("{url}/"), "with_token": true});
        assert_blocked("a secret", placement, &fetch, &arguments, CALLS);
    }
}

#[test]
fn store_wait_times_out_as_blocked() {
    for placement in PLACEMENTS {
        let (opens, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        // Does not return until the gate is dropped.
        let store = WatchedStore::new(move |_, _| {
            let _ = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
        });
        let engine = engine(placement).keys(store).build().expect("an engine");
        let mut grants = Grants::default();
        grants.kv.push("write notes/*".parse().expect("a rule"));
        let notes = tool(&engine, "notes", "notes", grants);
        let arguments = json!({"action": "add", "title": "milk", "text": "two litres"});
        assert_blocked("a store", placement, &notes, &arguments, CALLS_WITH_THREADS);
        drop(opens);
    }
}
