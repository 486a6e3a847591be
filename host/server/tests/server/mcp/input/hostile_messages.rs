//! Random messages of hostile clients: each is answered or dropped, and the next request is
//! answered correctly.

use serde_json::{Value, json};
use toolcell_server::mcp::McpOptions;
use toolcell_test_guests::rows;

use crate::mcp::client::{Client, call, message, opening};
use crate::mcp::fixture::service;
use crate::mcp::web::{JSON, modern, serve};
use crate::setup::PATIENCE;

/// The seed of all cases.
const SEED: u64 = 15;
const CASES: usize = 400;

/// Returns valid messages of both eras. None starts a call that does not end.
fn messages() -> Vec<Value> {
    rows("server/mcp/hostile_messages", "messages")
}

/// Returns replacements for a value, as text.
fn values() -> Vec<String> {
    let few = rows::<String>("server/mcp/hostile_messages", "values").into_iter();
    let long = format!("\"{}\"", "x".repeat(50_000));
    few.chain([long, format!("{}1{}", "[".repeat(300), "]".repeat(300))]).collect()
}

/// Collects the JSON pointers of all values in a message.
fn places(value: &Value, at: String, found: &mut Vec<String>) {
    if let Value::Object(members) = value {
        for (name, member) in members {
            let name = name.replace('~', "~0").replace('/', "~1");
            places(member, format!("{at}/{name}"), found);
        }
    }
    found.push(at);
}

/// Returns a message with random changes, as the bytes of one line.
fn changed(random: &mut fastrand::Rng, messages: &[Value], values: &[String]) -> Vec<u8> {
    let mut message = messages[random.usize(..messages.len())].clone();
    let mut pieces = Vec::new();
    for n in 0..random.usize(0..3) {
        let mut found = Vec::new();
        places(&message, String::new(), &mut found);
        let place = &found[random.usize(..found.len())];
        let (parent, name) = place.rsplit_once('/').unwrap_or_default();
        if random.bool()
            && let Some(Value::Object(members)) = message.pointer_mut(parent)
        {
            members.remove(name);
        } else if let Some(value) = message.pointer_mut(place) {
            *value = format!("PLACE-{n}").into();
            pieces.push((format!("\"PLACE-{n}\""), &values[random.usize(..values.len())]));
        }
    }
    let mut text = message.to_string();
    for (place, piece) in pieces {
        text = text.replace(&place, piece);
    }
    let mut bytes = text.into_bytes();
    match random.u8(..6) {
        0 => {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        1 => bytes.truncate(random.usize(..bytes.len())),
        2 => bytes.extend_from_within(..),
        _ => {}
    }
    bytes.retain(|byte| *byte != b'\n');
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_stdio_lines_are_answered_or_dropped() {
    let (service, ..) = service();
    let mut client =
        Client::start(service.clone(), McpOptions { line: 40_000, ..McpOptions::default() });
    client.initialize(json!({})).await;
    let (mut messages, values, mut random) = (messages(), values(), fastrand::Rng::with_seed(SEED));
    // It runs until it is cancelled, once or twice: the other messages have its id.
    messages.push(call(7, "wait"));
    let mut errors = 0;
    for case in 0..CASES {
        let bytes = changed(&mut random, &messages, &values);
        client.send_text(&bytes).await;
        let probe = json!(format!("probe-{case}"));
        client.send(json!({"jsonrpc": "2.0", "id": probe, "method": "tools/call", "params": {"name": "echo", "arguments": {"n": case}}})).await;
        let answered = async {
            loop {
                let heard = client.receive().await;
                if heard["id"] == probe {
                    break heard;
                }
                errors += usize::from(heard["error"].is_object());
            }
        };
        let shown = String::from_utf8_lossy(&bytes);
        let answer = tokio::time::timeout(PATIENCE, answered)
            .await
            .unwrap_or_else(|_| panic!("case {case}: {shown}"));
        let echoed = &answer["result"]["structuredContent"];
        assert_eq!(*echoed, json!({"n": case}), "case {case}: {shown}: {answer}");
    }
    assert!(errors > CASES / 4, "{errors} of {CASES}");
    client.end().await.unwrap();
    assert_eq!(service.running(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_posts_are_answered_and_others_served() {
    let (web, _) = serve(McpOptions::default()).await;
    let session = web.open().await;
    let (messages, values, mut random) = (messages(), values(), fastrand::Rng::with_seed(SEED));
    let (list, list_body) = modern(1, "tools/list", None);
    let more = rows::<&str>("server/mcp/hostile_messages", "headers");
    let mut refused = 0;
    for case in 0..CASES {
        let bytes = changed(&mut random, &messages, &values);
        let eras =
            [session.clone(), list.clone(), modern(1, "tools/call", Some("echo")).0, String::new()];
        // Not in a session, if the message has the capability `elicitation`: the session would ask
        // its user, and the request would wait for the answer.
        let first = usize::from(String::from_utf8_lossy(&bytes).contains("elicitation"));
        let more = more[random.usize(..more.len())];
        let headers = format!("{JSON}{}{more}", eras[random.usize(first..eras.len())]);
        let mut request = web
            .request(0, "POST", &headers, "")
            .replace("Content-Length: 0", &format!("Content-Length: {}", bytes.len()))
            .into_bytes();
        request.extend(&bytes);
        let shown = String::from_utf8_lossy(&request).into_owned();
        let reply = tokio::time::timeout(PATIENCE, web.send_bytes(&request)).await;
        let reply = reply.unwrap_or_else(|_| panic!("case {case}: {shown}"));
        assert!(reply.status < 500, "case {case}: {reply:?} for {shown}");
        refused += usize::from(reply.status >= 400);
        let other = web.post_with(&web.globex, &list, &list_body).await;
        assert_eq!(other.message()["result"]["tools"][0]["name"], "ask", "case {case}: {other:?}");
    }
    assert!(refused > CASES / 4 && refused < CASES, "{refused} of {CASES}");
    let call = message(1, "tools/call", json!({"name": "echo", "arguments": {"n": 7}}));
    let echoed = web.post(0, &session, &call).await.message();
    assert_eq!(echoed["result"]["structuredContent"], json!({"n": 7}));
    assert_eq!(web.service.running(), 0);
}

/// A tenant that opens sessions without end reaches its limit, and another one can open its own.
#[tokio::test(flavor = "multi_thread")]
async fn session_flood_leaves_sessions_to_other_tenants() {
    let (web, _) = serve(McpOptions { sessions: 4, ..McpOptions::default() }).await;
    let open = opening(json!({}));
    let mut statuses = Vec::new();
    for _ in 0..50 {
        statuses.push(web.post(0, "", &open).await.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 4, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    assert_eq!(web.post_with(&web.globex, "", &open).await.status, 200);
}
