//! `/openapi.json`: each response has a description, and each example of the pages fits its schema.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcell_test_guests::rows;

fn document() -> Value {
    serde_json::from_str(toolcell_server::http::api_document()).expect("JSON")
}

#[test]
fn each_response_has_a_description() {
    let document = document();
    let paths = document["paths"].as_object().expect("paths");
    let operations: Vec<_> =
        paths.values().flat_map(|path| path.as_object().expect("operations")).collect();
    assert!(operations.len() > 10);
    for (method, operation) in operations {
        for (status, response) in operation["responses"].as_object().expect("responses") {
            let described = response["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(described, "{method} {}: {status}", operation["operationId"]);
        }
    }
}

#[test]
fn answers_of_calls_and_lists_have_a_schema() {
    let document = document();
    for (path, method, expected) in rows::<(&str, &str, &str)>("server/http/described", "answers") {
        let content = &document["paths"][path][method]["responses"]["200"]["content"];
        let schema = &content["application/json"]["schema"];
        assert_eq!(*schema, json!({"$ref": format!("#/components/schemas/{expected}")}), "{path}");
    }
}

/// Forbids members that a schema does not name, so that a member missing in the schema is noticed.
/// The real document allows further members, because later versions have more.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") {
                members.entry("additionalProperties").or_insert(json!(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Each block begins with the name of its schema.
#[test]
fn every_example_of_the_pages_fits_its_schema() {
    let mut components = document()["components"].clone();
    close(&mut components["schemas"]);
    let mut fitting = BTreeMap::new();
    for page in
        [include_str!("../../../../../docs/json.md"), include_str!("../../../../../docs/events.md")]
    {
        let mut form = None;
        for line in page.lines() {
            if let Some(name) = line.strip_prefix("```") {
                form = name.strip_prefix("json ").map(|name| match name {
                    "CallResult" => "Outcome",
                    "SettledCall" | "RunEvent" => "Event",
                    name => name,
                });
                continue;
            }
            // Forms that only the library has.
            let Some(name) =
                form.filter(|name| !["ResultView", "StepEvent", "Statistics"].contains(name))
            else {
                continue;
            };
            let schema =
                json!({"$ref": format!("#/components/schemas/{name}"), "components": components});
            let schema = jsonschema::validator_for(&schema).expect("a schema");
            let example: Value = serde_json::from_str(line).expect("JSON");
            if let Err(error) = schema.validate(&example) {
                panic!("{name}: {error}: {line}");
            }
            *fitting.entry(name).or_insert(0) += 1;
        }
    }
    for name in
        ["Completion", "Outcome", "Usage", "Definition", "RunOutcome", "RunHalt", "Step", "Event"]
    {
        assert!(fitting.contains_key(name), "no example of {name}: {fitting:?}");
    }
}
