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
    for (text, schema, content, pointer, form, answer) in
        rows::<(&str, Value, Value, &str, Value, Value)>("server/mcp/forms", "questions")
    {
        let mut question = Question::new(text);
        if !schema.is_null() {
            question = question.with_answer_schema(schema.clone());
        }
        let (shown, given) = asked(question, content).await;
        assert_eq!(shown.pointer(pointer), Some(&form), "{text} {schema}");
        assert_eq!(given, answer, "{text} {schema}");
    }
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
