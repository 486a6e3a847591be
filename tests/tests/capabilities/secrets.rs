//! A tool that was given the value of a secret emits it in every way that it can: no reader sees
//! it.

use std::future::ready;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcell::call::{LogLevel, LogSource};
use toolcell::grants::{Injection, SecretGrant};
use toolcell::kv::SqliteStore;
use toolcell::runtime::Placement;
use toolcell::secrets::{
    KnownFuture, Secret, SecretError, SecretFuture, SecretSource, StoredSecrets,
};
use toolcell::{Engine, Event, Executor, Grants, Tool};
use toolcell_tests::PLACEMENTS;
use toolcell_tests::server::{Server, response};

use crate::{denial, first_tool, message, observed, of, outcome};

pub(crate) const OWN: &str = "canary-4711-of-the-tool-5a";
const ANOTHERS: &str = "canary-0815-of-another";

/// Starts a server that answers with all requests so far.
fn server() -> Server {
    let mut all = String::new();
    Server::start(Ipv4Addr::LOCALHOST, move |request| {
        all.push_str(request);
        response("200 OK", &all)
    })
}

/// The tool, its executor, and the events that observers got.
struct Scene {
    executor: Executor,
    tool: Tool,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Scene {
    fn of(name: &str, placement: Placement, grants: Grants) -> Self {
        let secret = |value| Secret::new(value).expect("a secret");
        let secrets = StoredSecrets::default()
            .with("gossip_key", secret(OWN))
            .with("fetch_token", secret(OWN));
        Self::with(name, placement, grants, secrets.with_tenant("b", "key", secret(ANOTHERS)))
    }

    fn with(name: &str, placement: Placement, grants: Grants, secrets: impl SecretSource) -> Self {
        let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/secrets");
        let builder = Engine::builder().cells(4).placement(placement).secrets(secrets);
        let builder = builder.keys(SqliteStore::in_memory());
        let engine = builder.cache(cache).build().expect("an engine");
        let tool = first_tool(&engine, name, grants);
        let (executor, events) = observed(Some);
        Self { executor, tool, events }
    }

    fn say(&self, arguments: &Value) -> Value {
        outcome(&self.executor, &self.tool, arguments, of("a"))
    }

    fn gossip(&self, how: &str, words: &str) -> Value {
        self.say(&json!({"how": how, "words": words}))
    }

    /// Returns and removes the events so far, except those with the arguments, which came from
    /// outside.
    fn heard(&self) -> Vec<Event> {
        let events = std::mem::take(&mut *self.events.lock().expect("events"));
        events.into_iter().filter(|event| !matches!(event, Event::Started { .. })).collect()
    }
}

fn reveals(server: &Server, secret: Option<&str>) -> Grants {
    let mut grants = Grants::default();
    grants.reveal.insert("gossip_key".into());
    grants.kv.push("write *".parse().expect("a rule"));
    grants.http.push(server.rule("GET,POST", "/"));
    if let Some(path) = secret {
        let secret = SecretGrant::new(server.rule("GET,POST", path), Injection::Bearer);
        grants.secrets.insert("gossip_key".into(), secret);
    }
    grants
}

/// A vault whose value changes after it was read once, and that does not list its values.
#[derive(Default)]
struct Vault(AtomicBool);

impl SecretSource for Vault {
    fn secret<'a>(&'a self, _: Option<&'a str>, _: &'a str) -> SecretFuture<'a> {
        let is_changed = self.0.swap(true, Ordering::Relaxed);
        Box::pin(ready(Secret::new(if is_changed { ANOTHERS } else { OWN })))
    }

    fn known<'a>(&'a self, _: Option<&'a str>) -> KnownFuture<'a> {
        Box::pin(ready(Err(SecretError::new("the vault lists nothing"))))
    }
}

/// Returns true if a text contains a value, its reverse, or half of it.
pub(crate) fn shows(text: &str, value: &str) -> bool {
    let backwards: String = value.chars().rev().collect();
    let (one, other) = value.split_at(value.len() / 2);
    [value, &backwards, one, other].iter().any(|form| text.contains(form))
}

#[test]
fn secret_is_redacted_in_every_output() {
    let server = server();
    for placement in PLACEMENTS {
        let scene = Scene::of("gossip", placement, reveals(&server, None));
        for how in [
            "value", "deep", "pieces", "beside", "error", "ask", "halt", "log", "stdout", "stderr",
            "progress", "panic", "keep", "recall",
        ] {
            let result = scene.gossip(how, "");
            let events = serde_json::to_string(&scene.heard()).expect("JSON");
            let all = format!("{result} {events}");
            assert!(how == "keep" || all.contains("[redacted]") || how == "beside", "{how}: {all}");
            assert!(!shows(&all, OWN), "{how}: {all}");
        }
        assert_eq!(scene.gossip("value", "")["ok"]["value"], "[redacted]");
        let deep = json!({"[redacted]": [1.5, {"a": "<[redacted]>"}]});
        assert_eq!(scene.gossip("deep", "")["ok"]["value"], deep);
        // The last words of a guest become the message of the error.
        let panicked = scene.gossip("panic", "");
        let message = panicked["tool_error"]["message"].as_str().expect("words");
        assert!(message.contains("[redacted]"), "{panicked}");
    }
    assert_eq!(server.requests().len(), 0);
}

