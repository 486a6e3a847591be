//! The forms of questions that ask for several values: a set of choices is shown as choices.

use serde_json::{Value, json};
use toolcell::Question;
use toolcell_test_guests::rows;

use crate::mcp::client::{Client, forms};
use crate::mcp::fixture::question_tool;
use crate::setup::{registry, serving};

/// Returns the form of the question, and what the tool gets when it is filled in with `content`.
async fn asked(question: Question, content: Value) -> (Value, Value) {
    let mut client = Client::stateless(serving(&registry([question_tool(question)])));
    let asked = client.ask(1, "tools/call", json!({"name": "ask", "_meta": forms()})).await;
    let form = asked["result"]["inputRequests"]["answer"]["params"]["requestedSchema"].clone();
    let responses = json!({"answer": {"action": "accept", "content": content}});
    let retry = json!({"name": "ask", "requestState": asked["result"]["requestState"],
        "inputResponses": responses, "_meta": forms()});
    let told = client.ask(2, "tools/call", retry).await;
    client.end().await.unwrap();
    (form, told["result"]["structuredContent"]["answer"].clone())
}

#[tokio::test]
async fn member_choices_become_enum_of_form_field() {
    let two = json!({"type": "string", "enum": ["18:30", "20:00"]});
    for (member, option, expected) in rows::<(Value, Value, Value)>("server/mcp/forms", "choices") {
        let schema = json!({"type": "object", "properties": {"time": member}});
        let mut question = Question::new("A table?").with_answer_schema(schema);
        if !option.is_null() {
            question = question.with_options(json!([option]));
        }
        let is_number = expected["type"] == "integer";
        let content = if is_number { json!({"time": 1}) } else { json!({"time": "20:00"}) };
        let (form, answer) = asked(question, content.clone()).await;
        assert_eq!(form["properties"]["time"], expected, "{member} {option}");
        assert_eq!(answer, content, "{member} {option}");
    }
    // Texts with titles stay as they are, because a form supports titles.
    let titled = json!({"oneOf": [{"const": "18:30", "title": "Early"}, {"const": "20:00", "title": "Late"}]});
    let question = Question::new("When?").with_answer_schema(titled.clone());
    let (form, answer) = asked(question, json!({"answer": "20:00"})).await;
    assert_eq!(form["properties"]["answer"]["oneOf"], titled["oneOf"], "{form}");
    assert_eq!(answer, json!("20:00"), "{form}");
    // One question whose answer is one of a few texts.
    let one = json!({"oneOf": [{"const": "18:30", "description": "Early."}, {"const": "20:00"}]});
    let (form, answer) =
        asked(Question::new("When?").with_answer_schema(one), json!({"answer": "20:00"})).await;
    assert_eq!((&form["properties"]["answer"], &answer), (&two, &json!("20:00")));
    // A question without a schema asks for a text.
    let (form, answer) = asked(Question::new("Your name?"), json!({"answer": "Ada"})).await;
    assert_eq!(form["properties"]["answer"], json!({"type": "string"}));
    assert_eq!(answer, json!("Ada"));
    // A long schema has no form.
    let long = json!({"type": "string", "description": "x".repeat(64 << 10)});
    let (form, _) = asked(Question::new("Your name?").with_answer_schema(long), json!({})).await;
    assert_eq!(form, Value::Null);
}

#[tokio::test]
async fn local_schema_reference_becomes_form_field() {
    let schema = json!({
        "type": "object",
        "properties": {"time": {"$ref": "#/$defs/Time", "title": "When?"}, "size": {"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}]}},
        "required": ["time"],
        "$defs": {"Time": {"type": "string", "enum": ["18:30", "20:00"]}, "Size": {"type": "integer"}},
    });
    let question = Question::new("A table?").with_answer_schema(schema);
    let (form, answer) = asked(question, json!({"time": "20:00", "size": 2})).await;
    let time = json!({"type": "string", "enum": ["18:30", "20:00"], "title": "When?"});
    assert_eq!(form["properties"]["time"], time, "{form}");
    assert_eq!(form["properties"]["size"]["type"], "integer", "{form}");
    assert_eq!(answer, json!({"time": "20:00", "size": 2}));
}
