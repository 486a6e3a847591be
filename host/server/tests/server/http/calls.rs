//! Calls, runs, steps, questions and cancellation over HTTP.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolcell::tool::Invocation;
use toolcell::{Executor, Json, Limits, Tenant, ToolCall};
use toolcell_server::service::RunRequest;
use toolcell_server::{
    Authenticator, ListenOptions, Principal, ServedTools, Service, ServiceLimits,
};
use toolcell_test_guests::rows;

use super::client::{JSON, Reply, ask, connect, get, request};
use super::fixture::Fixture;
use crate::names;
use crate::setup::{PATIENCE, native, registry, serving, start};

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_page_by_page_in_every_format() {
    let fixture = Fixture::start().await;
    let list = async |query: &str| fixture.get(&format!("/v1/tools{query}")).await.json();
    let first = list("").await;
    // Sorted by name, two on a page, without the hidden one.
    assert_eq!(names(&first), ["ask", "echo"]);
    let next = list(&format!("?cursor={}", first["next_cursor"].as_str().unwrap())).await;
    assert_eq!((names(&next), &next["next_cursor"]), (vec!["wait"], &Value::Null));
    for format in ["openai", "openai-responses", "anthropic", "gemini", "mcp", "agui"] {
        let page = list(&format!("?format={format}")).await;
        assert!(page["tools"].to_string().contains("\"Does echo.\""), "{format}: {page}");
    }
    let one = fixture.get("/v1/tools/echo?format=anthropic").await.json();
    assert_eq!(one["input_schema"]["type"], "object", "{one}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_ending_is_answered_with_completion() {
    let fixture = Fixture::start().await;
    for (body, pointer, expected) in rows::<(&str, &str, Value)>("server/http/calls", "endings") {
        let reply = fixture.call(&fixture.acme, "", body).await;
        let told = (reply.status, reply.json().pointer(pointer).cloned());
        assert_eq!(told, (200, Some(expected)), "{body}: {reply:?}");
    }
    let usage = fixture.usage().await;
    let told = json!([usage["calls"], usage["outcomes"]["ok"], usage["running"]]);
    assert_eq!(told, json!([5, 3, 0]), "{usage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_returns_outcome_run_streams_events_to_end() {
    let fixture = Fixture::start().await;
    let calls = |last: &str| {
        format!(
            r#"{{"calls": [{{"id": "a", "name": "echo", "arguments": {{"n": 1}}}}, {{"id": "b", "name": "{last}", "arguments": {{}}}}]}}"#
        )
    };
    let batch = fixture.post("/v1/batch", "", &calls("ask")).await.json();
    assert_eq!(batch["messages"][0]["content"], "{\"n\":1}", "{batch}");
    assert_eq!(batch["halt"]["halted_reason"], "ask_user", "{batch}");
    let failing =
        r#"{"calls": [{"name": "echo", "arguments": {"n": "x"}}], "on_tool_error": "halt"}"#;
    let halted = fixture.post("/v1/batch", "", failing).await.json();
    assert!(halted["halt"]["halted_reason"].is_string(), "{halted}");
    for (tool, last) in [("ask", "run_halted"), ("echo", "run_finished")] {
        let reply = fixture.post("/v1/runs", "", &calls(tool)).await;
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        let events = reply.events();
        assert_eq!(events.last().map(|event| &event["type"]), Some(&json!(last)), "{events:?}");
        assert!(events.iter().any(|event| event["type"] == "tool_result_encoded"), "{events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_batch_need_no_ids() {
    let fixture = Fixture::start().await;
    let body = r#"{"calls": [{"name": "echo", "arguments": {"n": 1}}, {"id": "a", "name": "echo", "arguments": {}},
        {"id": null, "name": "echo", "arguments": {}}]}"#;
    let outcome = fixture.post("/v1/batch", "", body).await.json();
    let ids: Vec<_> = (0..3).map(|at| outcome["messages"][at]["tool_call_id"].clone()).collect();
    assert_eq!(ids, ["call-1", "a", "call-3"], "{outcome}");
}

/// Without a time of its own a run sets 30 s for each call; here the tool's time applies.
#[tokio::test(flavor = "multi_thread")]
async fn call_of_run_has_the_timeout_of_its_tool() {
    let time = async |_: Value, call: Arc<Invocation>| json!(call.limits.timeout.as_secs());
    let shorter = Limits { timeout: Duration::from_secs(60), ..Limits::unlimited() };
    let registry = registry([native("long", time), native("short", time).with_limits(shorter)]);
    let executor = Executor::new()
        .with_limits(Limits { timeout: Duration::from_secs(600), ..Limits::default() });
    let served =
        ServedTools::new(&registry).with_executor(executor).with_tenant("acme", Tenant::default());
    let service = Service::builder(served).build().unwrap();
    let calls = ["long", "short"].map(|name| ToolCall::new(name, name, "{}"));
    let outcome =
        service.run(&Principal::new(Some("acme"), "1"), RunRequest::new(calls)).await.unwrap();
    let told: Vec<_> = outcome.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(told, ["600", "60"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn query_error_names_its_parameter() {
    let fixture = Fixture::start().await;
    for (query, told) in
        [("page=2", "unknown field `page`"), ("cursor=a&cursor=b", "duplicate field `cursor`")]
    {
        let refused = fixture.get(&format!("/v1/tools?{query}")).await.json();
        assert!(refused["detail"].as_str().unwrap().contains(told), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_number_of_a_step_keeps_its_digits() {
    let long = async |_: Value| Json::parse("123456789012345678901".to_owned()).unwrap();
    let service = serving(&registry([native("long", long)]));
    let address = start(service, Authenticator::open(), ListenOptions::default()).await;
    let body = r#"{"calls": [{"id": "a", "name": "long", "args": {"m": 123456789012345678901}}]}"#;
    let told = ask(address, "POST /v1/steps", JSON, body).await;
    // Of the call, and of the tool's value.
    assert_eq!(told.body.matches("123456789012345678901").count(), 2, "{told:?}");
}

/// Each call copies what is beside the calls of its request.
#[tokio::test(flavor = "multi_thread")]
async fn copies_for_steps_need_room() {
    let service = serving(&registry([native("one", async |_: Value| json!(1))]));
    let address = start(service, Authenticator::open(), ListenOptions::default()).await;
    let steps = async |calls: usize| {
        let calls = vec![json!({"name": "one", "args": {}}); calls];
        let body = json!({"calls": calls, "context": {"metadata": "m".repeat(1 << 20)}});
        ask(address, "POST /v1/steps", JSON, &body.to_string()).await
    };
    assert_eq!(steps(2).await.status, 200);
    steps(100).await.is_refused(503, "busy");
    assert_eq!(steps(2).await.status, 200, "the room is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_count_until_their_answer_is_read() {
    let long = native("long", async |_: Value| json!("x".repeat(900_000)));
    let limits = ServiceLimits { in_flight: 32, ..ServiceLimits::default() };
    let service = Service::builder(ServedTools::new(&registry([long]))).limits(limits);
    let service = service.build().unwrap();
    let address = start(service.clone(), Authenticator::open(), ListenOptions::default()).await;
    let calls =
        |count| json!({"calls": vec![json!({"name": "long", "arguments": {}}); count]}).to_string();
    let batch = async || ask(address, "POST /v1/batch", JSON, &calls(1)).await;
    let mut unread = Vec::new();
    for _ in 0..2 {
        let text = request("POST /v1/batch", JSON, &calls(32));
        let mut client = connect(address, text.as_bytes()).await;
        assert_eq!(client.read_u8().await.unwrap(), b'H');
        unread.push(client);
    }
    assert_eq!(service.running(), 0, "the calls have ended");
    // Their answer is longer than what the buffers of the connection hold.
    batch().await.is_refused(429, "overloaded");
    drop(unread);
    let room = async {
        while batch().await.status == 429 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, room).await.expect("room for another answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_is_one_line_whatever_a_tool_writes() {
    let pretty = async |_: Value| Json::parse("{\r\n  \"a\": 1\n}".to_owned()).unwrap();
    let service = serving(&registry([native("pretty", pretty)]));
    let address = start(service, Authenticator::open(), ListenOptions::default()).await;
    let body = r#"{"calls": [{"name": "pretty", "arguments": {}}]}"#;
    let told = ask(address, "POST /v1/runs", JSON, body).await;
    let events = told.events();
    let is_there = events.iter().any(|event| event["result"]["ok"]["value"] == json!({"a": 1}));
    assert!(is_there, "{told:?}");
}

/// Events have no ids: a client that reconnects begins another run.
#[tokio::test(flavor = "multi_thread")]
async fn run_stream_cannot_be_resumed() {
    let fixture = Fixture::start().await;
    let body = r#"{"calls": [{"id": "a", "name": "echo", "arguments": {"n": 1}}]}"#;
    let run = async |headers: &str| fixture.post("/v1/runs", headers, body).await;
    let (first, again) = (run("").await, run("Last-Event-ID: 1\r\n").await);
    assert!(first.body.lines().all(|line| !line.starts_with("id:")), "{first:?}");
    let kinds = |reply: &Reply| {
        reply.events().iter().map(|event| event["type"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&first), kinds(&again));
    assert_eq!(fixture.usage().await["calls"], 2, "both were made");
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_memory_round_trips_through_the_client() {
    let fixture = Fixture::start().await;
    let step = async |body: &Value| fixture.post("/v1/steps", "", &body.to_string()).await.json();
    let first =
        step(&json!({"calls": [{"name": "echo", "id": "a", "args": {}}], "deliberate": {"allowed": ["echo"]}})).await;
    assert_eq!(first["steps"][0]["success"], true, "{first}");
    assert_eq!(first["memory"]["windows"], json!({"echo": 2}), "{first}");
    // A tool that a trigger names needs no place in the list.
    let triggered = json!({"calls": [{"name": "echo", "id": "d", "args": {}}],
        "deliberate": {"allowed": [], "triggers": {"echo": "repeat"}}});
    let triggered = step(&triggered).await;
    assert_eq!(triggered["steps"][0]["success"], true, "{triggered}");
    // The tool is no longer in the list, but its window is still open.
    let more = json!({"calls": [{"name": "echo", "id": "b", "args": {}}, {"name": "ask", "id": "c", "args": {}}],
        "deliberate": {"allowed": []}, "memory": first["memory"]});
    let second = step(&more).await;
    assert_eq!(second["steps"][0]["success"], true, "{second}");
    assert_eq!(second["steps"][1]["success"], false, "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn question_state_is_sealed_for_the_callers_key() {
    let fixture = Fixture::start().await;
    let call = r#"{"name": "ask", "arguments": {"x": 1}}"#;
    let asked = fixture.call(&fixture.acme, "", call).await.json();
    let state = asked["outcome"]["ask_user"]["state"].as_str().unwrap().to_owned();
    assert!(state.starts_with("tc2.") && !asked.to_string().contains("secret"), "{asked}");
    let answer = async |key: &str, arguments: Value, state: &str| {
        let body = json!({"name": "ask", "arguments": arguments, "resume": {"answer": true, "state": state}});
        let reply = fixture.call(key, "", &body.to_string()).await.json();
        reply["outcome"].clone()
    };
    let good = json!({"x": 1});
    let done = answer(&fixture.acme, good.clone(), &state).await;
    assert_eq!(done["ok"]["value"], json!([true, {"secret": 7}]), "{done}");
    for (key, arguments, state, kind) in [
        // Another key of the same tenant.
        (&fixture.acme_too, good.clone(), state.clone(), "resume_foreign"),
        (&fixture.acme, json!({"x": 2}), state.clone(), "resume_other_arguments"),
        (&fixture.acme, good.clone(), format!("{state}x"), "resume_tampered"),
    ] {
        assert_eq!(answer(key, arguments, &state).await["refusal"]["kind"], kind);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_answer_is_refused_and_can_be_corrected() {
    let fixture = Fixture::start().await;
    let asked = fixture.call(&fixture.acme, "", r#"{"name": "ask"}"#).await.json();
    let question = &asked["outcome"]["ask_user"];
    assert_eq!(question["answer_schema"], json!({"type": "boolean"}));
    let resumed = |answer: Value| json!({"name": "ask", "resume": {"answer": answer, "state": question["state"]}});
    let call =
        async |answer: Value| fixture.call(&fixture.acme, "", &resumed(answer).to_string()).await;
    for _ in 0..2 {
        let wrong = call(json!("no")).await;
        wrong.is_refused(422, "invalid_answer");
        let told = wrong.json();
        let detail = "the answer does not fit the question: expected a boolean, got \"no\"";
        assert_eq!(told["detail"], detail);
        assert_eq!(told["hint"], "correct the answer, and send it again with the same state");
        assert_eq!(call(json!(false)).await.json()["outcome"]["ok"]["value"][0], false);
    }
    // In a request of several calls it is the refusal of its call.
    let mut step = resumed(json!(7));
    step["id"] = "a".into();
    let told = fixture.post("/v1/steps", "", &json!({"calls": [step]}).to_string()).await;
    assert_eq!((told.status, &told.json()["steps"][0]["success"]), (200, &json!(false)));
    assert!(told.body.contains("the answer does not fit the question"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_stops_only_calls_of_the_same_principal() {
    let mut fixture = Fixture::start().await;
    let running = fixture.waiting("mine").await;
    for key in [&fixture.acme_too, &fixture.globex] {
        fixture.cancel(key, "mine").await.is_refused(404, "not_running");
    }
    assert_eq!(fixture.cancel(&fixture.acme, "mine").await.status, 202);
    assert_eq!(fixture.waits.recv().await, Some("stopped"));
    let answer = running.await.unwrap().unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["outcome"]["tool_error"]["cause"]["status"], "cancelled");
    assert_eq!(fixture.cancel(&fixture.acme, "mine").await.status, 404, "twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_disconnect_cancels_its_request() {
    let mut fixture = Fixture::start().await;
    let headers = fixture.headers();
    let run = r#"{"calls": [{"id": "a", "name": "wait", "arguments": {}}]}"#;
    for (line, body) in
        [("POST /v1/calls", r#"{"name": "wait"}"#), ("POST /v1/batch", run), ("POST /v1/runs", run)]
    {
        let begun = request(line, &headers, body);
        let stream = connect(fixture.address, begun.as_bytes()).await;
        assert_eq!(fixture.waits.recv().await, Some("started"), "{line}");
        drop(stream);
        assert_eq!(fixture.waits.recv().await, Some("stopped"), "{line}");
        // Only its sending half is closed: the server cannot know whether the client still reads.
        let mut stream = connect(fixture.address, begun.as_bytes()).await;
        assert_eq!(fixture.waits.recv().await, Some("started"), "{line}");
        stream.shutdown().await.unwrap();
        assert_eq!(fixture.waits.recv().await, Some("stopped"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_call_is_replayed_and_not_run_again() {
    let mut fixture = Fixture::start().await;
    let (key, call) = ("Idempotency-Key: k\r\n", r#"{"name": "echo", "arguments": {"n": 1}}"#);
    let first = fixture.call(&fixture.acme, key, call).await;
    let again = fixture.call(&fixture.acme, key, call).await;
    assert_eq!((&again.body, again.header("idempotency-replayed")), (&first.body, Some("true")));
    // The key of another principal is another key.
    let other = fixture.call(&fixture.acme_too, key, call).await;
    assert_eq!((other.status, other.header("idempotency-replayed")), (200, None));
    assert_eq!(fixture.usage().await["calls"], 2);
    // A refused request is not stored, and its key stays free.
    for (body, status) in [(r#"{"name": "nope"}"#, 404), (call, 200)] {
        let reply = fixture.call(&fixture.acme, "Idempotency-Key: r\r\n", body).await;
        assert_eq!(reply.status, status, "{body}");
    }
    fixture.clock.advance(Duration::from_secs(3601));
    let expired = fixture.call(&fixture.acme, key, call).await;
    assert_eq!(expired.header("idempotency-replayed"), None, "it has expired");

    // With a key the request outlives its connection, and can be cancelled.
    let headers = format!("{}Idempotency-Key: w\r\nx-request-id: w\r\n", fixture.headers());
    let wait = r#"{"name": "wait"}"#;
    let begun = request("POST /v1/calls", &headers, wait);
    let mut stream = connect(fixture.address, begun.as_bytes()).await;
    assert_eq!(fixture.waits.recv().await, Some("started"));
    stream.shutdown().await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    let again = fixture.call(&fixture.acme, "Idempotency-Key: w\r\n", wait).await;
    assert_eq!(again.code(), "idempotency_in_flight");
    assert_eq!(fixture.cancel(&fixture.acme, "w").await.status, 202);
    assert_eq!(fixture.waits.recv().await, Some("stopped"));
}

/// On each path that makes several calls, a repeated key returns the first answer and runs no tool
/// again. A key is valid for one path and one body only.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_run_is_replayed_and_not_run_again() {
    let fixture = Fixture::start().await;
    let calls = async || fixture.usage().await["calls"].as_u64();
    let call = |member: &str, id: &str| json!({"name": "echo", "id": id, member: {"n": 1}});
    let lines = [
        ("/v1/batch", "arguments", "/messages/0/content"),
        ("/v1/steps", "args", "/steps/0/success"),
    ];
    for (at, (line, member, pointer)) in (1..).zip(lines) {
        let key = format!("Idempotency-Key: {at}\r\n");
        let body = json!({"calls": [call(member, "a"), call(member, "b")]}).to_string();
        let replayed =
            |reply: &Reply| (reply.status, reply.header("idempotency-replayed").map(str::to_owned));
        let first = fixture.post(line, &key, &body).await;
        assert_eq!(replayed(&first), (200, None), "{line}: {first:?}");
        assert!(first.json().pointer(pointer).is_some(), "{line}: {first:?}");
        assert_eq!(calls().await, Some(at * 2), "{line}");
        let again = fixture.post(line, &key, &body).await;
        assert_eq!(replayed(&again), (200, Some("true".into())), "{line}: {again:?}");
        assert_eq!(again.body, first.body, "{line}");
        let other = json!({"calls": [call(member, "c")]}).to_string();
        let other = fixture.post(line, &key, &other).await;
        assert_eq!(other.code(), "idempotency_mismatch", "{line}");
        assert_eq!(calls().await, Some(at * 2), "{line}: no tool runs again");
    }
    // A stream is not stored: its path accepts no key.
    let body = json!({"calls": [call("arguments", "a")]}).to_string();
    let stream = fixture.post("/v1/runs", "Idempotency-Key: 9\r\n", &body).await;
    stream.is_refused(400, "invalid_idempotency_key");
    // A key that was used on one path is refused on another, even with the same body.
    let body = json!({"calls": [call("arguments", "a"), call("arguments", "b")]}).to_string();
    let other = fixture.post("/v1/steps", "Idempotency-Key: 1\r\n", &body).await;
    other.is_refused(422, "idempotency_mismatch");
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_document_matches_docs_and_server() {
    let fixture = Fixture::start().await;
    let get = async |path: &str| get(fixture.address, path).await;
    let document = get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let page = include_str!("../../../../../docs/http.md");
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let method = method.to_uppercase();
            let row = format!("| `{method} {path}` |");
            let is_listed = page.contains(&row) || path == "/openapi.json";
            assert!(is_listed, "docs/http.md has no row {row}");
            let is_secured = operation["security"] == json!([{"bearer": []}]);
            // A path without a key needs one if and only if the document says so.
            let line = format!("{method} {}", path.replace(['{', '}'], ""));
            let reply = ask(fixture.address, &line, "", "").await;
            assert_eq!(reply.status == 401, is_secured, "{method} {path}: {reply:?}");
        }
    }
    // Every path of the page is in the document.
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut paths = 0;
    for (method, path) in rows.filter_map(|(first, _)| first.split_once(" /")) {
        let operation = &document["paths"][format!("/{path}")][method.to_lowercase()];
        assert!(operation.is_object(), "the document has no `{method} /{path}`");
        paths += 1;
    }
    let operations =
        document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len());
    assert_eq!(
        paths + 1,
        operations.sum::<usize>(),
        "each path but that of the document has a row"
    );
    assert_eq!(get("/health").await.json(), json!({"status": "ok"}));
    let ready = json!({"ready": true, "problems": {}, "authentication": "required"});
    assert_eq!(get("/ready").await.json(), ready);
    fixture.service.report("configuration", Some("it has no tools".into()));
    let ready = get("/ready").await;
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json()["problems"]["configuration"], "it has no tools");
    assert!(Json::parse(get("/version").await.body).is_ok());
}
