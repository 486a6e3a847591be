//! A JSON Schema in few words, for a person who looks at a tool.
//!
//! In: a stranger's schema, of any shape. Out: parameters with a name, a type and a description.
//! Invariants: never fails, follows references to a bounded depth, says `any` where it is not sure.
//! Not here: whether a value fits (the library).

use serde_json::Value;

/// References and alternatives inside each other that are followed.
const MAX_DEPTH: usize = 5;
/// Alternatives and values that are spelled out.
const MAX_CHOICES: usize = 8;

/// One member of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) required: bool,
    pub(crate) description: String,
}

/// The members that an object schema names.
pub(crate) fn parameters(schema: &Value) -> Vec<Parameter> {
    let target = resolve(schema, schema, 0);
    let required = |name: &str| {
        let names = target.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required.as_str() == Some(name)))
    };
    let Some(members) = target.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let parameter = |(name, member): (&String, &Value)| Parameter {
        name: name.clone(),
        kind: kind_of(member, schema, 0),
        required: required(name),
        description: description(member, schema),
    };
    members.iter().map(parameter).collect()
}

/// The type of what the schema takes, in words.
pub(crate) fn kind(schema: &Value) -> String {
    kind_of(schema, schema, 0)
}

fn description(schema: &Value, root: &Value) -> String {
    let own = schema.get("description").or_else(|| resolve(schema, root, 0).get("description"));
    own.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What a reference points to, or the schema itself.
fn resolve<'a>(schema: &'a Value, root: &'a Value, depth: usize) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| {
        let pointer = reference.strip_prefix('#')?;
        root.pointer(pointer)
    });
    match target {
        Some(target) if depth < MAX_DEPTH => resolve(target, root, depth + 1),
        Some(_) | None => schema,
    }
}

fn kind_of(schema: &Value, root: &Value, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return "any".to_owned();
    }
    let schema = resolve(schema, root, depth);
    if *schema == Value::Bool(false) {
        return "nothing".to_owned();
    }
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    if let Some(values) = list("enum") {
        return choices(values.iter().map(ToString::to_string), " | ");
    }
    if let Some(schemas) = list("anyOf").or_else(|| list("oneOf")) {
        return choices(schemas.iter().map(|schema| kind_of(schema, root, depth + 1)), " or ");
    }
    if let Some([only]) = list("allOf").map(Vec::as_slice) {
        return kind_of(only, root, depth + 1);
    }
    match schema.get("type") {
        Some(Value::String(name)) => named(name, schema, root, depth),
        Some(Value::Array(names)) => {
            choices(names.iter().filter_map(Value::as_str).map(|name| named(name, schema, root, depth)), " or ")
        }
        Some(_) | None if schema.get("properties").is_some() => "object".to_owned(),
        Some(_) | None => "any".to_owned(),
    }
}

fn named(name: &str, schema: &Value, root: &Value, depth: usize) -> String {
    match (name, schema.get("items"), schema.get("format").and_then(Value::as_str)) {
        ("array", Some(items), _) => format!("array of {}", kind_of(items, root, depth + 1)),
        ("string", _, Some(format)) => format!("string ({format})"),
        _ => name.to_owned(),
    }
}

fn choices(kinds: impl Iterator<Item = String>, between: &str) -> String {
    let mut known: Vec<String> = Vec::new();
    for kind in kinds {
        if known.len() == MAX_CHOICES {
            known.push("…".to_owned());
            break;
        }
        if !known.contains(&kind) {
            known.push(kind);
        }
    }
    if known.is_empty() { "any".to_owned() } else { known.join(between) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds() {
        for (schema, expected) in [
            (json!({"type": "string"}), "string"),
            (json!({"type": ["string", "null"]}), "string or null"),
            (json!({"type": "string", "format": "date"}), "string (date)"),
            (json!({"type": "array", "items": {"type": "array", "items": true}}), "array of array of any"),
            (json!({"enum": ["a", 1]}), "\"a\" | 1"),
            (json!({"enum": (0..20).collect::<Vec<_>>()}), "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | …"),
            (
                json!({"anyOf": [{"type": "number"}, {"$ref": "#/$defs/x"}], "$defs": {"x": {"type": "null"}}}),
                "number or null",
            ),
            (json!({"allOf": [{"type": "integer"}]}), "integer"),
            (json!({"$ref": "#"}), "any"),
            (json!({"type": "array", "items": {"$ref": "#"}}), "array of array of array of array of array of any"),
            (json!({"$ref": "https://example.com/x"}), "any"),
            (json!({"properties": {}}), "object"),
            (json!(false), "nothing"),
            (json!(17), "any"),
        ] {
            assert_eq!(kind(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn members() {
        let schema = json!({
            "$defs": {"step": {"type": "object", "description": "A step."}},
            "properties": {
                "first": {"$ref": "#/$defs/step"},
                "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
            },
            "required": ["first", 3],
        });
        let found = parameters(&schema);
        let find = |name: &str| found.iter().find(|parameter| parameter.name == name).unwrap();
        assert_eq!((find("steps").kind.as_str(), find("steps").required), ("array of object", false));
        assert_eq!((find("first").description.as_str(), find("first").required), ("A step.", true));
        assert_eq!(parameters(&json!({"properties": 3})), []);
    }
}
