//! MCP over lines.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use toolcell_server::mcp::{McpOptions, serve_lines};
use toolcell_server::{Principal, ServedTools};
use toolcell_test_guests::rows;

use super::client::{Client, call, cancel, eras, forms, is_refused, message, resume, stateless};
use super::fixture::{abrupt, service, slow_tool};
use super::input::bad_input;
use crate::names;
use crate::setup::serving;

#[tokio::test]
async fn tools_are_listed_page_by_page_and_in_order() {
    let mut client = Client::stateless(service().0);
    let opened = client.initialize(json!({})).await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(opened["result"]["capabilities"]["tools"], json!({"listChanged": true}));
    let first = client.ask(1, "tools/list", json!({})).await["result"].take();
    let second =
        client.ask(2, "tools/list", json!({"cursor": first["nextCursor"]})).await["result"].take();
    assert_eq!(
        [names(&first), names(&second)].concat(),
        ["ask", "draw", "echo", "fail", "halt", "text", "wait"]
    );
    assert_eq!(second.get("nextCursor"), None);
    let echo = &first["tools"][2];
    assert_eq!((&echo["title"], &echo["outputSchema"]["type"]), (&json!("Echo"), &json!("object")));
    let bad = client.ask(3, "tools/list", json!({"cursor": "?"})).await;
    assert_eq!(bad["error"]["code"], -32602);
    client.end().await.unwrap();
}

#[tokio::test]
async fn each_call_ending_is_answered_in_both_eras() {
    let cases = rows::<(&str, Value, &str, Value)>("server/mcp/lines", "endings");
    for (mut client, meta) in eras(&service().0, &McpOptions::default()).await {
        for (id, (tool, arguments, pointer, expected)) in (1..).zip(&cases) {
            let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
            let answer = client.ask(id, "tools/call", params).await;
            assert_eq!(answer.pointer(pointer), Some(expected), "{tool} {pointer} {answer}");
        }
        client.end().await.unwrap();
    }
}

#[tokio::test]
async fn question_is_elicited_from_capable_client() {
    let mut client = Client::open(service().0, json!({"elicitation": {}})).await;
    for (content, pointer, expected) in rows::<(Value, &str, Value)>("server/mcp/lines", "answers")
    {
        client.send(call(1, "ask")).await;
        let asked = client.answer(content).await;
        assert_eq!(asked["method"], "elicitation/create");
        assert_eq!(asked["params"]["message"], "Which one?");
        assert_eq!(
            asked["params"]["requestedSchema"]["properties"]["answer"]["enum"],
            json!(["red", "blue"])
        );
        let answer = client.receive().await;
        assert_eq!(answer.pointer(pointer), Some(&expected), "{answer}");
    }
    client.send(call(1, "ask")).await;
    let asked = client.receive().await;
    let error = json!({"code": -1, "message": "there is no screen"});
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
    let answer = client.receive().await.to_string();
    assert!(answer.contains("-32603") && answer.contains("there is no screen"), "{answer}");
    client.end().await.unwrap();
}

#[tokio::test]
async fn client_without_elicitation_answers_in_metadata() {
    let mut client = Client::open(service().0, json!({})).await;
    let told = client.call(1, "ask").await;
    assert_eq!(told["result"]["isError"], false);
    let state = &told["result"]["_meta"]["toolcell/question"]["state"];
    let answer = client.ask(2, "tools/call", resume(state, "red")).await;
    let expected = json!({"answer": "red", "state": {"secret": 7}});
    assert_eq!(answer["result"]["structuredContent"], expected);
    let bad = client.ask(3, "tools/call", resume(&json!("tc2.AAAA"), "red")).await;
    is_refused(&bad, -32602, "resume_tampered");
    client.end().await.unwrap();
}

