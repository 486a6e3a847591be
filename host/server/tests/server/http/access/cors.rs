//! Browser pages of listed origins: what they can send and read, and what other pages cannot.

use std::net::SocketAddr;

use toolcell_server::mcp::{McpOptions, routes};
use toolcell_server::{Authenticator, HttpOptions, ListenOptions, Service};
use toolcell_test_guests::rows;

use crate::http::client::{JSON, Reply, ask, bearer, request, send};
use crate::http::fixture::{served, tools};
use crate::setup::{self, keys};

const LISTED: &str = "http://localhost:3000";
const ALLOW_ORIGIN: &str = "access-control-allow-origin";
const ECHO: &str = r#"{"name": "echo"}"#;

/// Starts a server with both protocols and these origins. Returns its address and the header of a
/// key.
async fn start(origins: &[&str]) -> (SocketAddr, String, tempfile::TempDir) {
    let service = Service::builder(served(&tools().0)).build().unwrap();
    let (keys, [key], dir) = keys(["acme"]);
    let origins = origins.iter().copied().map(Into::into).collect();
    let http = HttpOptions { origins, ..HttpOptions::default() };
    let protected = routes(service.clone(), McpOptions::default());
    let options = ListenOptions { http, protected, ..ListenOptions::default() };
    let address = setup::start(service, Authenticator::api_keys(keys), options).await;
    (address, bearer(&key), dir)
}

/// Returns the items of a header that is a list.
fn words<'a>(reply: &'a Reply, name: &str) -> Vec<&'a str> {
    reply.header(name).unwrap_or_default().split(", ").collect()
}

