//! Tells how each keyword of JSON Schema is converted to Gemini's subset, and for which type it
//! matters.
//!
//! The parent module asks [`Keyword::of`] for every keyword of a schema: kept, converted, dropped,
//! or moved into the description. [`restricts`] says if the keyword concerns values of a type, so
//! that it can be left out for others. Other functions give the type of a value, the values that a
//! schema lists, and the formats that the API knows.

use serde_json::Value;

use super::Fields;

/// The types, in the order of the alternatives.
pub(super) const ANY: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];

/// The conversion of a keyword.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keyword {
    /// Converted elsewhere, or without a meaning of its own.
    Separate,
    /// Kept unchanged.
    Unchanged,
    /// `enum` and `const`.
    Values,
    /// An exclusive bound.
    Bound,
    /// Allows or forbids undeclared members or items.
    Closed,
    /// Kept for a few known values.
    Format,
    /// Without effect if it is false.
    Flag,
    /// `properties`.
    Members,
    /// `required`.
    Required,
    /// `items`.
    Items,
    /// Moved into the description.
    Described,
}

impl Keyword {
    /// Returns the conversion of a keyword and the only type that it restricts, if there is one.
    /// `None` for a keyword that JSON Schema does not have.
    pub(super) fn of(keyword: &str) -> Option<(Self, Option<&'static str>)> {
        Some(match keyword {
            "$anchor" | "$comment" | "$defs" | "$id" | "$schema" | "definitions"
            | "description" | "id" | "title" | "type" => (Self::Separate, None),
            "minProperties" | "maxProperties" => (Self::Unchanged, Some("object")),
            "minItems" | "maxItems" => (Self::Unchanged, Some("array")),
            "minLength" | "maxLength" | "pattern" => (Self::Unchanged, Some("string")),
            "minimum" | "maximum" => (Self::Unchanged, Some("number")),
            "enum" | "const" => (Self::Values, None),
            "exclusiveMinimum" | "exclusiveMaximum" => (Self::Bound, Some("number")),
            "additionalProperties" | "unevaluatedProperties" => (Self::Closed, Some("object")),
            "unevaluatedItems" => (Self::Closed, Some("array")),
            "format" => (Self::Format, None),
            "uniqueItems" => (Self::Flag, Some("array")),
            "deprecated" | "readOnly" | "writeOnly" => (Self::Flag, None),
            "properties" => (Self::Members, Some("object")),
            "required" => (Self::Required, Some("object")),
            "items" => (Self::Items, Some("array")),
            "dependentRequired" | "dependentSchemas" | "patternProperties" | "propertyNames" => {
                (Self::Described, Some("object"))
            }
            "contains" | "minContains" | "maxContains" | "prefixItems" => {
                (Self::Described, Some("array"))
            }
            "contentEncoding" | "contentMediaType" | "contentSchema" => {
                (Self::Described, Some("string"))
            }
            "multipleOf" => (Self::Described, Some("number")),
            _ => return None,
        })
    }
}

/// Returns true if a keyword that restricts only one type, or all, restricts values of this type.
pub(super) fn restricts(only: Option<&str>, kind: &str) -> bool {
    only.is_none_or(|only| only == kind || only == "number" && kind == "integer")
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
