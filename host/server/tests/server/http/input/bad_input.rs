//! Bad requests: each row of the table in `docs/http.md` has the status and the code that the page
//! gives.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use toolcell::Sealer;
use toolcell_server::ListenOptions;
use toolcell_test_guests::rows as cases;

use crate::http::client::{JSON, Reply, bearer, connect, request, send, send_last};
use crate::http::fixture::{BODY, Fixture, IN_FLIGHT};
use crate::http::page::{ELSEWHERE, is_as_the_page_says, rows, status_and_code};
use crate::setup::PATIENCE;

/// Returns the requests that need no state of the server, by their row.
fn requests(fixture: &Fixture) -> Vec<(&'static str, String)> {
    let key = bearer(&fixture.acme);
    let get = |headers: &str| request("GET /v1/tools", headers, "");
    let post =
        |path: &str, body: &str| request(&format!("POST {path}"), &format!("{key}{JSON}"), body);
    let call = |body: &str| post("/v1/calls", body);
    let deep =
        format!(r#"{{"name": "echo", "arguments": {}1{}}}"#, "[".repeat(200), "]".repeat(200));
    let long = format!(r#"{{"name": "echo", "arguments": {{"n": "{}"}}}}"#, "x".repeat(BODY));
    let of = |key: &str| get(&bearer(key));
    let five = format!(
        r#"{{"calls": [{}]}}"#,
        [r#"{"id": "a", "name": "echo", "arguments": {}}"#; 5].join(",")
    );
    let filled = |text: &str| text.replace("{key}", &key).replace("{json}", JSON);
    let listed = cases::<(_, &str, &str, &str)>("server/http/bad_input", "requests").into_iter();
    let listed =
        listed.map(|(case, line, headers, body)| (case, request(line, &filled(headers), body)));
    let whole = cases::<(_, &str)>("server/http/bad_input", "whole_requests").into_iter();
    let whole = whole.map(|(case, text)| (case, filled(text)));
    let long_head = "a head that is too long, or with more than 100 lines";
    let unserved = "a key of a tenant that is not served";
    let (long_body, many) = ("a body that is too long", "more calls than a request can have");
    let chunked = format!("{key}{JSON}Transfer-Encoding: chunked\r\n");
    let chunks = format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    let others = [
        (long_head, get(&format!("{key}x-long: {}\r\n", "x".repeat(64 << 10)))),
        (long_head, request(&format!("GET /{}", "x".repeat(70_000)), &key, "")),
        (long_head, get(&format!("{key}{}", "a: b\r\n".repeat(200)))),
        ("a revoked key", of(&fixture.revoked)),
        (unserved, of(&fixture.gone)),
        (unserved, request("GET /v1/artifacts", &bearer(&fixture.gone), "")),
        (long_body, call(&long)),
        (long_body, request("POST /v1/calls", &chunked, "") + &chunks),
        ("a body that is not valid JSON", call(&deep)),
        (many, post("/v1/batch", &five)),
        (many, post("/v1/steps", &five)),
    ];
    listed.chain(whole).chain(others).collect()
}

/// Returns the replies to bodies whose client closes its side of the connection too early.
async fn cut_off(fixture: &Fixture) -> Vec<(&'static str, Reply)> {
    let whole = request("POST /v1/calls", &fixture.headers(), r#"{"name": "echo"}"#);
    let chunked = whole.replace("Content-Length: 16", "Transfer-Encoding: chunked");
    let mut replies = Vec::new();
    for bytes in [whole.replace(": 16", ": 17"), chunked.replace("\r\n\r\n", "\r\n\r\n10\r\n")] {
        let reply = send_last(fixture.address, bytes.as_bytes()).await.expect("an answer");
        replies.push(("a body that ends before its `Content-Length` or its last chunk", reply));
    }
    replies
}

/// Returns the replies for the rows that need a state of the server. Each state is set up here.
async fn in_some_state(fixture: &mut Fixture) -> Vec<(&'static str, Reply)> {
    let (acme, small) = (fixture.acme.clone(), fixture.small.clone());
    let echo = r#"{"name": "echo"}"#;
    let mut replies = Vec::new();
    for _ in 0..2 {
        assert_eq!(fixture.call(&small, "", echo).await.status, 200);
    }
    replies.push(("more calls than the quota", fixture.call(&small, "", echo).await));
    let asked = fixture.call(&acme, "", r#"{"name": "ask"}"#).await.json();
    let wrong = json!({"name": "ask", "resume": {"answer": "no", "state": asked["outcome"]["ask_user"]["state"]}});
    let wrong = fixture.call(&acme, "", &wrong.to_string()).await;
    replies.push(("an answer that does not fit the tool's question", wrong));
    let state = asked["outcome"]["ask_user"]["state"].as_str().expect("a state");
    let resumed = |tool: &str, arguments: Value, state: &str| {
        json!({"name": tool, "arguments": arguments, "resume": {"answer": true, "state": state}})
            .to_string()
    };
    let (good, changed) = (resumed("ask", json!({}), state), format!("{state}x"));
    for (case, key, body) in [
        ("a `state` that was made up or changed", &acme, resumed("ask", json!({}), &changed)),
        ("a `state` that was made up or changed", &acme, resumed("ask", json!({}), "tc2.AAAA")),
        ("a `state` of another key", &fixture.acme_too, good.clone()),
        ("a `state` of a call with other arguments", &acme, resumed("ask", json!({"x": 1}), state)),
        ("a `state` of another tool", &acme, resumed("echo", json!({}), state)),
    ] {
        replies.push((case, fixture.call(key, "", &body).await));
    }
    assert_eq!(fixture.call(&acme, "", &good).await.json()["outcome"]["ok"]["value"][0], true);
    fixture.expiry.advance(Sealer::DEFAULT_LIFETIME);
    replies.push(("a `state` that has expired", fixture.call(&acme, "", &good).await));
    let key = "Idempotency-Key: one\r\n";
    assert_eq!(fixture.call(&acme, key, echo).await.status, 200);
    let other = r#"{"name": "echo", "arguments": {"n": 1}}"#;
    let mismatch = fixture.call(&acme, key, other).await;
    replies.push(("an `Idempotency-Key` of another request", mismatch));

    let ended = fixture.waiting("ended").await;
    assert_eq!(fixture.cancel(&acme, "ended").await.status, 202);
    assert_eq!(fixture.waits.recv().await, Some("stopped"));
    ended.await.expect("no panic");
    let again = fixture.cancel(&acme, "ended").await;
    replies.push(("cancelling a second time what has ended", again));
    let mut held = vec![fixture.waiting("held").await];
    let same = fixture.call(&acme, "x-request-id: held\r\n", echo).await;
    replies.push(("an `x-request-id` that is running", same));
    let (wait, two) = (r#"{"name": "wait"}"#, "Idempotency-Key: two\r\n");
    held.push(fixture.begin(&acme, two, wait));
    assert_eq!(fixture.waits.recv().await, Some("started"));
    let running = fixture.call(&acme, two, wait).await;
    replies.push(("an `Idempotency-Key` whose request is running", running));
    while held.len() < IN_FLIGHT {
        let id = format!("held-{}", held.len());
        held.push(fixture.waiting(&id).await);
    }
    replies.push(("more calls than the server makes at once", fixture.call(&acme, "", echo).await));
    replies
}

#[tokio::test(flavor = "multi_thread")]
async fn http_errors_match_the_documented_table() {
    let mut fixture = Fixture::start().await;
    let mut replies = Vec::new();
    for (case, bytes) in requests(&fixture) {
        let reply = send(fixture.address, bytes.as_bytes()).await;
        replies.push((case, reply.unwrap_or_else(|| panic!("{case}: {bytes}"))));
    }
    replies.extend(in_some_state(&mut fixture).await);
    replies.extend(cut_off(&fixture).await);
    let (mut complaints, mut tried) = (Vec::new(), BTreeSet::new());
    let rows = rows();
    for (case, reply) in &replies {
        let plain = case.replace('`', "");
        let Some((_, expected)) = rows.iter().find(|(row, _)| *row == plain) else {
            complaints.push(format!("the page has no row `{case}`: {reply:?}"));
            continue;
        };
        tried.insert(plain);
        let got = status_and_code(Some(reply));
        if got != *expected {
            complaints.push(format!("{case}: {got:?}, and the page says {expected:?}: {reply:?}"));
        }
        if expected.1 != "–" && reply.status >= 400 {
            let problem = reply.json();
            let is_whole = reply.header("content-type") == Some("application/problem+json")
                && problem["status"] == reply.status
                && problem["request_id"].as_str() == reply.header("x-request-id")
                && ["type", "title", "detail"].iter().all(|member| problem[member].is_string());
            let header = |name| reply.header(name).unwrap_or_default();
            let has_extras = match reply.status {
                401 => header("www-authenticate").starts_with("Bearer"),
                405 => reply.header("allow").is_some(),
                429 => !header("retry-after").is_empty() && problem["retry_after_ms"].is_number(),
                _ => true,
            };
            if !is_whole || !has_extras {
                complaints.push(format!("{case}: not a whole problem: {reply:?}"));
            }
        }
    }
    for (case, _) in &rows {
        let is_tried = tried.contains(case);
        if is_tried == ELSEWHERE.contains(&case.as_str()) {
            complaints.push(format!("{case}: tried {is_tried}"));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_member_is_named_by_its_path() {
    let fixture = Fixture::start().await;
    for (name, before) in [
        ("invalid_member_is_named_by_its_path", "the body does not fit: "),
        ("options_out_of_range", ""),
    ] {
        for (path, body, told) in cases::<(&str, &str, &str)>("server/http/bad_input", name) {
            let reply = fixture.post(&format!("/v1/{path}"), "", body).await;
            let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
            assert!(detail.starts_with(&format!("{before}{told}")), "{body}: {detail}");
        }
    }
    let (long, name, arguments) = ("i".repeat(257), "echo", json!({}));
    let call = json!({"id": long, "name": name, "arguments": arguments});
    for (path, body, member) in
        [("calls", call.clone(), "id"), ("batch", json!({"calls": [call]}), "calls[0].id")]
    {
        let reply = fixture.post(&format!("/v1/{path}"), "", &body.to_string()).await;
        let told = format!("the body does not fit: `{member}`: expected at most 256 characters");
        assert_eq!((reply.status, reply.json()["detail"].as_str()), (400, Some(&*told)));
    }
    // A null counts as absent for an optional member.
    for body in [r#"{"name": "echo", "resume": null}"#, r#"{"name": "echo", "arguments": null}"#] {
        assert_eq!(fixture.call(&fixture.acme, "", body).await.status, 200, "{body}");
    }
}

/// The answers differ only in the name that the client sent.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_tool_is_answered_as_unknown() {
    let fixture = Fixture::start().await;
    let told = async |key: &str, line: &str, body: &str, name: &str| {
        let reply = fixture.ask(key, line, "x-request-id: same\r\n", body).await;
        let body = reply.body.replace(name, "NAME");
        let headers: Vec<_> = reply
            .headers
            .iter()
            .filter(|(name, _)| !["date", "content-length"].contains(&&**name))
            .collect();
        format!("{} {headers:?} {body}", reply.status)
    };
    // `wait` exists, but this tenant does not see it. `hidden` is hidden from all.
    for (key, existing, missing) in
        [(&fixture.globex, "wait", "kuyz"), (&fixture.acme, "hidden", "qqqqqq")]
    {
        let call = |name: &str| format!(r#"{{"name": "{name}"}}"#);
        let calls = |name: &str| {
            format!(r#"{{"calls": [{{"id": "a", "name": "{name}", "arguments": {{}}}}]}}"#)
        };
        let answer = |name: &str| calls(name).replace("]}", r#"], "unknown_tools": "answer"}"#);
        let form = |line: &str, body: String| (line.to_owned(), body);
        let forms = |name: &str| {
            [
                form("POST /v1/calls", call(name)),
                form("POST /v1/batch", calls(name)),
                form("POST /v1/batch", answer(name)),
                form("POST /v1/runs", calls(name)),
                form("POST /v1/steps", calls(name)),
                form(&format!("GET /v1/tools/{name}"), String::new()),
            ]
        };
        for pair in forms(existing).into_iter().zip(forms(missing)) {
            let mut told_of = Vec::new();
            for (name, (line, body)) in [(existing, &pair.0), (missing, &pair.1)] {
                let told = told(key, line, body, name).await;
                // Times differ between any two calls; lengths of the names are those of the client.
                let told = told
                    .split("\"wall_us\":")
                    .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
                told_of.push(told.collect::<Vec<_>>().join("\"wall_us\":"));
            }
            assert_eq!(told_of[0], told_of[1], "{pair:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_heads_and_idle_connections_are_closed() {
    let head_time = std::time::Duration::from_millis(100);
    let fixture = Fixture::with(ListenOptions { head_time, ..ListenOptions::default() }).await;
    for bytes in [
        "",
        "GET /health HTTP/1.1\r\nHost: loc",
        "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",
    ] {
        let mut stream = connect(fixture.address, bytes.as_bytes()).await;
        let mut text = String::new();
        let closed = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text)).await;
        closed.expect("the server closes the connection").unwrap();
        let answers = text.matches("HTTP/1.1 200 OK").count();
        assert_eq!(answers, bytes.matches("\r\n\r\n").count(), "{text}");
        if answers == 0 {
            is_as_the_page_says("a head that does not arrive in time", Reply::read(&text).as_ref());
        }
    }
    assert_eq!(fixture.get("/v1/tools").await.status, 200, "others are served");
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_order() {
    let fixture = Fixture::start().await;
    let key = bearer(&fixture.acme);
    let one = |line: &str| format!("{line} HTTP/1.1\r\nHost: localhost\r\n{key}\r\n");
    let text = [
        one("GET /health"),
        one("GET /v1/nope"),
        one("GET /version"),
        request("GET /ready", &key, ""),
    ]
    .concat();
    let mut stream = connect(fixture.address, text.as_bytes()).await;
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    let replies: Vec<_> = answers
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|answer| Reply::read(&format!("HTTP/1.1 {answer}")))
        .collect();
    let statuses: Vec<_> = replies.iter().flatten().map(|reply| reply.status).collect();
    assert_eq!(statuses, [200, 404, 200, 200], "{answers}");
    for answered in [0, 2, 3] {
        let case = "a request that is sent before the answer to the one before it (pipelining)";
        is_as_the_page_says(case, replies[answered].as_ref());
    }
}