/// The value changes during the call. Without the host's values, a request cannot be searched for
/// them, and is not sent.
#[test]
fn unsearchable_request_is_not_sent() {
    let server = server();
    let grants = reveals(&server, None);
    let scene = Scene::with("gossip", PLACEMENTS[0], grants, Vault::default());
    assert_eq!(scene.gossip("value", "")["ok"]["value"], "[redacted]");
    let told = scene.gossip("send", &format!("{} body", server.url("/"))).to_string();
    assert!(told.contains("cannot check it for secrets") && !shows(&told, ANOTHERS), "{told}");
    assert_eq!(server.requests().len(), 0);
}

/// Source: docs/threat-model.md, row 44.
#[test]
fn secret_value_is_not_in_guest_memory() {
    let server = server();
    for placement in PLACEMENTS {
        let scene = Scene::of("gossip", placement, reveals(&server, Some("/own")));
        for (value, found) in [(OWN, false), (&OWN[..OWN.len() / 2], false), ("gossip_key", true)] {
            let shifted: String = value.bytes().map(|letter| char::from(letter + 1)).collect();
            let told = scene.gossip("memory", &format!("{} {shifted}", server.url("/own")));
            let told = &told["ok"]["value"];
            assert!(told["text"].as_str().expect("a page").contains("Bearer [redacted]"), "{told}");
            assert_eq!(told["found"], found, "{value}: {told}");
        }
    }
    assert!(server.requests().iter().all(|request| request.contains(OWN)));
}

#[test]
fn secret_leaves_only_to_its_bound_destination() {
    let server = server();
    let scene = Scene::of("gossip", PLACEMENTS[0], reveals(&server, Some("/own")));
    for how in ["query", "header", "body"] {
        let denied = scene.gossip(how, &server.url("/x"));
        let message = message(&denied);
        assert!(message.contains("contains the value of a secret"), "{message}");
        assert!(!shows(message, OWN), "{message}");
        let denials: Vec<_> = scene.heard().into_iter().filter_map(denial).collect();
        let shown = serde_json::to_string(&denials).expect("JSON");
        assert!(denials.len() == 1 && shown.contains("\"secrets\""), "{shown}");
        assert!(!shows(&shown, OWN), "{shown}");
    }
    assert_eq!(server.requests().len(), 0);
    for how in ["query", "header", "body"] {
        assert_eq!(scene.gossip(how, &server.url("/own/x"))["ok"]["value"], 200, "{how}");
    }
    // A denial because of the destination does not show the value either.
    let elsewhere = format!("http://elsewhere.example/{OWN}");
    let denied = scene.gossip("send", &format!("{elsewhere} body"));
    let denied = format!("{denied} {:?}", scene.heard());
    assert!(denied.contains("denied") && !shows(&denied, OWN), "{denied}");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn ungranted_secrets_never_leave() {
    let server = server();
    let mut grants = Grants::default();
    grants.http.push(server.rule("GET,POST", "/"));
    let fetch = Scene::of("fetch", PLACEMENTS[0], grants.clone());
    let caller = Scene::of("caller", PLACEMENTS[0], grants);
    for value in [OWN, ANOTHERS] {
        let denied = fetch.say(&json!({"url": server.url(&format!("/?q={value}"))}));
        assert!(denied["error"].is_object() && !shows(&denied.to_string(), value), "{denied}");
        for (path, body) in
            [(format!("/{value}"), String::new()), ("/".to_owned(), format!("<{value}>"))]
        {
            let arguments =
                json!({"authority": server.address.to_string(), "path": path, "body": body});
            let denied = caller.say(&arguments);
            assert!(message(&denied).contains("Denied"), "{denied}");
            assert!(caller.heard().iter().any(|event| matches!(event, Event::Denied { .. })));
        }
    }
    assert_eq!(server.requests().len(), 0);
    let told = fetch.say(&json!({"url": server.url("/?q=canary")}));
    assert_eq!(told["ok"]["value"]["status"], 200, "{told}");
}

#[test]
fn likely_secret_in_a_request_is_reported() {
    let server = server();
    let scene = Scene::of("gossip", PLACEMENTS[0], reveals(&server, None));
    let token = format!("{}{}", "AKIA", "A1".repeat(8));
    assert!(scene.gossip("send", &format!("{} key={token}", server.url("/")))["ok"].is_object());
    let warning = |event: Event| {
        let Event::Log { source: LogSource::Host, level: LogLevel::Warn, message, .. } = event
        else {
            return None;
        };
        Some(message)
    };
    let warnings: Vec<_> = scene.heard().into_iter().filter_map(warning).collect();
    assert_eq!(warnings, ["a request of the tool seems to carry an AWS access key"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn sent_secret_is_redacted_in_later_responses() {
    let server = server();
    let mut grants = Grants::default();
    grants.http.push(server.rule("GET,POST", "/"));
    let secret = SecretGrant::new(server.rule("GET,POST", "/own"), Injection::Bearer);
    grants.secrets.insert("fetch_token".into(), secret);
    let scene = Scene::of("fetch", PLACEMENTS[0], grants);
    let page = scene.say(&json!({"url": server.url("/own"), "with_token": true}));
    assert_eq!(page["ok"]["value"]["status"], 200, "{page}");
    let page = scene.say(&json!({"url": server.url("/"), "with_token": false}));
    let text = page["ok"]["value"]["text"].as_str().unwrap_or_else(|| panic!("{page}"));
    assert!(text.contains("Bearer [redacted]") && !shows(text, OWN), "{text}");
    // What is compressed cannot be searched.
    assert_eq!(text.matches("accept-encoding: identity").count(), 2, "{text}");
    assert!(server.requests()[0].contains(OWN));
}
