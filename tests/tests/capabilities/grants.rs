//! Tools that use capabilities outside of their cell get what was granted, and no more.
//!
//! A server on loopback shows what arrives, byte for byte.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::grants::{HttpRule, Injection, SecretGrant};
use toolcell::kv::{Quota, SqliteStore};
use toolcell::outcome::Reason;
use toolcell::runtime::Placement;
use toolcell::secrets::{Secret, StoredSecrets};
use toolcell::{
    CallOptions, CallResult, Component, Engine, Error, Executor, Grants, Limits, Overlay, Tenant,
    Tool,
};
use toolcell_test_guests::{asker, bytes, rows};
use toolcell_tests::server::Server;
use toolcell_tests::{load_with, wait};

use crate::{complete, denial, first_tool, load, message, observed, of, outcome};

const TOKEN: &str = "canary-4711-of-the-test";

fn engine() -> Engine {
    let secrets =
        StoredSecrets::default().with("fetch_token", Secret::new(TOKEN).expect("a secret"));
    let keys = SqliteStore::in_memory().with_quota(Quota { value: 1000, ..Quota::default() });
    let engine = Engine::builder().cells(4).placement(Placement::Cells).keys(keys).secrets(secrets);
    engine.cache(concat!(env!("CARGO_TARGET_TMPDIR"), "/grants")).build().expect("an engine")
}

fn keys(rule: &str) -> Grants {
    let mut grants = Grants::default();
    grants.kv.push(rule.parse().expect("a rule"));
    grants
}

fn notes(engine: &Engine) -> Tool {
    first_tool(engine, "notes", keys("write notes/*"))
}

fn fetch(engine: &Engine, rules: Vec<HttpRule>, secret: Option<HttpRule>) -> Tool {
    let mut grants = Grants::default();
    grants.http = rules;
    if let Some(bound_to) = secret {
        grants.secrets.insert("fetch_token".into(), SecretGrant::new(bound_to, Injection::Bearer));
    }
    first_tool(engine, "fetch", grants)
}

fn said(executor: &Executor, tool: &Tool, arguments: &Value) -> Value {
    outcome(executor, tool, arguments, CallOptions::default())
}

fn assert_not_granted(error: &Error, import: &str) {
    assert!(error.is_not_granted() && error.to_string().contains(import), "{error}");
}

