//! Fair shares of tenants: bytes of bodies, requests, connections.

use std::io::ErrorKind;

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::{Authenticator, HttpOptions, ListenOptions, Principal};

use crate::http::client::{JSON, Reply, ask, bearer, connect, request, send};
use crate::http::fixture::{Fixture, IN_FLIGHT, served, tools};
use crate::setup::{PATIENCE, keys, serving, start};

const ECHO: &str = r#"{"name": "echo"}"#;

/// Returns the head of a call with a chunked body.
fn chunked(key: &str) -> String {
    let head = format!("POST /v1/calls HTTP/1.1\r\nHost: localhost\r\n{JSON}{}", bearer(key));
    format!("{head}Transfer-Encoding: chunked\r\n\r\n")
}

/// Checks that the server refused the request for one second.
#[track_caller]
fn is_overloaded(reply: &Reply) {
    reply.is_refused(429, "overloaded");
    assert_eq!(reply.header("retry-after"), Some("1"));
}

/// Reads the head of an answer.
async fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await;
    read.expect("an answer").expect("a head");
    String::from_utf8_lossy(&head[9..]).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn body_takes_room_as_it_arrives_within_tenant_share() {
    let http = HttpOptions { bodies: 12 << 10, body_idle: PATIENCE, ..HttpOptions::default() };
    let fixture = Fixture::with_http(ListenOptions::default(), http).await;
    // Bodies of which no byte has arrived hold no bytes.
    let mut silent = Vec::new();
    for _ in 0..16 {
        silent.push(connect(fixture.address, chunked(&fixture.acme).as_bytes()).await);
    }
    assert_eq!(fixture.call(&fixture.acme, "", ECHO).await.status, 200);
    // Of 12 KiB one tenant gets 6: the rest of its bodies is refused, and others are served.
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    let mut held = Vec::new();
    for _ in 0..4 {
        let begun = format!("{}{chunk}", chunked(&fixture.acme));
        held.push(connect(fixture.address, begun.as_bytes()).await);
    }
    let answers = held.iter_mut().map(|stream| Box::pin(status(stream)));
    let (first, ..) = futures_util::future::select_all(answers).await;
    assert_eq!(first, "503");
    assert_eq!(fixture.call(&fixture.globex, "", ECHO).await.status, 200, "another tenant");
    let larger = format!("{ECHO}{}", " ".repeat(3 << 10));
    assert_eq!(fixture.call(&fixture.globex, "", &larger).await.status, 200, "another tenant");
}

