//! Streams and sessions over HTTP: how many there are, whose they are, and when they end.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolcell_server::mcp::McpOptions;

use crate::client::initialize;
use crate::fixture::service;
use crate::web::{JSON, PATIENCE, modern, request, start};

/// Opens a stream of changes without a session.
fn listen() -> (String, String) {
    let (headers, mut message) = modern(1, "subscriptions/listen", None);
    message["params"]["notifications"] = json!({"toolsListChanged": true});
    (format!("{JSON}{headers}"), message.to_string())
}

#[tokio::test]
async fn a_tenant_has_a_bounded_number_of_open_streams() {
    let (service, registry, _) = service();
    let web = start(service, &registry, McpOptions::default().with_streams(2)).await;
    let session = web.open().await;
    let (headers, body) = listen();
    let (stream, head) = web.begin(0, "GET", &session, "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (_other, head) = web.begin(1, "POST", &headers, &body).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    for (method, headers, body) in [("POST", &*headers, &*body), ("GET", &*session, "")] {
        let (mut stream, head) = web.begin(0, method, headers, body).await;
        assert!(head.starts_with("HTTP/1.1 429") && head.contains("retry-after: 60\r\n"), "{head}");
        let mut told = String::new();
        stream.read_to_string(&mut told).await.unwrap();
        assert!(told.contains(r#""code":"too_many_streams""#), "{told}");
    }
    // Another tenant has its own, and a stream that was closed leaves its place.
    let other = TcpStream::connect(web.address).await.unwrap();
    let (mut reading, mut writing) = tokio::io::split(other);
    writing.write_all(request(&web.globex, "POST", &headers, &body).as_bytes()).await.unwrap();
    let mut status = [0; 12];
    reading.read_exact(&mut status).await.unwrap();
    assert_eq!(&status[9..], b"200");
    drop(stream);
    let opened = async {
        while !web.begin(0, "POST", &headers, &body).await.1.starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, opened).await.expect("its place is free");
}

#[tokio::test]
async fn what_a_revoked_key_opened_ends() {
    let (service, registry, _) = service();
    let web = start(service, &registry, McpOptions::default().with_sessions(1)).await;
    let session = web.open().await;
    let (headers, body) = listen();
    let (get, _) = web.begin(0, "GET", &session, "").await;
    let (post, _) = web.begin(0, "POST", &headers, &body).await;
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize(json!({}))});
    assert_eq!(web.post(1, "", &message).await.status, 429, "the tenant's only session is open");
    assert!(web.store.revoke(&web.ids[0]).unwrap());
    for mut stream in [get, post] {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        ended.expect("the stream ends").unwrap();
    }
    let opened = async { while web.post(1, "", &message).await.status != 200 {} };
    tokio::time::timeout(PATIENCE, opened).await.expect("the session of the revoked key has ended");
}

#[tokio::test]
async fn a_key_of_a_tenant_that_is_not_served_opens_no_session() {
    let (service, registry, _) = service();
    let web = start(service, &registry, McpOptions::default()).await;
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize(json!({}))});
    let reply = web.send_with(&web.gone, "POST", JSON, &message.to_string()).await;
    assert_eq!((reply.status, &reply.message()["code"]), (403, &json!("forbidden")), "{reply:?}");
}

#[tokio::test]
async fn a_tenant_without_quota_is_told_when_to_try_again_before_its_call() {
    let (service, registry, _) = service();
    let web = start(service.clone(), &registry, McpOptions::default()).await;
    let (headers, call) = modern(1, "tools/call", Some("text"));
    let headers = format!("{JSON}{headers}");
    let first = web.send_with(&web.globex, "POST", &headers, &call.to_string()).await;
    assert_eq!(first.status, 200, "{first:?}");
    let (unknown, unknown_call) = modern(1, "tools/call", Some("nothing"));
    for (headers, call) in [(headers, call), (format!("{JSON}{unknown}"), unknown_call)] {
        let refused = web.send_with(&web.globex, "POST", &headers, &call.to_string()).await;
        assert_eq!(
            (refused.status, &refused.message()["error"]["data"]["code"]),
            (429, &json!("quota")),
            "{refused:?}"
        );
        assert!(refused.header("retry-after").is_some());
    }
    let counted = service.metrics_text();
    assert!(counted.contains(r#"toolcell_refused_total{tenant="globex",code="quota"} 2"#), "{counted}");
    let (headers, list) = modern(2, "tools/list", None);
    assert_eq!(web.send_with(&web.globex, "POST", &format!("{JSON}{headers}"), &list.to_string()).await.status, 200);
}

#[tokio::test]
async fn a_session_that_is_idle_ends() {
    let (service, registry, _) = service();
    let options = McpOptions::default().with_sessions(1).with_session_idle(Duration::from_millis(50));
    let web = start(service, &registry, options).await;
    let session = web.open().await;
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize(json!({}))});
    // It gives its room back, and is not found any more.
    let opened = async { while web.post(1, "", &message).await.status != 200 {} };
    tokio::time::timeout(PATIENCE, opened).await.expect("the idle session has ended");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(web.post(0, &session, &ping).await.status, 404);
}

#[tokio::test]
async fn a_session_has_one_running_request_of_an_id() {
    let (service, registry, mut waits) = service();
    let web = start(service, &registry, McpOptions::default().with_stop_grace(Duration::ZERO)).await;
    let session = format!("{JSON}{}", web.open().await);
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait"}});
    let (running, _) = web.begin(0, "POST", &session, &call.to_string()).await;
    assert_eq!(waits.recv().await, Some("started"));
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}).to_string();
    let again = web.send(0, "POST", &session, &ping).await;
    assert_eq!((again.status, &again.message()["error"]["code"]), (400, &json!(-32600)), "{again:?}");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    for _ in 0..2 {
        assert_eq!(web.send(0, "POST", &session, &cancel.to_string()).await.status, 202);
    }
    assert_eq!(waits.recv().await, Some("stopped"));
    drop(running);
}
