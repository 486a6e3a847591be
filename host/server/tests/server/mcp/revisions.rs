//! The revisions in which a client opens a session: each lists and calls tools, over lines and over
//! HTTP.

use serde_json::{Value, json};
use toolcell_server::mcp::McpOptions;
use toolcell_test_guests::rows;

use super::client::{Client, initialize, message};
use super::fixture::service;
use super::web::serve;

const REVISIONS: [&str; 2] = ["2025-06-18", "2025-11-25"];

/// Returns the params of `initialize` for this revision.
fn opening(revision: &str) -> Value {
    let mut params = initialize(json!({}));
    params["protocolVersion"] = revision.into();
    params
}

/// Returns the requests of a session, with a pointer into each answer and its value.
fn requests() -> Vec<(&'static str, Value, &'static str, Value)> {
    rows("server/mcp/revisions", "requests")
}

#[track_caller]
fn is_opened(answer: &Value, revision: &str) {
    assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
    assert_eq!(answer["result"]["capabilities"]["tools"], json!({"listChanged": true}), "{answer}");
}

#[tokio::test]
async fn each_revision_with_sessions_is_served_over_stdio() {
    for revision in REVISIONS {
        let mut client = Client::stateless(service().0);
        is_opened(&client.ask(0, "initialize", opening(revision)).await, revision);
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        for (id, (method, params, pointer, expected)) in (1..).zip(requests()) {
            let answer = client.ask(id, method, params).await;
            assert_eq!(answer.pointer(pointer), Some(&expected), "{revision} {method}: {answer}");
        }
        client.end().await.unwrap();
    }
}

#[tokio::test]
async fn each_revision_with_sessions_is_served_over_http() {
    let (web, _) = serve(McpOptions::default()).await;
    for revision in REVISIONS {
        let opened = web.post(0, "", &message(0, "initialize", opening(revision))).await;
        is_opened(&opened.message(), revision);
        let id = opened.header("mcp-session-id").unwrap();
        let session = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {revision}\r\n");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(web.post(0, &session, &initialized).await.status, 202, "{revision}");
        for (id, (method, params, pointer, expected)) in (1..).zip(requests()) {
            let reply = web.post(0, &session, &message(id, method, params)).await;
            let told = reply.message();
            assert_eq!(told.pointer(pointer), Some(&expected), "{revision} {method}: {reply:?}");
        }
    }
}
