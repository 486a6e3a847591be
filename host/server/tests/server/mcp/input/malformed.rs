//! A corpus of malformed messages: invalid JSON, JSON with undefined meaning, and JSON that is not
//! a message, in each position of a message. Each gets an error, over lines and over HTTP, and the
//! server answers the next request.
//!
//! The texts follow JSONTestSuite (`n_` and `i_`). Source: docs/threat-model.md, row 73.

use serde_json::json;
use toolcell_server::mcp::McpOptions;
use toolcell_test_guests::rows;

use crate::mcp::client::{Client, ping};
use crate::mcp::fixture::service;
use crate::mcp::web::{JSON, serve};

/// The least number of messages.
const LEAST: usize = 500;

/// The codes of errors about a message.
const CODES: [Option<i64>; 3] = [Some(-32700), Some(-32600), Some(-32602)];

/// No UTF-8, or JSON whose meaning is undefined, as `i_` of JSONTestSuite: it is not allowed in a
/// message, or is ambiguous.
const OPEN: [&[u8]; 8] = [
    b"\xff",
    b"\"\xe9\"",
    b"\"\\ud800\"",
    b"\"\\udc00\\ud800\"",
    b"\"\xed\xa0\x80\"",
    b"\"\xc0\xaf\"",
    b"\"\xf4\x90\x80\x80\"",
    b"1e999999",
];

/// Returns all malformed messages, none of which contains a line end.
fn corpus() -> Vec<Vec<u8>> {
    let table = |name| rows::<&str>("server/mcp/malformed", name).into_iter().map(str::as_bytes);
    let places = rows::<(&str, &str)>("server/mcp/malformed", "places");
    let texts: Vec<_> = table("no_json").chain(OPEN).collect();
    let placed = places.iter().flat_map(|(before, after)| {
        texts.iter().map(|text| [before.as_bytes(), text, after.as_bytes()].concat())
    });
    let utf16 =
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.encode_utf16().flat_map(u16::to_le_bytes);
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let all = placed.chain(table("no_message").map(<[u8]>::to_vec));
    let all: Vec<_> = all.chain([utf16.collect(), deep.into_bytes()]).collect();
    assert!(all.len() >= LEAST && all.iter().all(|text| !text.contains(&b'\n')), "{}", all.len());
    all
}

#[tokio::test]
async fn each_malformed_line_is_answered_by_an_error() {
    let (service, ..) = service();
    let mut client = Client::open(service.clone(), json!({})).await;
    for text in corpus() {
        let shown = String::from_utf8_lossy(&text).into_owned();
        client.send_text(&text).await;
        let told = client.receive().await;
        assert!(CODES.contains(&told["error"]["code"].as_i64()), "{shown}: {told}");
    }
    client.ask(7, "ping", json!({})).await;
    client.end().await.unwrap();
    assert_eq!(service.running(), 0);
}

#[tokio::test]
async fn each_malformed_body_is_answered_by_status_400() {
    let (web, _) = serve(McpOptions::default()).await;
    let session = web.open().await;
    for text in corpus() {
        let shown = String::from_utf8_lossy(&text).into_owned();
        let length = format!("Content-Length: {}", text.len());
        let head = web
            .request(0, "POST", &format!("{JSON}{session}"), "")
            .replace("Content-Length: 0", &length);
        let reply = web.send_bytes(&[head.as_bytes(), &text].concat()).await;
        assert_eq!(reply.status, 400, "{shown}: {reply:?}");
        assert!(CODES.contains(&reply.message()["error"]["code"].as_i64()), "{shown}: {reply:?}");
    }
    assert_eq!(web.post(0, &session, &ping(1)).await.status, 200);
}