/// What a request brings stays in memory while its calls run, whatever member it is in.
#[tokio::test(flavor = "multi_thread")]
async fn running_call_keeps_the_room_of_its_body() {
    let http = HttpOptions { bodies: 12 << 10, ..HttpOptions::default() };
    let mut fixture = Fixture::with_http(ListenOptions::default(), http).await;
    let context = json!({"metadata": "m".repeat(5 << 10)});
    let long = json!({"name": "wait", "context": context}).to_string();
    let running = fixture.begin(&fixture.acme, "x-request-id: long\r\n", &long);
    assert_eq!(fixture.waits.recv().await, Some("started"));
    let more = format!("{ECHO}{}", " ".repeat(3 << 10));
    fixture.call(&fixture.acme, "", &more).await.is_refused(503, "busy");
    assert_eq!(fixture.call(&fixture.globex, "", &more).await.status, 200, "another tenant");
    assert_eq!(fixture.cancel(&fixture.acme, "long").await.status, 202);
    assert_eq!(running.await.unwrap().unwrap().status, 200);
    assert_eq!(fixture.call(&fixture.acme, "", &more).await.status, 200, "it has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_leaves_as_many_requests_free_as_it_has() {
    let mut fixture = Fixture::start().await;
    let mut running = Vec::new();
    for id in 0..IN_FLIGHT {
        running.push(fixture.waiting(&format!("held-{id}")).await);
    }
    let full = fixture.call(&fixture.acme, "", ECHO).await;
    is_overloaded(&full);
    assert_eq!(fixture.call(&fixture.globex, "", ECHO).await.status, 200, "another tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_of_a_request_takes_a_slot() {
    let mut fixture = Fixture::start().await;
    let _running = fixture.waiting("held").await;
    let batch = async |calls: usize| {
        let calls: Vec<_> = (0..calls)
            .map(|call| json!({"id": call.to_string(), "name": "echo", "arguments": {}}))
            .collect();
        fixture.post("/v1/batch", "", &json!({"calls": calls}).to_string()).await
    };
    // With one call running, 3 more would leave 2 of 6 slots free, and 2 more leave 3.
    let full = batch(IN_FLIGHT).await;
    is_overloaded(&full);
    assert_eq!(batch(IN_FLIGHT - 1).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_is_limited_to_its_share_of_open_requests() {
    let http = HttpOptions { requests: 4, body_idle: PATIENCE, ..HttpOptions::default() };
    let fixture = Fixture::with_http(ListenOptions::default(), http).await;
    // The third is refused before its body is read.
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(connect(fixture.address, chunked(&fixture.acme).as_bytes()).await);
    }
    let answers = open.iter_mut().map(|stream| Box::pin(status(stream)));
    assert_eq!(futures_util::future::select_all(answers).await.0, "429");
    assert_eq!(fixture.call(&fixture.globex, "", ECHO).await.status, 200, "another tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connection_gives_way_to_new_one() {
    let options =
        ListenOptions { connections: 2, head_time: PATIENCE * 2, ..ListenOptions::default() };
    let mut fixture = Fixture::with(options).await;
    let running = fixture.waiting("busy").await;
    let mut idle = connect(fixture.address, b"GET /health HTT").await;
    let answer = tokio::time::timeout(PATIENCE, fixture.cancel(&fixture.acme, "busy")).await;
    assert_eq!(answer.expect("the idle connection gives way").status, 202);
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(PATIENCE, idle.read_to_end(&mut rest)).await;
    // It is reset if the server closed it with unread bytes.
    let error = closed.expect("it is closed in time").err();
    assert!(error.is_none_or(|error| error.kind() == ErrorKind::ConnectionReset), "{rest:?}");
    assert!(rest.is_empty(), "no request was made on it");
    assert_eq!(running.await.unwrap().unwrap().status, 200, "the request that ran was not touched");
}

#[tokio::test]
async fn open_server_requires_keys_once_one_exists() {
    let service = serving(&tools().0);
    let (keys, [], dir) = keys([]);
    let open = || ApiKeyStore::open(dir.path().join("keys.json")).unwrap();
    let auth = Authenticator::open_until_keys(keys);
    let address = start(service.clone(), auth, ListenOptions::default()).await;
    let asked =
        async |path: &str, headers: &str| ask(address, &format!("GET {path}"), headers, "").await;
    assert_eq!(asked("/v1/tools", "").await.status, 200);
    assert_eq!(asked("/ready", "").await.json()["authentication"], "none");
    // Another process adds a key.
    let key = open().add("acme").unwrap();
    service.replace(served(&tools().0));
    assert_eq!(asked("/v1/tools", "").await.status, 401);
    assert_eq!(asked("/v1/tools", &bearer(key.key.expose())).await.status, 200);
    assert_eq!(asked("/ready", "").await.json()["authentication"], "required");
    assert!(open().revoke(&key.id).unwrap());
    assert_eq!(asked("/v1/tools", "").await.status, 401, "it stays so");
}

#[tokio::test(flavor = "multi_thread")]
async fn detached_requests_per_principal_are_bounded() {
    let (registry, mut waits) = tools();
    let service = serving(&registry);
    let address = start(service.clone(), Authenticator::open(), ListenOptions::default()).await;
    let wait = |key: usize| {
        let headers = format!("{JSON}Idempotency-Key: k{key}\r\nx-request-id: r{key}\r\n");
        request("POST /v1/calls", &headers, r#"{"name": "wait"}"#)
    };
    for key in 0..32 {
        let _stream = connect(address, wait(key).as_bytes()).await;
        assert_eq!(waits.recv().await, Some("started"));
    }
    is_overloaded(&send(address, wait(32).as_bytes()).await.unwrap());
    assert_eq!(service.running(), 32, "the clients have gone, and their requests go on");
    // The requests can be cancelled.
    service.cancel(&Principal::local(), &"r0".parse().unwrap()).unwrap();
    assert_eq!(waits.recv().await, Some("stopped"));
}
