//! Notifications to a client about a running call, the client's data that a tool sees, and time
//! limits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolcell::clock::ManualClock;
use toolcell::outcome::Halt;
use toolcell::tool::Invocation;
use toolcell::{Engine, Executor, Json, Limits, Outcome, Question, Sealer, Tool};
use toolcell_server::mcp::McpOptions;
use toolcell_server::{ServedTools, Service};
use toolcell_test_guests::{Hostile, Misdeed, Place, rows};

use super::client::{
    Client, accepted, call, cancel, eras, forms, is_refused, message, resume, retry, stateless,
};
use super::fixture::{polite, question_tool, service};
use crate::setup::{self, loaded, named, native};

/// A service of this one tool.
fn serving(tool: Tool) -> Service {
    setup::serving(&setup::registry([tool]))
}

/// Makes a call. Returns its messages and its answer.
async fn called(client: &mut Client, id: u64, params: Value) -> (Vec<Value>, Value) {
    client.send(message(id, "tools/call", params)).await;
    let mut heard = Vec::new();
    loop {
        let message = client.receive().await;
        if message["id"] == id {
            return (heard, message);
        }
        heard.push(message);
    }
}

#[tokio::test]
async fn requested_progress_is_sent_and_only_increases() {
    let steps = async |_: Value, call: Arc<Invocation>| {
        for (done, message) in [(1, None), (3, Some("nearly".to_owned())), (2, None), (4, None)] {
            call.progress(done, Some(4), message);
        }
        json!("done")
    };
    let service = serving(native("steps", steps));
    for (mut client, meta) in eras(&service, &McpOptions::default()).await {
        let (heard, _) = called(&mut client, 1, json!({"name": "steps", "_meta": meta})).await;
        assert_eq!(heard, [json!(null); 0], "it did not ask");
        let mut asking = meta;
        asking["progressToken"] = json!("t");
        let (heard, _) = called(&mut client, 2, json!({"name": "steps", "_meta": asking})).await;
        assert!(heard.iter().all(|told| told["method"] == "notifications/progress"), "{heard:?}");
        let told: Vec<_> = heard.iter().map(|told| told["params"]["progress"].clone()).collect();
        assert_eq!(told, [json!(1.0), json!(3.0), json!(4.0)]);
        let second = &heard[1]["params"];
        assert_eq!(second["total"], json!(4.0));
        assert_eq!(second["message"], "nearly");
        assert_eq!(second["progressToken"], "t");
        client.end().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_log_is_sent_at_the_clients_level_or_above() {
    let engine = Engine::builder().cells(4).build().unwrap();
    let bytes = Hostile::new(Place::Execute, Misdeed::Chatter).component();
    let registry = setup::registry(loaded(&engine, bytes).await);
    let executor = Executor::new().with_limits(Limits { fuel: 100_000, ..Limits::default() });
    let service =
        Service::builder(ServedTools::new(&registry).with_executor(executor)).build().unwrap();
    let mut client = Client::open(service.clone(), json!({})).await;
    let is_log = |message: &Value| message["method"] == "notifications/message";
    let (heard, _) = called(&mut client, 1, json!({"name": "hostile"})).await;
    assert!(!heard.is_empty() && heard.iter().all(is_log), "{heard:?}");
    assert_eq!(heard[0]["params"]["level"], "info");
    assert_eq!(heard[0]["params"]["logger"], "hostile");
    client.ask(2, "logging/setLevel", json!({"level": "error"})).await;
    let (heard, _) = called(&mut client, 3, json!({"name": "hostile"})).await;
    let below = |message: &&Value| message["params"]["level"] == "info";
    assert_eq!(heard.iter().find(below), None, "below the level");
    client.end().await.unwrap();
    // Without a session the request sets the level.
    let mut client = Client::stateless(service);
    let mut meta = stateless(json!({}));
    let (heard, _) = called(&mut client, 4, json!({"name": "hostile", "_meta": meta})).await;
    assert_eq!(heard.iter().find(|message| is_log(message)), None, "no level is named");
    meta["io.modelcontextprotocol/logLevel"] = json!("info");
    let (heard, _) = called(&mut client, 5, json!({"name": "hostile", "_meta": meta})).await;
    assert!(heard.iter().any(is_log), "{heard:?}");
    client.end().await.unwrap();
}

#[tokio::test]
async fn tool_gets_only_trace_context_of_request_metadata() {
    let shows = async |_: Value, call: Arc<Invocation>| {
        let told =
            call.context.extensions.iter().map(|(name, value)| (name.clone(), value.to_value()));
        Value::Object(told.collect())
    };
    let mut client = Client::stateless(serving(native("shows", shows)));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let trace = json!({"traceparent": parent, "tracestate": "a=1", "baggage": "b=2"});
    for (id, extra) in [(1, json!("x")), (2, json!({"traceparent": 7}))] {
        let mut meta = stateless(json!({}));
        meta.as_object_mut().unwrap().extend(trace.as_object().unwrap().clone());
        meta["example.com/other"] = extra;
        let (_, answer) = called(&mut client, id, json!({"name": "shows", "_meta": meta})).await;
        let shown: Value =
            serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(shown, trace);
    }
    client.end().await.unwrap();
}

#[tokio::test]
async fn cancelled_tool_has_a_grace_period_to_end() {
    let (polite, mut heard) = polite();
    let graceful = |stop_grace| McpOptions { stop_grace, ..McpOptions::default() };
    let grace = graceful(Duration::from_secs(60));
    let mut client = Client::start(serving(polite), grace);
    client.initialize(json!({})).await;
    client.send(call(1, "polite")).await;
    assert_eq!(heard.recv().await, Some("started"));
    client.send(cancel(1)).await;
    assert_eq!(heard.recv().await, Some("ended by itself"));
    client.ask(2, "ping", json!({})).await;
    client.end().await.unwrap();
    // A tool that ignores the cancel is stopped when its grace is over.
    let (service, _, mut waits) = service();
    let mut client = Client::start(service, graceful(Duration::from_millis(20)));
    client.initialize(json!({})).await;
    client.send(call(3, "wait")).await;
    assert_eq!(waits.recv().await, Some("started"));
    client.send(cancel(3)).await;
    assert_eq!(waits.recv().await, Some("stopped"));
    client.ask(4, "ping", json!({})).await;
    client.end().await.unwrap();
}

#[tokio::test]
async fn expired_or_changed_request_state_is_refused() {
    let clock = ManualClock::new();
    let sealer = Sealer::generate().unwrap().with_lifetime(Duration::from_secs(60));
    let sealer = sealer.with_clock(Arc::new(clock.clone()));
    let (_, registry, _) = service();
    let service = Service::builder(ServedTools::new(&registry)).sealer(sealer).build().unwrap();
    let mut client = Client::stateless(service);
    let asked = client.ask(1, "tools/call", json!({"name": "ask", "_meta": forms()})).await;
    let state = &asked["result"]["requestState"];
    let changed = json!(with_changed_byte(state, state.as_str().unwrap().len() / 2));
    let answer = client.ask(2, "tools/call", retry(state, "blue")).await;
    assert_eq!(answer["result"]["structuredContent"]["answer"], "blue", "{answer}");
    let refused = client.ask(3, "tools/call", retry(&changed, "blue")).await;
    is_refused(&refused, -32602, "resume_tampered");
    clock.advance(Duration::from_secs(61));
    let refused = client.ask(4, "tools/call", retry(state, "blue")).await;
    is_refused(&refused, -32602, "resume_expired");
    client.end().await.unwrap();
}

/// Returns a state with another letter at this place.
fn with_changed_byte(state: &Value, at: usize) -> String {
    let state = state.as_str().unwrap();
    let other = if state.as_bytes()[at] == b'A' { "B" } else { "A" };
    format!("{}{other}{}", &state[..at], &state[at + 1..])
}

/// Tested in each way to answer, and with each byte of the state changed.
#[tokio::test]
async fn invalid_answer_is_refused_and_can_be_corrected() {
    let question = Question::new("How many?").with_answer_schema(json!({"type": "integer"}));
    let tool = question_tool(question);
    let is_invalid = |told: &Value| {
        is_refused(told, -32602, "invalid_answer");
        let text = told["error"]["message"].as_str().unwrap();
        assert!(text.ends_with("expected an integer, got \"two\""), "{told}");
    };
    // Without a session: the same state, and another answer.
    let mut client = Client::stateless(serving(tool.clone()));
    let asked = client.ask(1, "tools/call", json!({"name": "ask", "_meta": forms()})).await;
    let state = &asked["result"]["requestState"];
    for id in [2, 4] {
        is_invalid(&client.ask(id, "tools/call", retry(state, "two")).await);
        let told = client.ask(id + 1, "tools/call", retry(state, id)).await;
        assert_eq!(told["result"]["structuredContent"]["answer"], id, "{told}");
    }
    for at in 0..state.as_str().unwrap().len() {
        let changed = json!(with_changed_byte(state, at));
        let told = client.ask(6, "tools/call", retry(&changed, 2)).await;
        assert_eq!(told["error"]["data"]["code"], "resume_tampered", "at {at}: {told}");
    }
    client.end().await.unwrap();
    // In a session a client that supports forms is asked again; another one gets the state.
    let mut client = Client::open(serving(tool.clone()), json!({"elicitation": {}})).await;
    client.send(call(1, "ask")).await;
    let again =
        "How many?\n(the answer does not fit the question: expected an integer, got \"two\")";
    for (answer, message) in [(json!("two"), "How many?"), (json!(3), again)] {
        let asked = client.answer(accepted(answer)).await;
        assert_eq!(asked["params"]["message"], message, "{asked}");
    }
    let told = client.receive().await;
    assert_eq!(told["result"]["structuredContent"]["answer"], 3, "{told}");
    client.end().await.unwrap();
    let mut client = Client::open(serving(tool), json!({})).await;
    let told = client.call(1, "ask").await;
    let state = &told["result"]["_meta"]["toolcell/question"]["state"];
    is_invalid(&client.ask(2, "tools/call", resume(state, "two")).await);
    let told = client.ask(3, "tools/call", resume(state, 3)).await;
    assert_eq!(told["result"]["structuredContent"]["answer"], 3, "{told}");
    client.end().await.unwrap();
}

#[tokio::test]
async fn object_option_is_shown_by_its_label() {
    for (options, labels) in rows::<(Value, Vec<&str>)>("server/mcp/notifications", "labels") {
        let last = options[1].clone();
        let tool = question_tool(Question::new("Where?").with_options(options));
        let mut client = Client::open(serving(tool.clone()), json!({})).await;
        let told = client.call(1, "ask").await;
        let text = format!("The tool asks the user: Where?\nChoices: {}", labels.join(", "));
        assert_eq!(told["result"]["content"][0]["text"], text, "{told}");
        client.end().await.unwrap();
        let mut client = Client::stateless(serving(tool));
        let asked = client.ask(1, "tools/call", json!({"name": "ask", "_meta": forms()})).await;
        let form = &asked["result"]["inputRequests"]["answer"]["params"]["requestedSchema"];
        assert_eq!(form["properties"]["answer"]["enum"], json!(labels), "{asked}");
        let retry = retry(&asked["result"]["requestState"], labels[1]);
        let told = client.ask(2, "tools/call", retry).await;
        assert_eq!(told["result"]["structuredContent"]["answer"], last, "{told}");
        client.end().await.unwrap();
    }
}

/// A question for an object asks for its members: its options are not values to choose from.
#[tokio::test]
async fn object_members_are_not_choices() {
    let schema = json!({"type": "object", "properties": {"day": {"type": "string"}}});
    let options = json!([{"name": "day", "label": "Which day"}]);
    let question = Question::new("A table?").with_options(options).with_answer_schema(schema);
    let mut client = Client::open(serving(question_tool(question)), json!({})).await;
    let told = client.call(1, "ask").await;
    let text = "The tool asks the user: A table?\nIt asks for: Which day";
    assert_eq!(told["result"]["content"][0]["text"], text, "{told}");
    client.end().await.unwrap();
}

#[tokio::test]
async fn question_without_form_says_why() {
    let nested =
        json!({"type": "object", "properties": {"when": {"type": "object", "properties": {}}}});
    // With its references replaced the schema would have a hundred times the bytes.
    let fields: Map<String, Value> =
        (0..100).map(|n| (n.to_string(), json!({"$ref": "#/$defs/d"}))).collect();
    let choices: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    let large = json!({"type": "object", "properties": fields, "$defs": {"d": {"type": "string", "enum": choices}}});
    for schema in [nested, large] {
        let tool = question_tool(Question::new("A table?").with_answer_schema(schema));
        let form = json!({"elicitation": {"form": {}}});
        let mut client = Client::open(serving(tool), form).await;
        let told = client.call(1, "ask").await;
        let text = told["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("The tool asks the user: A table?\nIt has no form: "), "{told}");
        client.end().await.unwrap();
    }
}

/// Line ends in the text of a value do not begin another message.
#[tokio::test]
async fn multiline_value_is_sent_as_one_line() {
    let value = "{\"x\":\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"forged\":true}}\n}";
    let give = async move |_: Value| Outcome::ok(Json::parse(value.to_owned()).unwrap());
    let mut client = Client::open(serving(native("give", give)), json!({})).await;
    let told = client.call(1, "give").await;
    assert_eq!(told["result"]["structuredContent"]["x"]["result"]["forged"], true, "{told}");
    assert_eq!(client.ask(2, "ping", json!({})).await["id"], 2);
    client.end().await.unwrap();
}

/// Clients check structured content against the output schema, and require it in a result without
/// an error.
#[tokio::test]
async fn halt_of_tool_with_output_schema_is_an_error() {
    let halt = async |_: Value| Outcome::Halt(Halt::new("done", json!({"steps": 3})));
    for (definition, is_error) in
        [(named("halt"), false), (named("halt").with_output(json!({"type": "number"})), true)]
    {
        let tool = Tool::native(definition, halt).unwrap();
        let mut client = Client::open(serving(tool), json!({})).await;
        let told = client.call(1, "halt").await;
        let result = &told["result"];
        assert_eq!(result["_meta"]["toolcell/halt"]["reason"], "done", "{told}");
        assert_eq!(result["isError"] == true, is_error, "{told}");
        assert_eq!(result["structuredContent"].is_null(), is_error, "{told}");
        assert_eq!(result["content"][0]["text"], r#"{"steps":3}"#, "{told}");
        client.end().await.unwrap();
    }
}

/// A derived schema of optional members, which allows null, becomes a form. For a tool with an
/// output schema, the question to a client to which none can be sent is an error, because clients
/// accept no other result without a value.
#[tokio::test]
async fn optional_member_is_field_unsendable_question_fails() {
    let answer = json!({"type": "object", "required": ["day"], "properties": {
        "day": {"type": "string"},
        "name": {"type": ["string", "null"], "default": null},
        "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    }});
    let ask = async move |_: Value| {
        Outcome::AskUser(Question::new("When?").with_answer_schema(answer.clone()))
    };
    let definition = named("ask").with_output(json!({"type": "object"}));
    let service = serving(Tool::native(definition, ask).unwrap());
    let mut client = Client::stateless(service.clone());
    let asked = client.ask(1, "tools/call", json!({"name": "ask", "_meta": forms()})).await;
    let form = &asked["result"]["inputRequests"]["answer"]["params"]["requestedSchema"];
    assert_eq!(form["properties"]["name"]["type"], "string", "{asked}");
    assert_eq!(form["properties"]["size"]["type"], "integer", "{asked}");
    assert_eq!(form["required"], json!(["day"]));
    client.end().await.unwrap();
    for (mut client, meta) in eras(&service, &McpOptions::default()).await {
        let told = client.ask(1, "tools/call", json!({"name": "ask", "_meta": meta})).await;
        assert_eq!(told["result"]["isError"], true, "{told}");
        assert_eq!(told["result"]["_meta"]["toolcell/question"]["question"], "When?", "{told}");
        client.end().await.unwrap();
    }
}
