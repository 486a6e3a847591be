//! Shutdown of a server: running requests have time to end, and are cancelled after it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use toolcell::ToolCall;
use toolcell_server::{
    Authenticator, CallRequest, HttpServer, ListenOptions, Principal, RequestError,
};

use super::client::{JSON, Reply, connect, request};
use super::fixture::Fixture;
use super::page::is_as_the_page_says;
use crate::setup::{PATIENCE, native, registry, serving};

const BODY: &str = r#"{"name": "echo", "arguments": {}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn drain_timeout_cancels_and_answers_running_calls() {
    let drain_timeout = Duration::from_millis(50);
    let mut fixture =
        Fixture::with(ListenOptions { drain_timeout, ..ListenOptions::default() }).await;
    let running = fixture.waiting("long").await;
    fixture.shut_down();
    let answer = running.await.unwrap().unwrap();
    let status = &answer.json()["outcome"]["tool_error"]["cause"]["status"];
    assert_eq!(status, "cancelled", "{answer:?}");
    fixture.wait().await;
}

/// A load balancer that checks `/ready` redirects new requests. Requests that it has sent already
/// are answered.
#[tokio::test(flavor = "multi_thread")]
async fn readiness_fails_before_requests_are_refused() {
    let with = |shutdown_delay| {
        Fixture::with(ListenOptions { shutdown_delay, ..ListenOptions::default() })
    };
    let mut fixture = with(Duration::from_secs(3600)).await;
    fixture.shut_down();
    while fixture.ask("", "GET /ready", "", "").await.status != 503 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.call(&fixture.acme, "", BODY).await.status, 200);
    let mut fixture = with(Duration::from_millis(10)).await;
    fixture.shut_down();
    fixture.wait().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_drains_requests_and_accepts_no_new_ones() {
    let mut fixture = Fixture::start().await;
    let running = fixture.waiting("long").await;
    let (service, address) = (fixture.service.clone(), fixture.address);
    let head = format!(
        "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        fixture.headers(),
        BODY.len()
    );
    let mut late = connect(address, head.as_bytes()).await;
    // The server answers that it waits for the body.
    let mut line = [0; 25];
    late.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 100 Continue\r\n\r\n");
    fixture.shut_down();
    // The shutdown has begun when no connection is accepted.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    while service.readiness().ready {
        tokio::task::yield_now().await;
    }
    // The request began before the shutdown; only its body arrives now.
    late.write_all(BODY.as_bytes()).await.unwrap();
    let mut answer = String::new();
    late.read_to_string(&mut answer).await.unwrap();
    is_as_the_page_says("a call while the server shuts down", Reply::read(&answer).as_ref());
    let request = CallRequest::new(ToolCall::new("a", "echo", "{}"));
    let refused = service.call(&Principal::new(Some("acme"), "key:other"), request).await;
    assert!(matches!(refused, Err(RequestError::Draining)), "{refused:?}");
    assert_eq!(service.running(), 1, "the request that ran goes on");
    let id = "long".parse().unwrap();
    let key = fixture.keys.list().unwrap().into_iter().find(|key| key.tenant == "acme").unwrap();
    service.cancel(&Principal::new(Some("acme"), &format!("key:{}", key.id)), &id).unwrap();
    let answer = running.await.unwrap().unwrap();
    assert_eq!((answer.status, &answer.json()["tool"]), (200, &json!("wait")));
    fixture.wait().await;
}

/// The run of a stream that its client does not read never ends by itself.
#[tokio::test(flavor = "multi_thread")]
async fn unread_stream_does_not_delay_shutdown() {
    let long = native("long", async |_: Value| Value::from("x".repeat(512 << 10)));
    let options = ListenOptions {
        write_time: Duration::from_secs(3600),
        drain_timeout: Duration::from_millis(50),
        ..ListenOptions::default()
    };
    let service = serving(&registry([long]));
    let server = HttpServer::bind(service, Authenticator::open(), options).await.unwrap();
    let address = server.address();
    let (shutdown, ended) = oneshot::channel();
    let server = tokio::spawn(server.serve(async {
        let _ = ended.await;
    }));
    // More than both ends of the connection hold.
    let calls = vec![json!({"name": "long", "arguments": {}}); 64];
    let body = json!({ "calls": calls }).to_string();
    let mut stream = connect(address, request("POST /v1/runs", JSON, &body).as_bytes()).await;
    stream.read_exact(&mut [0; 12]).await.unwrap();
    shutdown.send(()).unwrap();
    tokio::time::timeout(2 * PATIENCE, server).await.expect("it ends").unwrap();
}
