//! Tells how each keyword of JSON Schema is converted to Gemini's subset, and for which type it
//! matters.
//!
//! The parent module asks [`Keyword::of`] for every keyword of a schema: kept, converted, dropped,
//! or moved into the description. [`Keyword::restricts`] says if the keyword concerns values of a
//! type, so that it can be left out for others. Helpers give the type of a value, the values that a
//! schema lists, and the formats that the API knows.

use serde_json::{Map, Value};

/// The types, in the order of the alternatives.
pub(super) const ANY: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];

/// The conversion of a keyword, with the type that it concerns, if there is one. The keyword does
/// not restrict values of other types.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keyword {
    /// Converted elsewhere, or without a meaning of its own.
    Separate,
    /// Kept unchanged.
    Unchanged(&'static str),
    /// `enum` and `const`.
    Values,
    /// An exclusive bound.
    Bound,
    /// Allows or forbids undeclared members or items.
    Closed(&'static str),
    /// Kept for a few known values.
    Format,
    /// Without effect if it is false.
    Flag(Option<&'static str>),
    /// `properties`.
    Members,
    /// `required`.
    Required,
    /// `items`.
    Items,
    /// Moved into the description.
    Described(&'static str),
}

impl Keyword {
    /// Returns the conversion of a keyword, or `None` for one that JSON Schema does not have.
    pub(super) fn of(keyword: &str) -> Option<Self> {
        Some(match keyword {
            "$anchor" | "$comment" | "$defs" | "$id" | "$schema" | "definitions"
            | "description" | "id" | "title" | "type" => Self::Separate,
            "minProperties" | "maxProperties" => Self::Unchanged("object"),
            "minItems" | "maxItems" => Self::Unchanged("array"),
            "minLength" | "maxLength" | "pattern" => Self::Unchanged("string"),
            "minimum" | "maximum" => Self::Unchanged("number"),
            "enum" | "const" => Self::Values,
            "exclusiveMinimum" | "exclusiveMaximum" => Self::Bound,
            "additionalProperties" | "unevaluatedProperties" => Self::Closed("object"),
            "unevaluatedItems" => Self::Closed("array"),
            "format" => Self::Format,
            "uniqueItems" => Self::Flag(Some("array")),
            "deprecated" | "readOnly" | "writeOnly" => Self::Flag(None),
            "properties" => Self::Members,
            "required" => Self::Required,
            "items" => Self::Items,
            "dependentRequired" | "dependentSchemas" | "patternProperties" | "propertyNames" => {
                Self::Described("object")
            }
            "contains" | "minContains" | "maxContains" | "prefixItems" => Self::Described("array"),
            "contentEncoding" | "contentMediaType" | "contentSchema" => Self::Described("string"),
            "multipleOf" => Self::Described("number"),
            _ => return None,
        })
    }

    /// Returns the only type that the keyword restricts.
    pub(super) fn restricted_type(self) -> Option<&'static str> {
        match self {
            Self::Unchanged(kind) | Self::Closed(kind) | Self::Described(kind) => Some(kind),
            Self::Bound => Some("number"),
            Self::Flag(kind) => kind,
            Self::Members | Self::Required => Some("object"),
            Self::Items => Some("array"),
            Self::Separate | Self::Values | Self::Format => None,
        }
    }

    /// Returns true if the keyword restricts values of this type.
    pub(super) fn restricts(self, kind: &str) -> bool {
        self.restricted_type()
            .is_none_or(|concerns| concerns == kind || concerns == "number" && kind == "integer")
    }
}

/// Returns the values that a schema lists, if it lists any.
pub(super) fn values(schema: &Map<String, Value>) -> Option<Vec<Value>> {
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
pub(super) fn is_null(schema: &Map<String, Value>) -> bool {
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
