//! Tells for which type a keyword of JSON Schema matters, and reads the values that a schema lists.
//!
//! The parent module asks [`concerns`] for every keyword of a schema, so that the keyword can be
//! left out for other types. Other functions give the type of a value, the values that a schema
//! lists, and the formats that the API knows.

use serde_json::Value;

use super::Fields;

/// The types, in the order of the alternatives.
pub(super) const ANY: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];

/// Returns the only type that a keyword restricts, if there is one. For an integer it is `number`.
pub(super) fn concerns(keyword: &str) -> Option<&'static str> {
    match keyword {
        "additionalProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "maxProperties"
        | "minProperties"
        | "patternProperties"
        | "properties"
        | "propertyNames"
        | "required"
        | "unevaluatedProperties" => Some("object"),
        "contains" | "items" | "maxContains" | "maxItems" | "minContains" | "minItems"
        | "prefixItems" | "unevaluatedItems" | "uniqueItems" => Some("array"),
        "contentEncoding" | "contentMediaType" | "contentSchema" | "maxLength" | "minLength"
        | "pattern" => Some("string"),
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => {
            Some("number")
        }
        _ => None,
    }
}

/// Returns the values that a schema lists, if it lists any.
pub(super) fn values(schema: &Fields) -> Option<Vec<Value>> {
    if let Some(only) = schema.get("const") {
        return Some(vec![only.clone()]);
    }
    schema.get("enum")?.as_array().cloned()
}

/// Returns the type of a value, by its name in a schema.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns true if only `null` fits.
pub(super) fn is_null(schema: &Fields) -> bool {
    let only_null = |values: Vec<Value>| !values.is_empty() && values.iter().all(Value::is_null);
    schema.get("type").is_some_and(|kind| kind == "null") || values(schema).is_some_and(only_null)
}

/// Returns true for a format that the API supports.
pub(super) fn is_format(kind: &str, format: &Value) -> bool {
    let known: &[&str] = match kind {
        "string" => &["date-time"],
        "number" => &["float", "double"],
        "integer" => &["int32", "int64"],
        _ => &[],
    };
    format.as_str().is_some_and(|format| known.contains(&format))
}
