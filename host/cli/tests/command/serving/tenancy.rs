//! Settings of `toolcell.toml` for the tenants of a server: their quotas, and the issuers of
//! accepted tokens.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;

use crate::place::Place;
use crate::serving::serve::Served;

const CONFIG: &str = "[components.hello]\npath = \"hello.wasm\"\n";
const ISSUER: &str = "[tenants.acme]\n[issuer]\nurl = \"https://login.example\"\naudience = \"https://tools.example\"\n\
                      keys = \"jwks.json\"\ntenant_claim = \"org\"\nalgorithms = [\"EdDSA\"]\n";
/// The public key of an issuer of these tests.
const KEYS: &str = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw"}]}"#;
/// A token of that issuer for this server: `{"iss": "https://login.example", "aud":
/// "https://tools.example", "sub": "ada", "org": "acme", "exp": 9999999999}`.
const TOKEN: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6ImsifQ.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJodHRwczovL3Rvb2xzLmV4YW1wbGUiLCJzdWIiOiJhZGEiLCJvcmciOiJhY21lIiwiZXhwIjo5OTk5OTk5OTk5fQ.Qf6HyLaYEpaQxrUGWYSt5GDftl5LIpqcFdGPD5HOurgPSIEQTGSkyo1M0aAx1JsJCmbze-1YGr5zD6RRWs5ZCQ";
/// That token with `"aud": "https://other.example"`.
const OTHER: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6ImsifQ.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJodHRwczovL290aGVyLmV4YW1wbGUiLCJzdWIiOiJhZGEiLCJvcmciOiJhY21lIiwiZXhwIjo5OTk5OTk5OTk5fQ.C9hTubnJyfFJXV7BJnRKt0JmrRCXsRob98hTILpuocWv4a9bZe3_Tv2ik0mCUjbiTHSCamnT5z0xgvFNZQ-RCg";

#[test]
fn config_quota_is_enforced_and_reloaded() {
    let quotas = |acme: u32| {
        format!(
            "{CONFIG}[defaults.quota]\ncalls_per_minute = 1\n[tenants.globex]\n[tenants.acme.quota]\ncalls_per_minute = {acme}\n"
        )
    };
    let place = Place::new(&quotas(2)).approved();
    let (acme, globex) = (place.key("acme"), place.key("globex"));
    let server = Served::start(&place, &[]);
    let statuses = |key: &str| [(); 3].map(|()| server.greets(Some(key)).0);
    assert_eq!((statuses(&acme), statuses(&globex)), ([200, 200, 429], [200, 429, 429]));
    let usage = server.asked("GET", "/v1/usage", Some(&acme), None).1;
    assert_eq!((&usage["calls"], &usage["calls_remaining"]), (&json!(2), &json!(0)), "{usage}");
    // Earlier use still counts, so that a higher quota does not allow a second full minute.
    place.write(&format!("{CONFIG}[tenants.acme]\n[tenants.globex]\n"));
    place.approve();
    server.wait_for_stderr("reloaded: ");
    assert_eq!((statuses(&acme), statuses(&globex)), ([200; 3], [200; 3]), "no quota");
}

#[test]
fn tokens_of_configured_issuer_are_accepted() {
    let place = Place::new(CONFIG);
    fs::write(place.path().join("jwks.json"), KEYS).expect("no error");
    place.write(&format!("{CONFIG}{ISSUER}"));
    place.approve();
    let server = Served::start(&place, &[]);
    let statuses = || [None, Some(TOKEN), Some(OTHER)].map(|token| server.greets(token).0);
    assert_eq!(statuses(), [401, 200, 401]);
    let metadata = server.asked("GET", "/.well-known/oauth-protected-resource", None, None).1;
    assert_eq!(metadata["authorization_servers"], json!(["https://login.example"]), "{metadata}");
    // Keys that cannot be used change nothing.
    place.replace("jwks.json", r#"{"keys": []}"#);
    server.wait_for_stderr("the keys of the issuer cannot be used");
    server.wait_for_stderr("reloaded: ");
    assert_eq!(statuses(), [401, 200, 401]);
    let (status, ready) = server.asked("GET", "/ready", None, None);
    // The earlier keys stay in use, and the server keeps running.
    assert_eq!((status, ready["degraded"]["issuer"].is_string()), (200, true), "{ready}");
    // Another key with an equal name.
    place.replace("jwks.json", KEYS.replace("6kps", "6kpt"));
    server.wait_for_stderr("reloaded: ");
    assert_eq!(statuses(), [401, 401, 401]);
}

/// Answers each request with the content of `page`, until the test ends. Returns the URL.
fn publish(page: Arc<Mutex<(u16, String)>>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}/keys", listener.local_addr().expect("a port"));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut head = BufReader::new(&stream).lines().map_while(Result::ok);
            while head.next().is_some_and(|line| !line.is_empty()) {}
            let (status, body) = page.lock().clone();
            let answer = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            // The client may have disconnected.
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn published_issuer_keys_are_fetched() {
    let page = Arc::new(Mutex::new((503, String::new())));
    let issuer = ISSUER.replace("jwks.json", &publish(Arc::clone(&page)));
    let place = Place::new(&format!("{CONFIG}{issuer}")).approved();
    let check = || place.typed(&["serve", "--check", "--config", "toolcell.toml"]);
    let refused = check();
    refused.tells(1, "answered with the status 503");
    let server = Served::start(&place, &[]);
    server.wait_for_stderr("the keys of the issuer cannot be used");
    assert_eq!(server.greets(Some(TOKEN)).0, 401);
    let (status, ready) = server.asked("GET", "/ready", None, None);
    assert_eq!((status, ready["problems"]["issuer"].is_string()), (503, true), "{ready}");
    *page.lock() = (200, KEYS.to_owned());
    server.wait_for_stderr("the keys of the issuer can be fetched and used again");
    assert_eq!([Some(TOKEN), Some(OTHER)].map(|token| server.greets(token).0), [200, 401]);
    assert_eq!(server.asked("GET", "/ready", None, None).0, 200);
    assert_eq!(check().status, 0);
    // A reload that does not change the issuer keeps its keys.
    place.write(&format!("{CONFIG}{issuer}[tenants.globex]\n"));
    place.approve();
    *page.lock() = (503, String::new());
    server.wait_for_stderr("reloaded: ");
    assert_eq!(server.greets(Some(TOKEN)).0, 200);
}
