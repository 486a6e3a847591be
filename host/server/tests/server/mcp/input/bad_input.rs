//! Bad requests over HTTP: each row of the table in `docs/mcp.md` has the status and the code that
//! the page gives.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::clock::ManualClock;
use toolcell::tool::Invocation;
use toolcell::{Outcome, Question, Sealer};
use toolcell_server::artifacts::{ArtifactOptions, Artifacts};
use toolcell_server::mcp::McpOptions;
use toolcell_server::{ServedTools, Service};
use toolcell_test_guests::rows as cases;

use crate::http::client::Reply;
use crate::mcp::client::{accepted, forms, initialize, message, ping, stateless};
use crate::mcp::web::{JSON, Web, modern, request, serve, start};
use crate::setup::{native, registry, table};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const PAGE: &str = include_str!("../../../../../../docs/mcp.md");
/// Rows with tests of their own, which read the row, because they need a state of the server.
const ELSEWHERE: [&str; 7] = [
    "more bytes of bodies and of `resources/read` than the server holds",
    "an id that a running request of the session has",
    "more sessions than a tenant may have",
    "more open streams than a tenant may have: `GET`, `subscriptions/listen`",
    "a call without quota",
    "a call while as many run as the tenant or the server can have",
    "a key of a tenant that is not served",
];

/// The supported revisions.
const REVISIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

/// A row of a table of the page.
pub(crate) struct Row {
    pub(crate) case: &'static str,
    /// 0 in the table of lines.
    status: u16,
    /// 0 for an answer without a protocol error.
    pub(crate) code: i64,
    /// The code in the error's data or in the problem.
    pub(crate) word: Option<&'static str>,
    /// True if the answer lists the supported revisions.
    has_list: bool,
    /// True if the answer says when to retry.
    can_wait: bool,
}

impl Row {
    /// Returns the difference to an answer over HTTP.
    fn complaint(&self, reply: &Reply) -> Option<String> {
        let message = reply.message();
        let wait = message["error"]["data"]["retry_after_ms"].as_u64();
        let wait = wait.map(|wait| wait.div_ceil(1000).max(1).to_string());
        let is_good = reply.status == self.status
            && self.is_told_by(&message)
            && wait.as_deref() == reply.header("retry-after")
            && wait.is_some() == self.can_wait;
        (!is_good).then(|| format!("{}: {reply:?}", self.case))
    }

    /// Returns true if the message has the row's codes, and no others.
    pub(crate) fn is_told_by(&self, message: &Value) -> bool {
        let error = &message["error"];
        let word = if error.is_null() { &message["code"] } else { &error["data"]["code"] };
        let list = &error["data"]["supported"];
        error["code"].as_i64().unwrap_or(0) == self.code
            && word.as_str() == self.word
            && if self.has_list { *list == json!(REVISIONS) } else { list.is_null() }
    }
}

/// Compares an answer with its row of the table of requests, which must be in `ELSEWHERE`.
#[track_caller]
pub(crate) fn is_as_the_page_says(case: &str, reply: &Reply) {
    assert!(ELSEWHERE.contains(&case), "`{case}` is not in the list");
    let row = rows("| request over HTTP |").into_iter().find(|row| row.case == case);
    let row = row.unwrap_or_else(|| panic!("no row `{case}`"));
    assert_eq!(row.complaint(reply), None);
}

/// Returns the rows of the table whose first line begins with this text.
pub(crate) fn rows(head: &str) -> Vec<Row> {
    let number = |cell: &str| {
        let sign = if cell.starts_with('−') { -1 } else { 1 };
        let digits: String =
            cell.trim_start_matches('−').chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<i64>().map_or(0, |number| sign * number)
    };
    let rows = table(PAGE, head).into_iter().map(|cells| {
        let (status, code) = if cells.len() == 3 { (cells[1], cells[2]) } else { ("", cells[1]) };
        let (word, has_list) = (code.split('`').nth(1), code.ends_with(", with the list"));
        let can_wait = status.ends_with(", `Retry-After`");
        let status = u16::try_from(number(status)).expect("a status");
        Row { case: cells[0], status, code: number(code), word, has_list, can_wait }
    });
    rows.collect()
}