#[tokio::test]
async fn stateless_question_returns_input_required() {
    let mut client = Client::stateless(service().0);
    let asked = client.ask(1, "tools/call", json!({"name": "ask", "_meta": forms()})).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert_eq!(asked["result"]["inputRequests"]["answer"]["method"], "elicitation/create");
    let state = &asked["result"]["requestState"];
    let retry = |state: &Value, responses: &Value, arguments: Value| json!({"name": "ask", "arguments": arguments, "requestState": state, "inputResponses": responses, "_meta": forms()});
    let answered = json!({"answer": {"action": "accept", "content": {"answer": "blue"}}});
    let (declined, none) = (json!({"answer": {"action": "decline"}}), json!({}));
    let later = json!({"answer": {"action": "later"}});
    let color = json!({"answer": "blue", "state": {"secret": 7}});
    // A state is verified before any of it is used, whatever the client answers.
    for (id, responses, pointer, expected) in [
        (2, &answered, "/result/structuredContent", color),
        (3, &none, "/result/resultType", json!("input_required")),
        (3, &declined, "/result/isError", json!(true)),
        (3, &later, "/error/code", json!(-32602)),
    ] {
        let told = client.ask(id, "tools/call", retry(state, responses, json!({}))).await;
        assert_eq!(told.pointer(pointer), Some(&expected), "{responses}: {told}");
    }
    for responses in [&answered, &declined, &none] {
        for (state, name, arguments, code) in [
            (&json!("AAAA"), "ask", json!({}), "resume_tampered"),
            (state, "ask", json!({"other": 1}), "resume_other_arguments"),
            (state, "echo", json!({}), "resume_other_tool"),
            (state, "nothing", json!({}), "resume_other_tool"),
        ] {
            let mut params = retry(state, responses, arguments);
            params["name"] = name.into();
            is_refused(&client.ask(4, "tools/call", params).await, -32602, code);
        }
    }
    client.end().await.unwrap();
}

/// A client may parse its arguments and write them again before it repeats the request.
#[tokio::test]
async fn stateless_answer_fits_equal_arguments_in_another_notation() {
    let mut client = Client::stateless(service().0);
    let params =
        |arguments: Value| json!({"name": "ask", "arguments": arguments, "_meta": forms()});
    let asked = client.ask(1, "tools/call", params(json!({"n": 1.0, "m": 2}))).await;
    for (arguments, fits) in [(json!({"m": 2.0, "n": 1}), true), (json!({"m": 2, "n": 1.5}), false)]
    {
        let mut retry = params(arguments);
        retry["requestState"] = asked["result"]["requestState"].clone();
        retry["inputResponses"] =
            json!({"answer": {"action": "accept", "content": {"answer": "blue"}}});
        let told = client.ask(2, "tools/call", retry).await;
        if fits {
            assert_eq!(told["result"]["structuredContent"]["answer"], "blue", "{told}");
        } else {
            is_refused(&told, -32602, "resume_other_arguments");
        }
    }
    client.end().await.unwrap();
}

#[tokio::test]
async fn cancelled_request_stops_tool_and_gets_no_answer() {
    let (service, _, mut waits) = service();
    let mut client = Client::start(service.clone(), abrupt());
    client.initialize(json!({})).await;
    client.send(call(7, "wait")).await;
    assert_eq!(waits.recv().await, Some("started"));
    for _ in 0..2 {
        client.send(cancel(7)).await;
    }
    assert_eq!(waits.recv().await, Some("stopped"));
    // The next line is the answer to the next request.
    client.ask(8, "ping", json!({})).await;
    client.end().await.unwrap();
    assert_eq!(service.running(), 0);
}

