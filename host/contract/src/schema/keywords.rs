//! Tables of the JSON Schema keywords: which contain subschemas, and which form each value must
//! have.
//!
//! The index, the translator and the pattern module use them to walk a schema. [`subschemas`]
//! returns the schemas inside of one keyword, for any draft; [`expected_form`] names the required
//! form if a value has another one, for example "a boolean"; [`each_subschema`] visits every
//! subschema that is an object. An unknown keyword contains no schemas and may have any form.

use serde_json::{Map, Value};

/// Keywords with one subschema, with a list of subschemas, and with a map of subschemas.
const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LIST: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
const MAP: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// The subschemas of a keyword.
pub(super) enum Subschemas<'a> {
    None,
    One(&'a Value),
    List(&'a [Value]),
    Map(&'a Map<String, Value>),
}

/// Returns the subschemas of a keyword, in any draft. A list of names in `dependencies` counts as
/// one.
pub(super) fn subschemas<'a>(keyword: &str, value: &'a Value) -> Subschemas<'a> {
    match value {
        Value::Array(list) if LIST.contains(&keyword) => Subschemas::List(list),
        Value::Object(map) if MAP.contains(&keyword) => Subschemas::Map(map),
        Value::Object(_) | Value::Bool(_) if ONE.contains(&keyword) => Subschemas::One(value),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => Subschemas::None,
    }
}

/// Returns the required form of a keyword's value, if the value has another form.
pub(super) fn expected_form(keyword: &str, value: &Value) -> Option<&'static str> {
    let is_text = |value: &Value| value.is_string();
    let texts = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(is_text));
    let is_type = |value: &Value| {
        let names = ["array", "boolean", "integer", "null", "number", "object", "string"];
        value.as_str().is_some_and(|name| names.contains(&name))
    };
    let (fits, form) = match keyword {
        "$anchor" | "$comment" | "$dynamicAnchor" | "$dynamicRef" | "$id" | "$recursiveRef"
        | "$ref" | "$schema" | "contentEncoding" | "contentMediaType" | "description"
        | "format" | "pattern" | "title" => (value.is_string(), "a string"),
        "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => {
            (value.is_boolean(), "a boolean")
        }
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => {
            (value.is_number(), "a number")
        }
        "multipleOf" => (value.as_f64().is_some_and(|number| number > 0.0), "a number above 0"),
        "maxContains" | "maxItems" | "maxLength" | "maxProperties" | "minContains" | "minItems"
        | "minLength" | "minProperties" => {
            let is_count =
                value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0);
            (is_count, "a whole number, 0 or above")
        }
        "enum" | "examples" => (value.is_array(), "an array"),
        "required" => (texts(value), "an array of strings"),
        "dependentRequired" => (
            value.as_object().is_some_and(|map| map.values().all(texts)),
            "an object of arrays of strings",
        ),
        "type" => {
            let many =
                value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_type));
            (many || is_type(value), "the name of a JSON type, or an array of them")
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
            (value.as_array().is_some_and(|list| !list.is_empty()), "an array of schemas")
        }
        _ if MAP.contains(&keyword) => (value.is_object(), "an object of schemas"),
        _ if ONE.contains(&keyword) => (value.is_object() || value.is_boolean(), "a schema"),
        _ => (true, ""),
    };
    (!fits).then_some(form)
}

/// Calls `look` with every subschema that is an object, the schema itself included.
pub(super) fn each_subschema(schema: &mut Value, look: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(keywords) = schema else { return };
    look(keywords);
    for (keyword, value) in keywords.iter_mut() {
        let keyword = keyword.as_str();
        if let Value::Array(list) = value
            && LIST.contains(&keyword)
        {
            list.iter_mut().for_each(|one| each_subschema(one, look));
        } else if let Value::Object(map) = value
            && MAP.contains(&keyword)
        {
            map.values_mut().for_each(|one| each_subschema(one, look));
        } else if ONE.contains(&keyword) {
            each_subschema(value, look);
        }
    }
}