/// Returns the requests that need only a session, by their row.
fn requests(web: &Web, session: &str) -> Vec<(&'static str, Vec<u8>)> {
    let send = |method: &str, headers: &str, body: &str| web.request(0, method, headers, body);
    let post = |headers: &str, body: &str| send("POST", &format!("{JSON}{headers}"), body);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let pinged = post(session, body);
    let large = initialize(json!({"x": "y".repeat(64 << 10)}));
    let large = message(1, "initialize", large).to_string();
    let length = format!("Content-Length: {}", body.len());
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}1{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let not_utf8 = post(session, r#"{"jsonrpc":"2.0","id":1,"method":"p~"}"#)
        .bytes()
        .map(|byte| if byte == b'~' { 0xff } else { byte })
        .collect();
    let accepting = |request: &str, accepted: &str| {
        request.replace("application/json, text/event-stream", accepted)
    };
    let no_key = "no key, or one that is not known";
    let no_accept = "`Accept` without `application/json`, `application/*` or `*/*`; `GET` without `text/event-stream`";
    let no_json = "no JSON, nested too deep, duplicate members, not UTF-8";
    let meta = stateless(json!({})).to_string();
    let filled = |text: &str| {
        let text = text.replace("{session}", session).replace("{json}", JSON);
        text.replace("{modern}", "MCP-Protocol-Version: 2026-07-28\r\n").replace("{meta}", &meta)
    };
    let listed = cases::<(_, &str, &str, &str)>("server/mcp/bad_input", "requests");
    let listed = listed
        .into_iter()
        .map(|(case, method, headers, body)| (case, send(method, &filled(headers), &filled(body))));
    let others = [
        (no_key, post("", body).replace("Authorization: ", "X-Other: ")),
        (no_key, request("tck_unknown", "POST", JSON, body)),
        (no_accept, accepting(&pinged, "text/html")),
        (no_accept, accepting(&pinged, "text/event-stream")),
        (no_accept, accepting(&send("GET", session, ""), "application/json")),
        ("longer than the server reads", pinged.replace(&length, "Content-Length: 99999999999")),
        (no_json, post(session, &deep)),
        (
            "an unknown session, or that of another principal",
            web.request(1, "POST", &format!("{JSON}{session}"), body),
        ),
        ("`initialize` without params, or with params that do not fit", post("", &large)),
        ("a `Host` that is not listed", pinged.replace("Host: localhost", "Host: evil.example")),
    ];
    let texts = listed.chain(others);
    texts.map(|(case, text)| (case, text.into_bytes())).chain([(no_json, not_utf8)]).collect()
}

/// Returns the refusals about questions, in both ways to answer one, and of an unknown artifact.
async fn about_questions() -> Vec<(&'static str, Reply)> {
    let ask = async |_: Value, call: Arc<Invocation>| match &call.context.resume {
        None => Outcome::AskUser(
            Question::new("How many?").with_answer_schema(json!({"type": "integer"})),
        ),
        Some(_) => Outcome::ok(json!({})),
    };
    let registry = registry([native("ask", ask), native("other", ask)]);
    let clock = ManualClock::new();
    let sealer = Sealer::generate().unwrap().with_clock(Arc::new(clock.clone()));
    let artifacts = Artifacts::temporary(ArtifactOptions::default()).unwrap();
    let service = Service::builder(ServedTools::new(&registry)).sealer(sealer).artifacts(artifacts);
    let web = start(service.build().unwrap(), &registry, McpOptions::default()).await;
    let mut replies = Vec::new();
    for is_form in [true, false] {
        let meta = if is_form { forms() } else { stateless(json!({})) };
        let send = async |key: usize, tool: &str, x: u8, answer: Option<(&str, Value)>| {
            let (headers, mut call) = modern(1, "tools/call", Some(tool));
            call["params"]["arguments"] = json!({ "x": x });
            call["params"]["_meta"] = meta.clone();
            match answer {
                None => {}
                Some((state, answer)) if is_form => {
                    call["params"]["requestState"] = state.into();
                    call["params"]["inputResponses"] = json!({"answer": accepted(answer)});
                }
                Some((state, answer)) => {
                    call["params"]["_meta"]["toolcell/resume"] =
                        json!({"answer": answer, "state": state});
                }
            }
            web.post(key, &headers, &call).await
        };
        let asked = send(0, "ask", 1, None).await.message()["result"].take();
        let state = if is_form { "/requestState" } else { "/_meta/toolcell~1question/state" };
        let state = asked.pointer(state).and_then(Value::as_str).expect("a state");
        for (case, key, tool, x, given, answer) in
            cases::<(&str, usize, &str, u8, &str, Value)>("server/mcp/bad_input", "states")
        {
            let state = given.replace("{state}", state);
            replies.push((case, send(key, tool, x, Some((&*state, answer))).await));
        }
        let good = async || send(0, "ask", 1, Some((state, json!(2)))).await;
        assert_eq!(good().await.message()["result"]["isError"], false);
        clock.advance(2 * DAY);
        replies.push(("a state that has expired", good().await));
    }
    let session = web.open().await;
    let uri = format!("toolcell://artifacts/{}", "0".repeat(64));
    let read = message(1, "resources/read", json!({"uri": uri}));
    let case = "`resources/read` of an unknown artifact in a session";
    replies.push((case, web.post(0, &session, &read).await));
    let (headers, mut read) = modern(1, "resources/read", Some(&uri));
    read["params"]["uri"] = json!(uri);
    let case = "`resources/read` of an unknown artifact, 2026-07-28";
    replies.push((case, web.post(0, &headers, &read).await));
    for (case, method, params) in cases::<(&str, &str, Value)>("server/mcp/bad_input", "calls") {
        replies.push((case, web.post(0, &session, &message(1, method, params.clone())).await));
        if method != "no/such" {
            let (headers, mut message) = modern(1, method, Some("text"));
            message["params"].as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
            replies.push((case, web.post(0, &headers, &message).await));
        }
    }
    replies
}

#[tokio::test]
async fn mcp_errors_match_the_documented_table() {
    let (web, _) = serve(McpOptions::default()).await;
    let session = web.open().await;
    let mut replies = about_questions().await;
    for (case, bytes) in requests(&web, &session) {
        replies.push((case, web.send_bytes(&bytes).await));
    }
    let cut_off =
        web.request(0, "POST", &format!("{JSON}{session}"), "{").replace(": 1\r\n", ": 2\r\n");
    let chunked = cut_off.replace("Content-Length: 2", "Transfer-Encoding: chunked");
    for bytes in [&cut_off, &chunked.replace("\r\n\r\n{", "\r\n\r\n2\r\n{")] {
        let reply = web.send_last(bytes.as_bytes()).await;
        replies.push(("a body that ends before its `Content-Length` or its last chunk", reply));
    }
    let rows = rows("| request over HTTP |");
    let mut complaints = Vec::new();
    for (case, reply) in &replies {
        let Some(row) = rows.iter().find(|row| row.case == *case) else {
            complaints.push(format!("no row `{case}`: {reply:?}"));
            continue;
        };
        complaints.extend(row.complaint(reply));
    }
    for Row { case, .. } in &rows {
        let is_tried = replies.iter().any(|(tried, _)| tried == case);
        if is_tried == ELSEWHERE.contains(case) {
            complaints.push(format!("{case}: tried {is_tried}"));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    // The server still answers, however the type is spelled.
    let shouted = format!("Content-Type: APPLICATION/JSON; charset=utf-8\r\n{session}");
    assert_eq!(web.send(0, "POST", &shouted, &ping(1).to_string()).await.status, 200);
}
