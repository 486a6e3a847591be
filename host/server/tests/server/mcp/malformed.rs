//! A corpus of malformed messages: invalid JSON, JSON with undefined meaning, and JSON that is not
//! a message, in each position of a message. Each gets an error, over lines and over HTTP, and the
//! server answers the next request.
//!
//! The texts follow JSONTestSuite (`n_` and `i_`). Source: docs/threat-model.md, row 73.

use serde_json::json;
use toolcell_server::mcp::McpOptions;

use super::client::Client;
use super::fixture::service;
use super::web::{JSON, start};

/// The least number of messages.
const LEAST: usize = 500;

/// Invalid JSON, as `n_` of JSONTestSuite.
const NO_JSON: [&[u8]; 54] = [
    b"[1 true]",
    b"[\"\": 1]",
    b"[1,,2]",
    b"[1,]",
    b"[,1]",
    b"[1",
    b"[\"a",
    b"[*]",
    b"{]",
    b"[1}",
    b"[nul]",
    b"[tru]",
    b"nan",
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"-",
    b"+1",
    b"01",
    b"-01",
    b"1.",
    b".5",
    b"1e",
    b"1e+",
    b"0x1",
    b"1_000",
    b"2.e3",
    b"[1]x",
    b"1 000",
    b"'a'",
    b"\"a",
    b"\"\\x\"",
    b"\"\\u12\"",
    b"\"\\u00g0\"",
    b"\"\t\"",
    b"\"\\\"",
    b"\"\x00\"",
    b"\"\x1f\"",
    b"{a: 1}",
    b"{'a': 1}",
    b"{\"a\" 1}",
    b"{\"a\": }",
    b"{\"a\": 1,}",
    b"{\"a\": 1 \"b\": 2}",
    b"{1: 1}",
    b"{\"a\": 1, \"a\": 2}",
    b"{\"a\": {\"b\": 1, \"b\": 1}}",
    b"/**/1",
    b"//\r1",
    b"1;",
    b"<1>",
    b"\xff",
    b"\"\xe9\"",
    b"\xef\xbb\xbf1",
];
/// JSON whose meaning is undefined, as `i_` of JSONTestSuite: it is not allowed in a message, or is
/// ambiguous.
const OPEN: [&[u8]; 6] = [
    b"\"\\ud800\"",
    b"\"\\udc00\\ud800\"",
    b"\"\xed\xa0\x80\"",
    b"\"\xc0\xaf\"",
    b"\"\xf4\x90\x80\x80\"",
    b"1e999999",
];
/// JSON that is not a message.
const NO_MESSAGE: [&str; 26] = [
    "null",
    "true",
    "1",
    "\"ping\"",
    "{}",
    "[]",
    "[[]]",
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    r#"{"id":1,"method":"ping"}"#,
    r#"{"jsonrpc":2,"id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1}"#,
    r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1e3,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":["ping"]}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"a"}"#,
    r#"{"jsonrpc":"2.0","method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
];
/// The text before and after an invalid value.
const PLACES: [(&str, &str); 8] = [
    ("", ""),
    ("[", "]"),
    (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"#, "}}"),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":"#,
        "}}}",
    ),
    (r#"{"jsonrpc":"2.0","id":"#, r#","method":"ping"}"#),
    (r#"{"jsonrpc":"2.0","id":1,"method":"#, "}"),
    (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"#, "}"),
    (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#, "}}"),
];

/// Returns all malformed messages, none of which contains a line end.
fn corpus() -> Vec<Vec<u8>> {
    let texts = NO_JSON.into_iter().chain(OPEN);
    let placed = texts.flat_map(|text| {
        PLACES.map(|(before, after)| [before.as_bytes(), text, after.as_bytes()].concat())
    });
    let utf16 =
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.encode_utf16().flat_map(u16::to_le_bytes);
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let all = placed.chain(NO_MESSAGE.map(|text| text.as_bytes().to_vec()));
    let all: Vec<_> = all.chain([utf16.collect(), deep.into_bytes()]).collect();
    assert!(all.len() >= LEAST && all.iter().all(|text| !text.contains(&b'\n')), "{}", all.len());
    all
}

#[tokio::test]
async fn each_malformed_line_is_answered_by_an_error() {
    let (service, ..) = service();
    let mut client = Client::start(service.clone(), McpOptions::default());
    client.initialize(json!({})).await;
    for text in corpus() {
        let shown = String::from_utf8_lossy(&text).into_owned();
        client.send_text(&text).await;
        let told = client.receive().await;
        assert!(
            [-32700, -32600, -32602].map(|code| json!(code)).contains(&told["error"]["code"]),
            "{shown}: {told}"
        );
    }
    client.ask(7, "ping", json!({})).await;
    client.end().await.unwrap();
    assert_eq!(service.running(), 0);
}

#[tokio::test]
async fn each_malformed_body_is_answered_by_status_400() {
    let (service, registry, _) = service();
    let web = start(service, &registry, McpOptions::default()).await;
    let session = web.open().await;
    for text in corpus() {
        let shown = String::from_utf8_lossy(&text).into_owned();
        let length = format!("Content-Length: {}", text.len());
        let head = web
            .request(0, "POST", &format!("{JSON}{session}"), "")
            .replace("Content-Length: 0", &length);
        let reply = web.send_bytes(&[head.as_bytes(), &text].concat()).await;
        let code = reply.message()["error"]["code"].clone();
        assert_eq!(reply.status, 400, "{shown}: {reply:?}");
        assert!(
            [-32700, -32600, -32602].map(|code| json!(code)).contains(&code),
            "{shown}: {reply:?}"
        );
    }
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(web.post(0, &session, &ping).await.status, 200);
}
