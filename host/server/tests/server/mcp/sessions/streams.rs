//! Streams and sessions over HTTP: their limits, their owners, and when they end.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use toolcell_server::mcp::McpOptions;

use crate::mcp::client::{call, cancel, opening, ping};
use crate::mcp::fixture::{abrupt, slow_tool};
use crate::mcp::input::bad_input::is_as_the_page_says;
use crate::mcp::web::{JSON, modern, request, serve, start};
use crate::setup::{PATIENCE, registry, serving};

/// Returns the request that opens a stream of changes without a session.
pub(crate) fn listen() -> (String, String) {
    let (headers, mut message) = modern(1, "subscriptions/listen", None);
    message["params"]["notifications"] = json!({"toolsListChanged": true});
    (format!("{JSON}{headers}"), message.to_string())
}

#[tokio::test]
async fn open_streams_per_tenant_are_bounded() {
    let (web, _) = serve(McpOptions { streams: 2, ..McpOptions::default() }).await;
    let session = web.open().await;
    let (headers, body) = listen();
    let (stream, head) = web.begin(&web.request(0, "GET", &session, "")).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (_other, head) = web.begin(&web.request(1, "POST", &headers, &body)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    for (method, headers, body) in [("POST", &*headers, &*body), ("GET", &*session, "")] {
        // A stream that is accepted has no end to read to.
        let head = web.begin(&web.request(0, method, headers, body)).await.1;
        assert!(head.starts_with("HTTP/1.1 429"), "{head}");
        let full = web.send(0, method, headers, body).await;
        let case = "more open streams than a tenant may have: `GET`, `subscriptions/listen`";
        is_as_the_page_says(case, &full);
        assert_eq!(full.header("retry-after"), Some("60"), "{full:?}");
    }
    // Another tenant has a limit of its own, and a closed stream frees its slot.
    let mut other = web.connect(request(&web.globex, "POST", &headers, &body).as_bytes()).await;
    let mut status = [0; 12];
    other.read_exact(&mut status).await.unwrap();
    assert_eq!(&status[9..], b"200");
    drop(stream);
    let opened = async {
        let again = web.request(0, "POST", &headers, &body);
        while !web.begin(&again).await.1.starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, opened).await.expect("its place is free");
}

#[tokio::test]
async fn key_revocation_ends_its_streams_and_sessions() {
    let (web, _) = serve(McpOptions { sessions: 1, ..McpOptions::default() }).await;
    let session = web.open().await;
    let (headers, body) = listen();
    let (get, _) = web.begin(&web.request(0, "GET", &session, "")).await;
    let (post, _) = web.begin(&web.request(0, "POST", &headers, &body)).await;
    let message = opening(json!({}));
    assert_eq!(web.post(1, "", &message).await.status, 429, "the tenant's only session is open");
    assert!(web.store.revoke(&web.ids[0]).unwrap());
    for mut stream in [get, post] {
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
        ended.expect("the stream ends").unwrap();
    }
    let opened = async { while web.post(1, "", &message).await.status != 200 {} };
    tokio::time::timeout(PATIENCE, opened).await.expect("the session of the revoked key has ended");
}

#[tokio::test]
async fn key_of_unserved_tenant_opens_no_session() {
    let (web, _) = serve(McpOptions::default()).await;
    let reply = web.post_with(&web.gone, "", &opening(json!({}))).await;
    is_as_the_page_says("a key of a tenant that is not served", &reply);
}

#[tokio::test]
async fn call_over_quota_gets_retry_after_before_it_runs() {
    let (web, _) = serve(McpOptions::default()).await;
    let (headers, call) = modern(1, "tools/call", Some("text"));
    let first = web.post_with(&web.globex, &headers, &call).await;
    assert_eq!(first.status, 200, "{first:?}");
    for (headers, call) in [(headers, call), modern(1, "tools/call", Some("nothing"))] {
        let refused = web.post_with(&web.globex, &headers, &call).await;
        is_as_the_page_says("a call without quota", &refused);
    }
    let counted = web.service.metrics_text();
    let line = r#"toolcell_refused_requests_total{tenant="globex",code="quota_exceeded"} 2"#;
    assert!(counted.contains(line), "{counted}");
    let (headers, list) = modern(2, "tools/list", None);
    assert_eq!(web.post_with(&web.globex, &headers, &list).await.status, 200);
}

#[tokio::test]
async fn draining_server_refuses_new_calls() {
    let (web, _) = serve(McpOptions::default()).await;
    web.service.drain(Duration::ZERO).await;
    let (headers, call) = modern(3, "tools/call", Some("text"));
    let refused = web.post(0, &headers, &call).await;
    let code = refused.message()["error"]["code"].take();
    assert_eq!((refused.status, code), (503, json!(-32603)), "{refused:?}");
}

#[tokio::test]
async fn idle_session_ends() {
    let session_idle = Duration::from_millis(50);
    let (web, _) = serve(McpOptions { sessions: 1, session_idle, ..McpOptions::default() }).await;
    let session = web.open().await;
    let message = opening(json!({}));
    // Its slot is freed, and the session is not found any more.
    let opened = async { while web.post(1, "", &message).await.status != 200 {} };
    tokio::time::timeout(PATIENCE, opened).await.expect("the idle session has ended");
    assert_eq!(web.post(0, &session, &ping(1)).await.status, 404);
}

#[tokio::test]
async fn calls_of_a_session_end_with_it() {
    let (web, mut waits) = serve(abrupt()).await;
    let call = call(7, "wait");
    for is_revoked in [false, true] {
        let session = web.open().await;
        let (running, _) = web.begin_post(&session, &call).await;
        assert_eq!(waits.recv().await, Some("started"));
        if is_revoked {
            assert!(web.store.revoke(&web.ids[0]).unwrap());
        } else {
            assert_eq!(web.send(0, "DELETE", &session, "").await.status, 204);
        }
        let stopped = tokio::time::timeout(PATIENCE, waits.recv()).await;
        assert_eq!(stopped.expect("the tool ends"), Some("stopped"));
        drop(running);
    }
}

#[tokio::test]
async fn running_request_id_is_unique_in_its_session() {
    let (web, mut waits) = serve(abrupt()).await;
    let session = web.open().await;
    let (running, _) = web.begin_post(&session, &call(7, "wait")).await;
    assert_eq!(waits.recv().await, Some("started"));
    let again = web.post(0, &session, &ping(7)).await;
    is_as_the_page_says("an id that a running request of the session has", &again);
    for _ in 0..2 {
        assert_eq!(web.post(0, &session, &cancel(7)).await.status, 202);
    }
    assert_eq!(waits.recv().await, Some("stopped"));
    drop(running);
}

/// In a session a call continues without its connection, and a stream that names its last event
/// resumes it. An answered call is not kept. Without a session nothing is kept.
#[tokio::test]
async fn running_calls_stream_is_resumed_by_last_event_id() {
    let (slow, go, mut started) = slow_tool();
    let registry = registry([slow]);
    let web = start(serving(&registry), &registry, McpOptions::default()).await;
    let session = web.open().await;
    let call = call(7, "slow");
    let (mut stream, _) = web.begin_post(&session, &call).await;
    assert_eq!(started.recv().await, Some(()));
    let last =
        until(&mut stream, |told| Some(told.split_once("id: ")?.1.split_once('\n')?.0.to_owned()))
            .await;
    drop(stream);
    let take_up = format!("{session}Last-Event-ID: {last}\r\n");
    let (mut again, head) = web.begin(&web.request(0, "GET", &take_up, "")).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    go.notify_one();
    until(&mut again, |told| told.contains(r#""text":"late""#).then_some(())).await;
    drop(again);
    // An answered call, and an unknown one: the client is told not to connect again.
    for headers in [take_up, format!("{session}Last-Event-ID: 0/99\r\n")] {
        assert_eq!(web.send(0, "GET", &headers, "").await.status, 204);
    }
    // An id without a stream's number is one of the session's common stream.
    let headers = format!("{session}Last-Event-ID: 5\r\n");
    let (mut common, _) = web.begin(&web.request(0, "GET", &headers, "")).await;
    until(&mut common, |told| told.contains("id: 5\n").then_some(())).await;
    // Without a session the header has no effect: the call is made again.
    let (headers, call) = modern(1, "tools/call", Some("slow"));
    go.notify_one();
    let reply = web.post(0, &format!("{headers}Last-Event-ID: {last}\r\n"), &call).await;
    assert_eq!((reply.status, started.recv().await), (200, Some(())), "{reply:?}");
    assert_eq!(web.service.running(), 0);
}

/// Reads until `look` returns a value.
pub(crate) async fn until<T>(stream: &mut TcpStream, look: impl Fn(&str) -> Option<T>) -> T {
    let mut told = Vec::new();
    let reading = async {
        loop {
            told.push(stream.read_u8().await.unwrap());
            if told.ends_with(b"\n")
                && let Some(seen) = look(&String::from_utf8_lossy(&told))
            {
                return seen;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("it comes")
}
