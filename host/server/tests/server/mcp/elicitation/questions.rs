//! Pending questions of a session: their limits, what they hold, and when they end.

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use toolcell_server::mcp::McpOptions;
use toolcell_server::{HttpOptions, ListenOptions};

use crate::mcp::client::{message, opening, ping};
use crate::mcp::fixture::service;
use crate::mcp::sessions::streams::until;
use crate::mcp::web::{JSON, Web, modern, serve, start_with};
use crate::setup::PATIENCE;

/// Opens a session of a client that supports forms.
async fn open(web: &Web) -> String {
    let reply = web.post(0, "", &opening(json!({"elicitation": {}}))).await;
    format!("{JSON}Mcp-Session-Id: {}\r\n", reply.header("mcp-session-id").unwrap())
}

fn call(id: u64, arguments: &Value) -> String {
    message(id, "tools/call", json!({"name": "ask", "arguments": arguments})).to_string()
}

/// Makes a call whose tool asks a question, and waits for the question.
async fn ask(web: &Web, session: &str, id: u64, arguments: &Value) -> TcpStream {
    let (mut stream, head) =
        web.begin(&web.request(0, "POST", session, &call(id, arguments))).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    until(&mut stream, |told| told.contains("elicitation/create").then_some(())).await;
    stream
}

/// Starts a server with these limits.
async fn limited(http: HttpOptions) -> Web {
    let (service, registry, _) = service();
    let listen = ListenOptions { http, ..ListenOptions::default() };
    start_with(service, &registry, McpOptions::default(), listen).await
}

#[tokio::test]
async fn one_question_too_many_is_refused() {
    let options = McpOptions { session_questions: 2, questions: 3, ..McpOptions::default() };
    let (web, _) = serve(options).await;
    let (first, second) = (open(&web).await, open(&web).await);
    // A question stays open when its connection is closed.
    for id in 1..=2 {
        drop(ask(&web, &first, id, &json!({})).await);
    }
    let refused = |reply: Value, words: &str| {
        let result = &reply["result"];
        assert_eq!(result["isError"], true, "{reply}");
        let reason = &result["_meta"]["toolcell/error"]["question"]["reason"];
        assert_eq!(reason, "too_many_questions", "{reply}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(words), "{reply}");
        // The question can be answered later.
        assert!(result["_meta"]["toolcell/question"]["state"].is_string(), "{reply}");
    };
    let third = call(3, &json!({}));
    let reply = tokio::time::timeout(PATIENCE, web.send(0, "POST", &first, &third)).await;
    refused(reply.expect("it is refused at once").message(), "the session has");
    drop(ask(&web, &second, 1, &json!({})).await);
    refused(web.send(0, "POST", &second, &call(2, &json!({}))).await.message(), "the tenant has");
    assert!(web.service.metrics_text().contains(r#"code="too_many_questions"} 1"#));
    // Questions end with their session.
    assert_eq!(web.send(0, "DELETE", &first, "").await.status, 204);
    let asked = async {
        for id in 10.. {
            let (mut stream, _) =
                web.begin(&web.request(0, "POST", &second, &call(id, &json!({})))).await;
            let told = until(&mut stream, |told| {
                let is_asked = told.contains("elicitation/create");
                (is_asked || told.contains("too_many_questions")).then_some(is_asked)
            });
            if told.await {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("a place is free");
}

#[tokio::test]
async fn closed_connection_keeps_its_requests_slot() {
    // Of four requests each tenant leaves as many free as it holds.
    let web = limited(HttpOptions { requests: 4, ..HttpOptions::default() }).await;
    let session = open(&web).await;
    for id in 1..=2 {
        drop(ask(&web, &session, id, &json!({})).await);
    }
    let ping = ping(99).to_string();
    for _ in 0..3 {
        assert_eq!(web.send(0, "POST", &session, &ping).await.status, 429);
    }
    let (headers, list) = modern(1, "tools/list", None);
    let other = web.post_with(&web.globex, &headers, &list).await;
    assert_eq!(other.status, 200, "another tenant has its own: {other:?}");
    assert_eq!(web.send(0, "DELETE", &session, "").await.status, 204);
    let ended = async { while web.send(0, "POST", &session, &ping).await.status != 404 {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("the status");
}

#[tokio::test]
async fn closed_connection_keeps_its_requests_bytes() {
    // Of 64 KiB each tenant leaves as much free as it holds.
    let web = limited(HttpOptions { bodies: 64 << 10, ..HttpOptions::default() }).await;
    let session = open(&web).await;
    let large = json!({"text": "x".repeat(20 << 10)});
    drop(ask(&web, &session, 1, &large).await);
    for id in 2..4 {
        let refused = web.send(0, "POST", &session, &call(id, &large)).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "busy"), "{refused:?}");
    }
    assert_eq!(web.send(0, "DELETE", &session, "").await.status, 204);
    let again = open(&web).await;
    let asked = async {
        loop {
            let (mut stream, head) =
                web.begin(&web.request(0, "POST", &again, &call(1, &large))).await;
            if head.starts_with("HTTP/1.1 200") {
                until(&mut stream, |told| told.contains("elicitation/create").then_some(())).await;
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("there is room");
}

#[tokio::test]
async fn idle_session_awaiting_an_answer_ends() {
    let session_idle = std::time::Duration::from_millis(50);
    let (web, _) = serve(McpOptions { session_idle, ..McpOptions::default() }).await;
    let session = open(&web).await;
    let mut stream = ask(&web, &session, 1, &json!({})).await;
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
    ended.expect("the stream ends with its session").unwrap();
    assert_eq!(web.send(0, "POST", &session, &ping(2).to_string()).await.status, 404);
}