#[test]
fn ungranted_import_is_refused_with_the_grant_to_add() {
    let engine = engine();
    let error = load(&engine, "notes", Grants::default()).expect_err("no grant");
    assert_not_granted(&error, "toolcell:tool/kv");
    assert!(error.hint().contains(r#"kv = ["write notes/*"]"#), "{}", error.hint());
    // The grant that the hint names.
    assert!(load(&engine, "notes", keys("write notes/*")).is_ok());
    let error = load(&engine, "fetch", Grants::default()).expect_err("no grant");
    assert_not_granted(&error, "toolcell:tool/http");
}

/// Language runtimes import everything that their SDK has, also if the tool needs none of it.
#[test]
fn undeclared_import_needs_no_grant_and_is_denied() {
    let engine = engine();
    for (needs, is_loaded) in [
        (&[["kv", "read notes/*", "to look"]][..], true),
        (&[["kv", "read notes/*", "to look"], ["reveal", "key", "to sign"]], false),
        // A component without declared needs may need each of its imports.
        (&[], false),
    ] {
        let (engine, bytes) = (engine.clone(), asker(needs));
        let loaded = wait(async move { Component::load(&engine, bytes).await });
        match &loaded {
            Ok(component) => {
                let (executor, denials) = observed(denial);
                let answered = said(&executor, &component.tools()[0], &json!({"text": "x"}));
                let denied = json!(*denials.lock().expect("denials")).to_string();
                assert!(answered["ok"].is_object(), "{answered}");
                assert!(denied.contains("reveal"), "{denied}");
            }
            Err(error) => assert_not_granted(error, "toolcell:tool/reveal"),
        }
        assert_eq!(loaded.is_ok(), is_loaded, "{needs:?}");
    }
}

#[test]
fn notes_persist_across_calls_per_tenant() {
    let engine = engine();
    let (executor, notes) = (Executor::new(), notes(&engine));
    let add = json!({"action": "add", "title": "milk", "text": "two litres"});
    let get = json!({"action": "get", "title": "milk"});
    assert_eq!(outcome(&executor, &notes, &add, of("a"))["ok"]["value"]["text"], "two litres");
    assert_eq!(outcome(&executor, &notes, &get, of("a"))["ok"]["value"]["text"], "two litres");
    let long = json!({"action": "add", "title": "long", "text": "x".repeat(1001)});
    let refused = outcome(&executor, &notes, &long, of("a"));
    assert!(message(&refused).contains("the store cannot keep the value"), "{refused}");
    for stranger in [of("b"), of(""), CallOptions::default()] {
        let seen = outcome(&executor, &notes, &get, stranger.clone());
        assert!(message(&seen).contains("no note"), "{seen}");
        let list = outcome(&executor, &notes, &json!({"action": "list"}), stranger);
        assert_eq!(list["ok"]["value"]["titles"], json!([]));
    }
    // The same keys in a store of another name are other keys.
    let mut grants = keys("write *");
    grants.store = Some("elsewhere".into());
    let other = first_tool(&engine, "notes", grants);
    assert!(outcome(&executor, &other, &get, of("a"))["error"].is_object());
}

#[test]
fn tools_of_a_component_share_its_keys() {
    let engine = engine();
    let component = load_with(&engine, bytes("messenger"), keys("write *")).expect("it loads");
    let [repeat, stored] =
        ["repeat", "stored"].map(|name| component.tool(name).expect("a tool").clone());
    let (executor, stores) = (Executor::new(), json!({"words": ["tea"], "how": "key", "at": ""}));
    let said = outcome(&executor, &repeat, &stores, of("a"));
    assert_eq!(said["ok"]["value"], "said", "{said}");
    for (tenant, keys) in [("a", json!(["tea"])), ("b", json!([]))] {
        let seen = outcome(&executor, &stored, &json!({}), of(tenant));
        assert_eq!(seen["ok"]["value"], keys, "{tenant}");
    }
}

#[test]
fn ungranted_use_is_denied_and_observers_are_notified() {
    let engine = engine();
    let (executor, denials) = observed(denial);
    let add = json!({"action": "add", "title": "milk", "text": "two litres"});
    let loaded = load_with(&engine, bytes("notes"), Grants::default()).expect("it loads");
    let told = said(&executor, &loaded.tools()[0], &add);
    assert!(message(&told).contains("kv = [\"write notes/milk\"]"), "{told}");
    let overlay = |keys: &[&str]| {
        let mut overlay = Overlay::default();
        overlay.kv = Some(keys.iter().map(|rule| rule.parse().expect("a rule")).collect());
        overlay
    };
    let granted = notes(&engine);
    let reader =
        CallOptions { overlay: Some(overlay(&["read notes/*"]).into()), ..CallOptions::default() };
    assert!(outcome(&executor, &granted, &add, reader)["error"].is_object());
    let narrow = Tenant { overlay: Some(overlay(&[]).into()), ..Tenant::default() };
    let tenants = executor.with_tenant("a", narrow).with_anonymous(Tenant::default());
    assert!(outcome(&tenants, &granted, &add, of("a"))["error"].is_object());
    // A call without a tenant is narrowed by nothing else.
    assert!(said(&tenants, &granted, &add)["ok"].is_object());
    let request = "kv write notes/milk";
    let grant = r#"kv = ["write notes/milk"]"#;
    let expected: Vec<_> = ["component", "call", "tenant"]
        .map(|layer| json!({"layer": layer, "request": request, "grant": grant}))
        .into();
    assert_eq!(json!(*denials.lock().expect("denials")), json!(expected));
}

#[test]
fn request_reaches_only_granted_urls() {
    let (engine, granted, other) = (engine(), Server::echo(), Server::echo());
    let (executor, fetch) =
        (Executor::new(), fetch(&engine, vec![granted.rule("GET", "/open")], None));
    let page = said(&executor, &fetch, &json!({"url": granted.url("/open/a?q=1")}));
    assert_eq!(page["ok"]["value"]["status"], 200, "{page}");
    let arrived = granted.requests();
    assert!(arrived[0].starts_with("GET /open/a?q=1 HTTP/1.1\r\n"), "{arrived:?}");
    let port = granted.address.port().to_string();
    for url in rows::<&str>("capabilities/grants", "request_reaches_only_granted_urls") {
        let url = url.replace("{granted}", &granted.address.to_string());
        let url = url.replace("{other}", &other.address.to_string()).replace("{port}", &port);
        let seen = said(&executor, &fetch, &json!({"url": url}));
        assert!(seen["error"]["message"].is_string(), "{url}: {seen}");
    }
    assert_eq!((granted.requests().len(), other.requests().len()), (1, 0));
    // Another spelling of the same address is the same address.
    let respelt = format!("http://0x7f.1:{port}/open");
    assert_eq!(said(&executor, &fetch, &json!({"url": respelt}))["ok"]["value"]["status"], 200);
}

/// `wasi:http`, which the HTTP libraries of guests use, has the same rules.
#[test]
fn wasi_http_follows_the_same_rules() {
    let (engine, server, other) = (engine(), Server::echo(), Server::echo());
    let error = load(&engine, "caller", Grants::default()).expect_err("no grant");
    assert_not_granted(&error, "wasi:http/outgoing-handler");
    let mut grants = Grants::default();
    grants.http.push(server.rule("POST", "/in"));
    let caller = first_tool(&engine, "caller", grants);
    let (executor, denials) = observed(denial);
    let post = |address: SocketAddr, path: &str| {
        let arguments =
            json!({"authority": address.to_string(), "path": path, "body": "two litres"});
        said(&executor, &caller, &arguments)
    };
    let answered = post(server.address, "/in/x?q=1");
    let text = answered["ok"]["value"].as_str().unwrap_or_else(|| panic!("{answered}"));
    assert!(text.starts_with("200 POST /in/x?q=1 HTTP/1.1\r\n"), "{text}");
    for header in ["x-own: 1", "content-length: 10", &format!("host: {}", server.address)] {
        assert_eq!(text.matches(&format!("\r\n{header}\r\n")).count(), 1, "{header} in {text}");
    }
    for (address, path) in
        [(server.address, "/elsewhere"), (other.address, "/in"), (server.address, "/in/../x")]
    {
        let refused = post(address, path);
        assert!(message(&refused).contains("Denied"), "{path}: {refused}");
    }
    // A path that is not in origin form makes no request at all.
    for path in ["http://internal.example/", "//internal.example/in"] {
        assert!(post(server.address, path)["error"].is_object(), "{path}");
    }
    let denied = denials.lock().expect("denials").len();
    assert_eq!((server.requests().len(), other.requests().len(), denied), (1, 0, 3));
}

#[test]
fn private_address_needs_an_explicit_network() {
    let (engine, server) = (engine(), Server::echo());
    let rule: HttpRule = server.url("/").parse().expect("a rule");
    let fetch = fetch(&engine, vec![rule], None);
    let seen = said(&Executor::new(), &fetch, &json!({"url": server.url("/")}));
    assert!(message(&seen).contains("not on the public internet"), "{seen}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn secret_goes_only_where_bound_and_is_redacted() {
    let (engine, bound, other) = (engine(), Server::echo(), Server::echo());
    let everywhere = vec![bound.rule("GET", "/"), other.rule("GET", "/")];
    let fetch = fetch(&engine, everywhere, Some(bound.rule("GET", "/api")));
    let (executor, events) = observed(|event| Some(serde_json::to_string(&event).expect("JSON")));
    let with_token =
        |url: String| said(&executor, &fetch, &json!({"url": url, "with_token": true}));
    let page = with_token(bound.url("/api/x"));
    let arrived = bound.requests();
    let header = format!("authorization: Bearer {TOKEN}\r\n");
    assert!(arrived[0].contains(&header), "{arrived:?}");
    let text = page["ok"]["value"]["text"].as_str().expect("the echo");
    assert!(text.contains("authorization: Bearer [redacted]"), "{text}");
    for url in [bound.url("/elsewhere"), other.url("/api/x")] {
        let seen = with_token(url.clone());
        assert!(seen["error"].is_object(), "{url}: {seen}");
    }
    assert!(other.requests().iter().all(|request| !request.contains(TOKEN)));
    let events = events.lock().expect("events").concat();
    assert!(!events.is_empty() && !events.contains(TOKEN));
}

#[test]
fn request_ends_with_its_call() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
    let url = format!("http://{}/", silent.local_addr().expect("its address"));
    let rule: HttpRule = url.parse().expect("a rule");
    let loopback = "127.0.0.0/8".parse().expect("a network");
    let fetch = fetch(&engine(), vec![rule.with_private([loopback])], None);
    let limits = Limits { timeout: Duration::from_millis(200), ..Limits::default() };
    let options = CallOptions { limits, ..CallOptions::default() };
    let ended = complete(&Executor::new(), &fetch, &json!({"url": url}), options).result;
    // The request ends at the same time as the call, or a moment before: either may be seen first.
    let is_late = match &ended {
        CallResult::ToolError(error) => error.reason() == Reason::Timeout,
        CallResult::Outcome(_) => serde_json::to_string(&ended).expect("JSON").contains("time"),
        CallResult::Refusal(_) => false,
    };
    assert!(is_late, "{ended:?}");
}
