//! Builds the JSON Schema for a type of the component model.
//!
//! A function that is exported as a tool needs schemas for its parameters and its result. [`of`]
//! takes a [`Shape`] (the type, without wasmtime's representation) and returns the schema of
//! exactly the JSON that `value` reads and writes for it. [`object`] does so for a list of named
//! parameters; an `option` is not required, and other members are refused.

use serde_json::{Map, Value, json};

use super::shape::{Integer, Shape};
use super::value::{ERROR, NUMBERS_WITHOUT_JSON, OK, SOME};

/// Returns the schema of a value of this type.
pub(super) fn of(shape: &Shape) -> Value {
    match shape {
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Integer(integer) => whole(*integer),
        Shape::Float32 | Shape::Float64 => {
            json!({ "anyOf": [{ "type": "number" }, { "enum": NUMBERS_WITHOUT_JSON }] })
        }
        Shape::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        Shape::String => json!({ "type": "string" }),
        Shape::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
        Shape::List(item) => json!({ "type": "array", "items": of(item) }),
        Shape::Tuple(items) => json!({
            "type": "array",
            "prefixItems": items.iter().map(of).collect::<Vec<_>>(),
            "minItems": items.len(),
            "maxItems": items.len(),
        }),
        Shape::Record(fields) => object(fields),
        Shape::Enum(cases) => json!({ "enum": cases }),
        Shape::Flags(flags) => {
            json!({ "type": "array", "items": { "enum": flags }, "uniqueItems": true })
        }
        Shape::Option(some) if some.has_null() => {
            json!({ "anyOf": [tagged(SOME, of(some)), { "type": "null" }] })
        }
        Shape::Option(some) => json!({ "anyOf": [of(some), { "type": "null" }] }),
        Shape::Result(ok, error) => {
            json!({ "anyOf": [tagged(OK, or_null(ok)), tagged(ERROR, or_null(error))] })
        }
        Shape::Variant(cases) => {
            let plain: Vec<_> =
                cases.iter().filter(|(_, shape)| shape.is_none()).map(|(name, _)| name).collect();
            let plain = (!plain.is_empty()).then(|| json!({ "enum": plain }));
            let with =
                cases.iter().filter_map(|(name, shape)| Some(tagged(name, of(shape.as_ref()?))));
            let all: Vec<_> = plain.into_iter().chain(with).collect();
            json!({ "anyOf": all })
        }
    }
}

/// Returns the schema of an object with these members. An option may be left out.
pub(super) fn object(members: &[(String, Shape)]) -> Value {
    let properties: Map<_, _> =
        members.iter().map(|(name, shape)| (name.clone(), of(shape))).collect();
    let required: Vec<_> =
        members.iter().filter(|(_, shape)| !shape.has_null()).map(|(name, _)| name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn whole(integer: Integer) -> Value {
    let (least, most) = integer.range();
    let number = |number: i128| {
        i64::try_from(number).map_or_else(|_| json!(u64::MAX), |number| json!(number))
    };
    if !integer.is_wide() {
        return json!({ "type": "integer", "minimum": number(least), "maximum": number(most) });
    }
    let digits = if least < 0 { "^-?[0-9]{1,19}$" } else { "^[0-9]{1,20}$" };
    json!({ "type": ["integer", "string"], "minimum": number(least), "maximum": number(most), "pattern": digits })
}

fn tagged(name: &str, schema: Value) -> Value {
    json!({ "type": "object", "properties": { name: schema }, "required": [name], "additionalProperties": false })
}

fn or_null(shape: &Option<Box<Shape>>) -> Value {
    shape.as_ref().map_or_else(|| json!({ "type": "null" }), |shape| of(shape))
}
