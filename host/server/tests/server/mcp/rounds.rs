//! A tool that asks twice: the value is made of both answers, in each way to answer a question.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcell::tool::Invocation;
use toolcell::{Definition, Json, Outcome, Question, Registry, Tool};
use toolcell_server::mcp::McpOptions;
use toolcell_server::{ServedTools, Service};

use super::client::{Client, stateless};

/// The questions and their answers.
const ROUNDS: [(&str, &str); 2] = [("Which city?", "Helsinki"), ("Which day?", "Friday")];

/// Returns a client of a tool that asks both questions, one after the other.
fn client() -> Client {
    let ask = async |_: Value, call: Arc<Invocation>| {
        let question = |round: usize, city: Value| {
            let text = json!({"type": "string"});
            Question::new(ROUNDS[round].0)
                .with_answer_schema(text)
                .with_state(json!({"city": city, "kept": "canary"}))
        };
        let Some(resume) = &call.context.resume else {
            return Outcome::AskUser(question(0, Value::Null));
        };
        let state = resume.state.as_ref().map(Json::to_value).unwrap_or_default();
        match (&state["city"], resume.answer.to_value()) {
            (Value::Null, city) => Outcome::AskUser(question(1, city)),
            (city, day) => Outcome::ok(json!({"city": city, "day": day})),
        }
    };
    let registry = Registry::new();
    registry
        .register(Tool::native(Definition::new("ask", "Asks twice.").unwrap(), ask).unwrap())
        .unwrap();
    let nag = async |_: Value| Outcome::AskUser(Question::new("Really?"));
    registry
        .register(Tool::native(Definition::new("nag", "Asks forever.").unwrap(), nag).unwrap())
        .unwrap();
    Client::start(
        Service::builder(ServedTools::new(&registry)).build().unwrap(),
        McpOptions::default(),
    )
}

#[track_caller]
fn has_both_answers(told: &Value) {
    assert_eq!(
        told["result"]["structuredContent"],
        json!({"city": "Helsinki", "day": "Friday"}),
        "{told}"
    );
    assert_eq!(told["result"]["isError"], false, "{told}");
}

#[tokio::test]
async fn two_stateless_questions_return_two_sealed_states() {
    let mut client = client();
    let meta = stateless(json!({"elicitation": {"form": {}}}));
    let retry = |state: &Value, answer: &str| {
        let responses = json!({"answer": {"action": "accept", "content": {"answer": answer}}});
        json!({"name": "ask", "requestState": state, "inputResponses": responses, "_meta": meta})
    };
    let mut told = client.ask(0, "tools/call", json!({"name": "ask", "_meta": meta})).await;
    let mut states = Vec::new();
    for (id, (question, answer)) in (1..).zip(ROUNDS) {
        assert_eq!(told["result"]["resultType"], "input_required", "{told}");
        assert_eq!(
            told["result"]["inputRequests"]["answer"]["params"]["message"], question,
            "{told}"
        );
        // The tool's state and the previous answer are sealed.
        let text = told.to_string();
        assert!(!text.contains("canary") && !text.contains("Helsinki"), "{text}");
        let state = told["result"]["requestState"].take();
        assert!(state.as_str().is_some_and(|state| state.starts_with("tb1.")), "{state}");
        told = client.ask(id, "tools/call", retry(&state, answer)).await;
        states.push(state);
    }
    has_both_answers(&told);
    assert_ne!(states[0], states[1]);
    // A changed state is refused in the second round too, and each state belongs to its question.
    let second = states[1].as_str().unwrap();
    let bad = client.ask(3, "tools/call", retry(&json!(format!("{second}x")), "Friday")).await;
    assert_eq!(bad["error"]["data"]["code"], "resume_tampered", "{bad}");
    let again = client.ask(4, "tools/call", retry(&states[0], "Friday")).await;
    assert_eq!(
        again["result"]["inputRequests"]["answer"]["params"]["message"], "Which day?",
        "{again}"
    );
    has_both_answers(&client.ask(5, "tools/call", retry(&states[1], "Friday")).await);
    client.end().await.unwrap();
}

#[tokio::test]
async fn session_elicits_two_questions_in_one_request() {
    let mut client = client();
    client.initialize(json!({"elicitation": {}})).await;
    client
        .send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask"}}))
        .await;
    for (question, answer) in ROUNDS {
        let asked = client.receive().await;
        assert_eq!(
            (&asked["method"], &asked["params"]["message"]),
            (&json!("elicitation/create"), &json!(question)),
            "{asked}"
        );
        let content = json!({"action": "accept", "content": {"answer": answer}});
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": content})).await;
    }
    let told = client.receive().await;
    assert_eq!(told["id"], 1, "{told}");
    has_both_answers(&told);
    client.end().await.unwrap();
}

#[tokio::test]
async fn endless_questions_end_with_an_error() {
    let mut client = client();
    client.initialize(json!({"elicitation": {}})).await;
    client
        .send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nag"}}))
        .await;
    for _ in 0..16 {
        let asked = client.receive().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let content = json!({"action": "accept", "content": {"answer": "no"}});
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": content})).await;
    }
    let told = client.receive().await;
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(1), &json!(-32603)), "{told}");
    client.end().await.unwrap();
}

#[tokio::test]
async fn metadata_answers_two_questions_without_elicitation() {
    for meta in [json!({}), stateless(json!({}))] {
        let mut client = client();
        if meta == json!({}) {
            client.initialize(json!({})).await;
        }
        let mut told = client.ask(1, "tools/call", json!({"name": "ask", "_meta": meta})).await;
        for (id, (question, answer)) in (2..).zip(ROUNDS) {
            let asked = &told["result"]["_meta"]["toolcell/question"];
            assert_eq!(asked["question"], question, "{told}");
            let mut resumed = meta.clone();
            resumed["toolcell/resume"] = json!({"answer": answer, "state": asked["state"]});
            told = client.ask(id, "tools/call", json!({"name": "ask", "_meta": resumed})).await;
        }
        has_both_answers(&told);
        client.end().await.unwrap();
    }
}