#[track_caller]
fn is_for_the_listed_origin(reply: &Reply) {
    assert_eq!(reply.header(ALLOW_ORIGIN), Some(LISTED), "{reply:?}");
    assert_eq!(reply.header("vary"), Some("origin"), "{reply:?}");
    assert_eq!(reply.header("access-control-allow-credentials"), None, "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn preflight_of_listed_origin_needs_no_key() {
    let (address, ..) = start(&[LISTED]).await;
    for path in ["/v1/calls", "/v1/artifacts/abc", "/mcp", "/health"] {
        for wanted in [
            "",
            "Access-Control-Request-Headers: authorization, mcp-param-city, Mcp-Param-Day, cookie\r\n",
        ] {
            let headers =
                format!("Origin: {LISTED}\r\nAccess-Control-Request-Method: POST\r\n{wanted}");
            let reply = ask(address, &format!("OPTIONS {path}"), &headers, "").await;
            assert_eq!((reply.status, &*reply.body), (204, ""), "{path}: {reply:?}");
            is_for_the_listed_origin(&reply);
            let methods = words(&reply, "access-control-allow-methods");
            assert_eq!(methods, ["GET", "HEAD", "POST", "DELETE"]);
            assert_eq!(reply.header("access-control-max-age"), Some("7200"));
            let sent = words(&reply, "access-control-allow-headers");
            let always =
                "authorization content-type idempotency-key mcp-session-id range traceparent";
            for name in always.split(' ') {
                assert!(sent.contains(&name), "{name}: {sent:?}");
            }
            for name in ["mcp-param-city", "mcp-param-day"] {
                assert_eq!(sent.contains(&name), !wanted.is_empty(), "{name}: {sent:?}");
            }
            assert!(!sent.contains(&"cookie") && !sent.contains(&"*"), "{sent:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_origin_can_read_answers_and_problems() {
    let (address, key, _dir) = start(&[LISTED]).await;
    let own = format!("{key}{JSON}Origin: {LISTED}\r\n");
    let no_key = format!("{JSON}Origin: {LISTED}\r\n");
    for (line, headers, body, status) in
        rows::<(&str, &str, &str, u16)>("server/http/cors", "answers")
    {
        let headers = headers.replace("{own}", &own).replace("{no_key}", &no_key);
        let reply = ask(address, line, &headers, body).await;
        assert_eq!(reply.status, status, "{line}: {reply:?}");
        is_for_the_listed_origin(&reply);
        let read = words(&reply, "access-control-expose-headers");
        let names = "x-request-id mcp-session-id retry-after www-authenticate idempotency-replayed";
        for name in names.split(' ') {
            assert!(read.contains(&name), "{name}: {read:?}");
        }
    }
}

/// The operator's spelling on the left, the page's on the right.
#[tokio::test(flavor = "multi_thread")]
async fn origins_are_compared_after_normalization() {
    for (listed, asking, status) in rows::<(&str, &str, u16)>("server/http/cors", "listed_origins")
    {
        let (address, ..) = start(&[listed]).await;
        let headers = format!("Origin: {asking}\r\nAccess-Control-Request-Method: POST\r\n");
        let reply = ask(address, "OPTIONS /v1/calls", &headers, "").await;
        assert_eq!(reply.status, status, "{listed} {asking}: {reply:?}");
        let allowed = (status == 204).then_some(asking);
        assert_eq!(reply.header(ALLOW_ORIGIN), allowed, "{listed} {asking}");
    }
    // A page of the server itself, whose browser omits the default port in one of the two headers.
    let (address, key, _dir) = start(&[]).await;
    for (host, origin, status) in rows::<(&str, &str, u16)>("server/http/cors", "own_pages") {
        let headers = format!("{key}Origin: {origin}\r\n");
        let sent = request("GET /v1/tools", &headers, "")
            .replace("Host: localhost\r\n", &format!("Host: {host}\r\n"));
        let reply = send(address, sent.as_bytes()).await.expect("a response");
        assert_eq!(reply.status, status, "{host} {origin}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_origin_is_refused_no_origin_gets_no_cors() {
    let (address, key, _dir) = start(&[LISTED]).await;
    let key = format!("{key}{JSON}");
    let preflight = "Access-Control-Request-Method: POST\r\n";
    let own = format!("http://localhost:{}", address.port());
    let host = |line: &str, headers: &str, body: &str| {
        request(line, headers, body)
            .replace("Host: localhost\r\n", &format!("Host: localhost:{}\r\n", address.port()))
    };
    for path in ["/v1/calls", "/mcp", "/health"] {
        for other in [
            "http://localhost:3001",
            "https://localhost:3000",
            "http://localhost:3000.evil.example",
            "null",
        ] {
            for (line, more) in [("OPTIONS", preflight), ("POST", &*key)] {
                let line = format!("{line} {path}");
                let reply = ask(address, &line, &format!("Origin: {other}\r\n{more}"), "").await;
                let code = reply.code();
                assert_eq!((reply.status, &*code), (403, "origin_not_allowed"), "{line} {other}");
                assert_eq!(reply.header(ALLOW_ORIGIN), None, "{reply:?}");
            }
        }
        // Two headers count as none.
        let two = format!("Origin: {LISTED}\r\nOrigin: {LISTED}\r\n{preflight}");
        let reply = ask(address, &format!("OPTIONS {path}"), &two, "").await;
        assert_eq!((reply.status, reply.header(ALLOW_ORIGIN)), (403, None), "{reply:?}");
    }
    for origin in [String::new(), format!("Origin: {own}\r\n")] {
        let called = host("POST /v1/calls", &format!("{key}{origin}"), ECHO);
        let reply = send(address, called.as_bytes()).await.expect("a response");
        assert_eq!((reply.status, reply.header(ALLOW_ORIGIN)), (200, None), "{origin}: {reply:?}");
        assert_eq!(reply.header("vary"), Some("origin"), "an answer for another origin differs");
        let asked = host("OPTIONS /v1/calls", &format!("{origin}{preflight}"), "");
        let reply = send(address, asked.as_bytes()).await;
        assert_eq!(reply.expect("a response").status, 405, "{origin}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_origins_sends_no_cors_headers() {
    let (address, key, _dir) = start(&[]).await;
    let reply = ask(address, "POST /v1/calls", &format!("{key}{JSON}"), ECHO).await;
    let told = (reply.status, reply.header(ALLOW_ORIGIN), reply.header("vary"));
    assert_eq!(told, (200, None, None), "{reply:?}");
    let headers = format!("Origin: {LISTED}\r\nAccess-Control-Request-Method: POST\r\n");
    assert_eq!(ask(address, "OPTIONS /v1/calls", &headers, "").await.status, 403);
}