/// Tests each row of the table of lines in `docs/mcp.md`, and the next line after it.
#[tokio::test]
async fn bad_line_is_answered_as_documented_next_is_read() {
    let documented = bad_input::rows("| line on standard input |");
    let row = |case: &str| {
        documented.iter().find(|row| row.case == case).unwrap_or_else(|| panic!("no row {case}"))
    };
    let is_as_the_page_says =
        |case: &str, answer: &Value| assert!(row(case).is_told_by(answer), "{case}: {answer}");
    let mut tried = BTreeSet::new();
    let (service, _, mut waits) = service();
    let mut client = Client::start(service, McpOptions { line: 1000, in_flight: 1, ..abrupt() });
    let case = "a request before `initialize` that names no revision";
    for id in [1, 2] {
        let early = client.ask(id, "tools/list", json!({})).await;
        is_as_the_page_says(case, &early);
        let hint = early["error"]["data"]["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("`initialize`"), "{early}");
    }
    tried.insert(case);
    client.initialize(json!({})).await;
    let long = vec![b'x'; 100_000];
    let bad_lines = rows::<(&str, &str)>("server/mcp/lines", "bad_lines").into_iter();
    let lines = bad_lines
        .map(|(case, line)| (case, line.as_bytes()))
        .chain([("longer than `McpOptions::line`", &*long), ("no JSON", b"\xff")]);
    for (case, line) in lines {
        client.send_text(line).await;
        let answer = client.receive().await;
        is_as_the_page_says(case, &answer);
        if case == "an unknown method" {
            let text = answer["error"]["message"].as_str().unwrap();
            assert!(text.starts_with("this server does not"), "{answer}");
            assert!(answer["error"]["data"]["hint"].is_string(), "{answer}");
        }
        client.ask(9, "ping", json!({})).await;
        tried.insert(case);
    }
    client.send(call(1, "wait")).await;
    assert_eq!(waits.recv().await, Some("started"));
    let (same, more) =
        ("an id that a running request has", "more requests than `McpOptions::in_flight`");
    for (id, case) in [(1, same), (2, more)] {
        client.send(call(id, "wait")).await;
        is_as_the_page_says(case, &client.receive().await);
        tried.insert(case);
    }
    let case = "a cancellation of a request that does not run, also a second one";
    for id in [99, 1, 1] {
        client.send(cancel(id)).await;
    }
    assert_eq!(waits.recv().await, Some("stopped"));
    // None of them is answered: the next line is the next answer.
    client.send(cancel(1)).await;
    client.ask(3, "ping", json!({})).await;
    assert_eq!((row(case).code, row(case).word), (0, None));
    tried.insert(case);
    assert_eq!(tried, documented.iter().map(|row| row.case).collect(), "each row is tried");
}

#[tokio::test]
async fn last_line_without_newline_is_answered() {
    for last in ["ping", "tools/call"] {
        let mut client = Client::open(service().0, json!({})).await;
        let message = message(5, last, json!({"name": "text"}));
        client.send_last(message.to_string().as_bytes()).await;
        let answer = client.receive().await;
        assert_eq!((&answer["id"], answer["result"].is_object()), (&json!(5), true), "{answer}");
        client.end().await.unwrap();
    }
}

#[tokio::test]
async fn only_changed_tool_list_is_notified() {
    let (service, registry, _) = service();
    let mut client = Client::open(service.clone(), json!({})).await;
    client.ask(1, "ping", json!({})).await;
    service.replace(ServedTools::new(&registry));
    client.ask(2, "ping", json!({})).await;
    registry.unregister("text");
    service.replace(ServedTools::new(&registry));
    assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
    client.end().await.unwrap();
}

#[tokio::test]
async fn call_is_answered_after_end_of_input() {
    let (slow, go, _) = slow_tool();
    let (_, registry, _) = service();
    registry.register(slow).unwrap();
    let mut client = Client::open(serving(&registry), json!({"elicitation": {}})).await;
    client.send(call(6, "ask")).await;
    assert_eq!(client.receive().await["method"], "elicitation/create");
    client.send_last(call(7, "slow").to_string().as_bytes()).await;
    // The question ends, because no answer can arrive any more. The call continues.
    let ended = client.receive().await;
    assert_eq!((&ended["id"], ended["error"].is_object()), (&json!(6), true), "{ended}");
    go.notify_one();
    let answer = client.receive().await;
    assert_eq!(answer["id"], json!(7), "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], "late", "{answer}");
    client.end().await.unwrap();
}

#[tokio::test]
async fn closed_output_ends_the_server() {
    let (service, _, mut waits) = service();
    let ((ours, theirs), (output, closed)) =
        (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
    let serving =
        serve_lines(service.clone(), Principal::local(), McpOptions::default(), theirs, output);
    let serving = tokio::spawn(serving);
    let mut client = ours;
    let params = json!({"name": "wait", "_meta": stateless(json!({}))});
    let call = message(1, "tools/call", params);
    client.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    assert_eq!(waits.recv().await, Some("started"));
    drop(closed);
    client.write_all(b"{\n").await.unwrap();
    serving.await.unwrap().unwrap();
    assert_eq!((waits.recv().await, service.running()), (Some("stopped"), 0));
}

#[tokio::test]
async fn byte_order_mark_at_start_is_skipped() {
    let mut client = Client::stateless(service().0);
    client.send_text(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}").await;
    assert_eq!(client.receive().await["result"], json!({}));
    client.send_text(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}").await;
    assert_eq!(client.receive().await["error"]["code"], -32700, "elsewhere it is no JSON");
    client.end().await.unwrap();
}
