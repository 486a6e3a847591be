//! A tool that asks twice: the value is made of both answers, in each way to answer a question.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcell::tool::Invocation;
use toolcell::{Json, Outcome, Question};
use toolcell_server::Service;
use toolcell_server::mcp::McpOptions;

use crate::mcp::client::{Client, accepted, call, eras, forms, retry};
use crate::setup::{native, registry, serving};

/// The questions and their answers.
const ROUNDS: [(&str, &str); 2] = [("Which city?", "Helsinki"), ("Which day?", "Friday")];

/// Returns a service of a tool that asks both questions, one after the other, and of one that asks
/// forever.
fn service() -> Service {
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
    let nag = async |_: Value| Outcome::AskUser(Question::new("Really?"));
    serving(&registry([native("ask", ask), native("nag", nag)]))
}

#[track_caller]
fn has_both_answers(told: &Value) {
    let expected = json!({"city": "Helsinki", "day": "Friday"});
    assert_eq!(told["result"]["structuredContent"], expected, "{told}");
    assert_eq!(told["result"]["isError"], false, "{told}");
}

#[tokio::test]
async fn two_stateless_questions_return_two_sealed_states() {
    let mut client = Client::stateless(service());
    let mut told = client.ask(0, "tools/call", json!({"name": "ask", "_meta": forms()})).await;
    let mut states = Vec::new();
    for (id, (question, answer)) in (1..).zip(ROUNDS) {
        assert_eq!(told["result"]["resultType"], "input_required", "{told}");
        let asked = &told["result"]["inputRequests"]["answer"]["params"]["message"];
        assert_eq!(asked, question, "{told}");
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
    let asked = &again["result"]["inputRequests"]["answer"]["params"]["message"];
    assert_eq!(asked, "Which day?", "{again}");
    has_both_answers(&client.ask(5, "tools/call", retry(&states[1], "Friday")).await);
    client.end().await.unwrap();
}

#[tokio::test]
async fn session_elicits_two_questions_in_one_request() {
    let mut client = Client::open(service(), json!({"elicitation": {}})).await;
    client.send(call(1, "ask")).await;
    for (question, answer) in ROUNDS {
        let asked = client.answer(accepted(answer)).await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert_eq!(asked["params"]["message"], json!(question), "{asked}");
    }
    let told = client.receive().await;
    assert_eq!(told["id"], 1, "{told}");
    has_both_answers(&told);
    client.end().await.unwrap();
}

#[tokio::test]
async fn endless_questions_end_with_an_error() {
    let mut client = Client::open(service(), json!({"elicitation": {}})).await;
    client.send(call(1, "nag")).await;
    for _ in 0..16 {
        let asked = client.answer(accepted("no")).await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
    }
    let told = client.receive().await;
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(1), &json!(-32603)), "{told}");
    client.end().await.unwrap();
}

#[tokio::test]
async fn metadata_answers_two_questions_without_elicitation() {
    for (mut client, meta) in eras(&service(), &McpOptions::default()).await {
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
