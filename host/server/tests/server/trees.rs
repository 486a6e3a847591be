//! Data that a client sends beside the arguments of a call are not parsed into a tree, however
//! nested: measured in bytes of memory.
#![expect(
    unsafe_code,
    reason = "an allocator that counts is one, and hands everything on as it came"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use toolcell_server::http::router;
use toolcell_server::mcp::{McpOptions, routes};
use toolcell_server::{Authenticator, HttpOptions};
use toolcell_test_guests::own_process;
use tower::ServiceExt as _;

use crate::mcp::client::opening;
use crate::setup::{native, registry, serving};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every method forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's contract is passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is passed on unchanged.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Objects in the text. The tree of all of them takes some 30 MB.
const OBJECTS: usize = 49_000;
/// Bytes. More than some copies of the text take, and far less than the tree.
const MOST_BYTES: usize = 8 << 20;

async fn answer(
    app: &axum::Router,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> (StatusCode, String) {
    let mut request =
        Request::post(path).header("Host", "localhost").header("Content-Type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let (status, session) = (answer.status(), answer.headers().get("mcp-session-id").cloned());
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let session = session.map(|session| session.to_str().unwrap().to_owned());
    (status, session.unwrap_or_else(|| String::from_utf8_lossy(&text).into_owned()))
}

#[tokio::test]
async fn non_argument_members_are_not_parsed_into_trees() {
    // Every allocation of the process counts.
    let test = "non_argument_members_are_not_parsed_into_trees";
    if !own_process::enter(module_path!(), test) {
        return;
    }
    let service = serving(&registry([native("text", async |_: Value| json!("plain"))]));
    let mcp = routes(service.clone(), McpOptions::default());
    let app = router(service, Authenticator::open(), HttpOptions::default(), mcp);
    let both = ("Accept", "application/json, text/event-stream");
    let (_, session) = answer(&app, "/mcp", &[both], opening(json!({})).to_string()).await;
    let modern = [
        both,
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "text"),
    ];
    let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    let large = format!("[{}0]", r#"{"":0},"#.repeat(OBJECTS));
    let other = format!(r#""other":{large}"#);
    let call = |meta: &str, more: &str| {
        let params = format!(r#"{{"name":"text","_meta":{{{meta}}}{more}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    };
    let in_session = [both, ("Mcp-Session-Id", &*session)];
    for (path, headers, body) in [
        ("/mcp", &modern[..], call(&format!("{meta},{other}"), "")),
        ("/mcp", &modern[..], call(meta, &format!(",{other}"))),
        ("/mcp", &in_session[..], call(&other, "")),
        ("/v1/calls", &[][..], format!(r#"{{"name":"text","context":{{"metadata":{large}}}}}"#)),
        ("/v1/steps", &[][..], format!(r#"{{"calls":[{{"id":"a","name":"text",{other}}}]}}"#)),
    ] {
        let begin = body.chars().take(160).collect::<String>();
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let (status, told) = answer(&app, path, headers, body).await;
        let most = MOST.load(Ordering::Relaxed) - before;
        assert!(status == StatusCode::OK && told.contains("plain"), "{begin}: {status} {told}");
        assert!(most < MOST_BYTES, "{begin}: {most} bytes");
    }
}
