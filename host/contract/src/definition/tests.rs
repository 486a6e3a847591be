//! Tests of the names, the digest and the JSON form of a tool's definition.
//!
//! The digest must change with every change of the definition, at any depth of its schemas. A name
//! of the wrong form, and a definition whose calls could never succeed, must be refused.

use super::*;
use crate::cases::rows;

#[test]
fn definition_names_are_validated() {
    for good in ["a", "book_table", "Get-Weather2", &"x".repeat(64)] {
        assert!(Definition::new(good, "").is_ok(), "{good}");
    }
    for bad in ["", "a b", "naïve", "a.b", "a/b", "\u{202e}a", &"x".repeat(65)] {
        assert!(Definition::new(bad, "").unwrap_err().is_definition(), "{bad:?}");
    }
}

/// Changes every field, and every place within a schema.
#[test]
fn any_change_alters_the_hash() {
    let full = rows::<Value>("definition", "any_change_alters_the_hash").remove(0);
    let read = |value: Value| serde_json::from_value::<Definition>(value);
    let original = read(full.clone()).unwrap();
    let mut places = Vec::new();
    walk("", &full, &mut places);
    let mut blocked = 0;
    for place in places {
        for changed in changes(full.pointer(&place).unwrap()) {
            let mut mutated = full.clone();
            *mutated.pointer_mut(&place).unwrap() = changed.clone();
            // Skips changes that make the definition invalid or leave it equal, such as an omitted
            // hint, which counts as not set.
            if let Some(mutated) = read(mutated).ok().filter(|mutated| *mutated != original) {
                assert_ne!(mutated.hash(), original.hash(), "{place}: {changed}");
                blocked += 1;
            }
        }
    }
    assert!(blocked > 80, "{blocked}");
    let spaced = full.to_string().replace(',', " ,\n ");
    let spaced: Definition = serde_json::from_str(&spaced).unwrap();
    assert_eq!(spaced.hash(), original.hash(), "how it is written");
    let reordered = r#"{"description": "d", "parameters": {"b": 1, "a": 2}, "name": "t"}"#;
    let definition: Definition = serde_json::from_str(reordered).unwrap();
    let canonical = r#"{"description":"d","name":"t","parameters":{"a":2,"b":1}}"#;
    assert_eq!(definition.canonical(), canonical);
}

fn walk(place: &str, value: &Value, places: &mut Vec<String>) {
    places.push(place.to_owned());
    let mut below = |key: &str, value: &Value| walk(&format!("{place}/{key}"), value, places);
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| below(&index.to_string(), item))
        }
        Value::Object(members) => members.iter().for_each(|(name, value)| below(name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns variants of a value that differ in one small step.
fn changes(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![Value::from(0)],
        Value::Bool(set) => vec![Value::from(!set)],
        Value::Number(number) => {
            number.as_u64().map_or(vec![], |number| vec![Value::from(number - 1)])
        }
        Value::String(text) => vec![format!("{text} ").into(), format!("{text}\u{200b}").into()],
        Value::Array(items) => {
            let more = [items.as_slice(), &[Value::from("z")]].concat();
            vec![items.iter().skip(1).cloned().collect(), more.into()]
        }
        Value::Object(members) => {
            let without = |name: &String| {
                let mut left = members.clone();
                left.remove(name);
                Value::Object(left)
            };
            let mut more = members.clone();
            more.insert("zz".into(), "more".into());
            members.keys().map(without).chain([Value::Object(more)]).collect()
        }
    }
}

#[test]
fn definition_round_trips_as_json() {
    let full = Definition::new("t", "d")
        .unwrap()
        .with_parameters(serde_json::json!({"type": "object"}))
        .with_attribute("team", "math".into())
        .with_max_execution(Duration::from_millis(1500));
    let text = serde_json::to_string(&full).unwrap();
    assert!(text.contains("\"max_execution_ms\":1500"), "{text}");
    assert_eq!(serde_json::from_str::<Definition>(&text).unwrap(), full);
}

#[test]
fn uncallable_definition_is_refused() {
    let definition = || Definition::new("t", "d").unwrap();
    let of_type = |types: Value| definition().with_parameters(serde_json::json!({ "type": types }));
    for (definition, problem) in [
        (definition().with_max_execution(Duration::ZERO), Some("`max_execution` is zero")),
        (definition().with_max_execution(Duration::from_nanos(1)), None),
        (
            of_type("array".into()),
            Some("its `parameters` have the type \"array\", but arguments are always an object"),
        ),
        (of_type(vec!["array", "null"].into()), Some("arguments are always an object")),
        (of_type(vec!["null", "object"].into()), None),
        (of_type("object".into()), None),
        (definition().with_parameters(true.into()), None),
    ] {
        let refused =
            definition.check().err().filter(Error::is_definition).map(|error| error.to_string());
        assert_eq!(refused.is_some(), problem.is_some(), "{definition:?}: {refused:?}");
        let (refused, problem) = (refused.unwrap_or_default(), problem.unwrap_or_default());
        assert!(refused.contains(problem), "{refused}");
    }
}
