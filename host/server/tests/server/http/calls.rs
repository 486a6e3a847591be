//! Calls, runs, steps, questions and cancellation over HTTP.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolcell::tool::Invocation;
use toolcell::{Definition, Executor, Json, Limits, Registry, Tenant, Tool, ToolCall};
use toolcell_server::service::RunRequest;
use toolcell_server::{Principal, ServedTools, Service};
use toolcell_test_guests::rows;

use super::client::{Reply, request};
use super::fixture::Fixture;
use crate::names;

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_page_by_page_in_every_format() {
    let fixture = Fixture::start().await;
    let list = async |query: &str| {
        fixture.ask(&fixture.acme, &format!("GET /v1/tools{query}"), "", "").await.json()
    };
    let first = list("").await;
    assert_eq!(
        names(&first),
        ["ask", "echo"],
        "sorted by name, two on a page, without the hidden one"
    );
    let next = list(&format!("?cursor={}", first["next_cursor"].as_str().unwrap())).await;
    assert_eq!((names(&next), &next["next_cursor"]), (vec!["wait"], &Value::Null));
    for format in ["openai", "openai-responses", "anthropic", "gemini", "mcp", "agui"] {
        let page = list(&format!("?format={format}")).await;
        assert!(page["tools"].to_string().contains("\"Does echo.\""), "{format}: {page}");
    }
    let one =
        fixture.ask(&fixture.acme, "GET /v1/tools/echo?format=anthropic", "", "").await.json();
    assert_eq!(one["input_schema"]["type"], "object", "{one}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_ending_is_answered_with_completion() {
    let fixture = Fixture::start().await;
    for (body, pointer, expected) in rows::<(&str, &str, Value)>(
        "server/http/calls",
        "each_call_ending_is_answered_with_completion",
    ) {
        let reply = fixture.call(&fixture.acme, "", body).await;
        assert_eq!(
            (reply.status, reply.json().pointer(pointer)),
            (200, Some(&expected)),
            "{body}: {reply:?}"
        );
    }
    let usage = fixture.ask(&fixture.acme, "GET /v1/usage", "", "").await.json();
    assert_eq!(
        (&usage["calls"], &usage["outcomes"]["ok"], &usage["running"]),
        (&json!(5), &json!(3), &json!(0)),
        "{usage}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_returns_outcome_run_streams_events_to_end() {
    let fixture = Fixture::start().await;
    let calls = |last: &str| {
        format!(
            r#"{{"calls": [{{"id": "a", "name": "echo", "arguments": {{"n": 1}}}}, {{"id": "b", "name": "{last}", "arguments": {{}}}}]}}"#
        )
    };
    let batch = fixture.ask(&fixture.acme, "POST /v1/batch", "", &calls("ask")).await.json();
    assert_eq!(
        (&batch["messages"][0]["content"], &batch["halt"]["halted_reason"]),
        (&json!("{\"n\":1}"), &json!("ask_user")),
        "{batch}"
    );
    let failing =
        r#"{"calls": [{"name": "echo", "arguments": {"n": "x"}}], "on_tool_error": "halt"}"#;
    let halted = fixture.ask(&fixture.acme, "POST /v1/batch", "", failing).await.json();
    assert!(halted["halt"]["halted_reason"].is_string(), "{halted}");
    for (tool, last) in [("ask", "run_halted"), ("echo", "run_finished")] {
        let reply = fixture.ask(&fixture.acme, "POST /v1/runs", "", &calls(tool)).await;
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
    let outcome = fixture.ask(&fixture.acme, "POST /v1/batch", "", body).await.json();
    let ids: Vec<_> = (0..3).map(|at| outcome["messages"][at]["tool_call_id"].clone()).collect();
    assert_eq!(ids, ["call-1", "a", "call-3"], "{outcome}");
}

/// Without a time of its own a run sets 30 s for each call; here the tool's time applies.
#[tokio::test(flavor = "multi_thread")]
async fn call_of_run_has_the_timeout_of_its_tool() {
    let time = async |_: Value, call: Arc<Invocation>| json!(call.limits.timeout.as_secs());
    let registry = Registry::new();
    let named = |name: &str| Tool::native(Definition::new(name, "").unwrap(), time).unwrap();
    let shorter = Limits { timeout: Duration::from_secs(60), ..Limits::unlimited() };
    registry.register_all([named("long"), named("short").with_limits(shorter)]).unwrap();
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
        let refused =
            fixture.ask(&fixture.acme, &format!("GET /v1/tools?{query}"), "", "").await.json();
        assert!(
            refused["detail"].as_str().is_some_and(|detail| detail.contains(told)),
            "{refused}"
        );
    }
}

/// Events have no ids: a client that reconnects begins another run.
#[tokio::test(flavor = "multi_thread")]
async fn run_stream_cannot_be_resumed() {
    let fixture = Fixture::start().await;
    let body = r#"{"calls": [{"id": "a", "name": "echo", "arguments": {"n": 1}}]}"#;
    let run =
        async |headers: &str| fixture.ask(&fixture.acme, "POST /v1/runs", headers, body).await;
    let (first, again) = (run("").await, run("Last-Event-ID: 1\r\n").await);
    assert!(first.body.lines().all(|line| !line.starts_with("id:")), "{first:?}");
    let kinds = |reply: &Reply| {
        reply.events().iter().map(|event| event["type"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&first), kinds(&again));
    assert_eq!(
        fixture.ask(&fixture.acme, "GET /v1/usage", "", "").await.json()["calls"],
        2,
        "both were made"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_memory_round_trips_through_the_client() {
    let fixture = Fixture::start().await;
    let step = async |body: &Value| {
        fixture.ask(&fixture.acme, "POST /v1/steps", "", &body.to_string()).await.json()
    };
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
    assert_eq!(
        (&second["steps"][0]["success"], &second["steps"][1]["success"]),
        (&json!(true), &json!(false)),
        "{second}"
    );
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
        assert_eq!((wrong.status, wrong.code().as_str()), (422, "invalid_answer"), "{wrong:?}");
        let told = wrong.json();
        assert_eq!(
            told["detail"],
            "the answer does not fit the question: expected a boolean, got \"no\""
        );
        assert_eq!(told["hint"], "correct the answer, and send it again with the same state");
        assert_eq!(call(json!(false)).await.json()["outcome"]["ok"]["value"][0], false);
    }
    // In a request of several calls it is the refusal of its call.
    let mut step = resumed(json!(7));
    step["id"] = "a".into();
    let told = fixture
        .ask(&fixture.acme, "POST /v1/steps", "", &json!({"calls": [step]}).to_string())
        .await;
    assert_eq!(
        (told.status, &told.json()["steps"][0]["success"]),
        (200, &json!(false)),
        "{told:?}"
    );
    assert!(told.body.contains("the answer does not fit the question"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_stops_only_calls_of_the_same_principal() {
    let mut fixture = Fixture::start().await;
    let acme = fixture.acme.clone();
    let running = fixture.waiting(&acme, "mine").await;
    for key in [&fixture.acme_too, &fixture.globex] {
        let reply = fixture.ask(key, "DELETE /v1/calls/mine", "", "").await;
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (404, "not_running"),
            "another principal"
        );
    }
    assert_eq!(fixture.ask(&acme, "DELETE /v1/calls/mine", "", "").await.status, 202);
    assert_eq!(fixture.waits.recv().await, Some("stopped"));
    let answer = running.await.unwrap().unwrap();
    assert_eq!(
        (answer.status, &answer.json()["outcome"]["tool_error"]["cause"]["status"]),
        (200, &json!("cancelled"))
    );
    assert_eq!(fixture.ask(&acme, "DELETE /v1/calls/mine", "", "").await.status, 404, "twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_disconnect_cancels_its_request() {
    let mut fixture = Fixture::start().await;
    let headers =
        format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", fixture.acme);
    let run = r#"{"calls": [{"id": "a", "name": "wait", "arguments": {}}]}"#;
    for (line, body) in
        [("POST /v1/calls", r#"{"name": "wait"}"#), ("POST /v1/batch", run), ("POST /v1/runs", run)]
    {
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream.write_all(request(line, &headers, body).as_bytes()).await.unwrap();
        assert_eq!(fixture.waits.recv().await, Some("started"), "{line}");
        drop(stream);
        assert_eq!(fixture.waits.recv().await, Some("stopped"), "{line}");
        // Only its sending half is closed: the server cannot know whether the client still reads.
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream.write_all(request(line, &headers, body).as_bytes()).await.unwrap();
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
    assert_eq!(fixture.ask(&fixture.acme, "GET /v1/usage", "", "").await.json()["calls"], 2);
    // A refused request is not stored, and its key stays free.
    assert_eq!(
        fixture.call(&fixture.acme, "Idempotency-Key: r\r\n", r#"{"name": "nope"}"#).await.status,
        404
    );
    assert_eq!(fixture.call(&fixture.acme, "Idempotency-Key: r\r\n", call).await.status, 200);
    fixture.clock.advance(std::time::Duration::from_secs(3601));
    assert_eq!(
        fixture.call(&fixture.acme, key, call).await.header("idempotency-replayed"),
        None,
        "it has expired"
    );

    // With a key the request outlives its connection, and can be cancelled.
    let headers =
        format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", fixture.acme);
    let more = "Idempotency-Key: w\r\nx-request-id: w\r\n";
    let wait = r#"{"name": "wait"}"#;
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    let bytes = request("POST /v1/calls", &format!("{headers}{more}"), wait);
    stream.write_all(bytes.as_bytes()).await.unwrap();
    assert_eq!(fixture.waits.recv().await, Some("started"));
    stream.shutdown().await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    assert_eq!(
        fixture.call(&fixture.acme, "Idempotency-Key: w\r\n", wait).await.code(),
        "idempotency_in_flight"
    );
    assert_eq!(fixture.ask(&fixture.acme, "DELETE /v1/calls/w", "", "").await.status, 202);
    assert_eq!(fixture.waits.recv().await, Some("stopped"));
}

/// On each path that makes several calls, a repeated key returns the first answer and runs no tool
/// again. A key is valid for one path and one body only.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_run_is_replayed_and_not_run_again() {
    let fixture = Fixture::start().await;
    let calls =
        async || fixture.ask(&fixture.acme, "GET /v1/usage", "", "").await.json()["calls"].as_u64();
    let call = |member: &str, id: &str| json!({"name": "echo", "id": id, member: {"n": 1}});
    let lines = [
        ("POST /v1/batch", "arguments", "/messages/0/content"),
        ("POST /v1/steps", "args", "/steps/0/success"),
    ];
    for (at, (line, member, pointer)) in (1..).zip(lines) {
        let key = format!("Idempotency-Key: {at}\r\n");
        let body = json!({"calls": [call(member, "a"), call(member, "b")]}).to_string();
        let send =
            async |headers: &str, body: &str| fixture.ask(&fixture.acme, line, headers, body).await;
        let first = send(&key, &body).await;
        assert_eq!(
            (first.status, first.header("idempotency-replayed")),
            (200, None),
            "{line}: {first:?}"
        );
        assert!(first.json().pointer(pointer).is_some(), "{line}: {first:?}");
        assert_eq!(calls().await, Some(at * 2), "{line}");
        let again = send(&key, &body).await;
        assert_eq!(
            (again.status, again.header("idempotency-replayed")),
            (200, Some("true")),
            "{line}: {again:?}"
        );
        assert_eq!(again.body, first.body, "{line}");
        let other = json!({"calls": [call(member, "c")]}).to_string();
        assert_eq!(send(&key, &other).await.code(), "idempotency_mismatch", "{line}");
        assert_eq!(calls().await, Some(at * 2), "{line}: no tool runs again");
    }
    // A stream is not stored: its path accepts no key.
    let body = json!({"calls": [call("arguments", "a")]}).to_string();
    let stream = fixture.ask(&fixture.acme, "POST /v1/runs", "Idempotency-Key: 9\r\n", &body).await;
    assert_eq!(
        (stream.status, stream.code().as_str()),
        (400, "invalid_idempotency_key"),
        "{stream:?}"
    );
    // A key that was used on one path is refused on another, even with the same body.
    let body = json!({"calls": [call("arguments", "a"), call("arguments", "b")]}).to_string();
    let other = fixture.ask(&fixture.acme, "POST /v1/steps", "Idempotency-Key: 1\r\n", &body).await;
    assert_eq!((other.status, other.code().as_str()), (422, "idempotency_mismatch"), "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_document_matches_docs_and_server() {
    let fixture = Fixture::start().await;
    let get = async |path: &str| {
        super::client::send(fixture.address, request(&format!("GET {path}"), "", "").as_bytes())
            .await
            .unwrap()
    };
    let document = get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let page = include_str!("../../../../../docs/http.md");
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let row = format!("| `{} {path}` |", method.to_uppercase());
            assert!(
                page.contains(&row) || path == "/openapi.json",
                "docs/http.md has no row {row}"
            );
            let is_secured = operation["security"] == json!([{"bearer": []}]);
            // A path without a key needs one if and only if the document says so.
            let reply = super::client::send(
                fixture.address,
                request(
                    &format!("{} {}", method.to_uppercase(), path.replace(['{', '}'], "")),
                    "",
                    "",
                )
                .as_bytes(),
            )
            .await
            .unwrap();
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
        "each path but that of the document has one row"
    );
    assert_eq!(get("/health").await.json(), json!({"status": "ok"}));
    assert_eq!(
        get("/ready").await.json(),
        json!({"ready": true, "problems": {}, "authentication": "required"})
    );
    fixture.service.report("configuration", Some("it has no tools".into()));
    let ready = get("/ready").await;
    assert_eq!(
        (ready.status, &ready.json()["problems"]["configuration"]),
        (503, &json!("it has no tools"))
    );
    assert!(Json::parse(get("/version").await.body).is_ok());
}
