//! Generates JSON Schemas from Rust types, in a form that models and validators read well.
//!
//! Out: draft 2020-12; subschemas inline unless they recurse; no `$schema`, and no `title` at the
//! top; the range of an integer as `minimum` and `maximum` instead of a `format` that is not in any
//! standard.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// Keywords that already restrict the members of an object.
const SHAPE: [&str; 7] =
    ["properties", "patternProperties", "oneOf", "anyOf", "allOf", "$ref", "not"];

/// The schema of the arguments. `None` for a type that accepts anything.
pub(crate) fn of_arguments<T: JsonSchema>() -> Option<Value> {
    let Value::Object(mut schema) = of_input::<T>() else { return None };
    schema.remove("title");
    if schema.is_empty() {
        return None;
    }
    if !schema.contains_key("type") {
        schema.insert("type".to_owned(), json!("object"));
    }
    let takes_others =
        schema.get("additionalProperties").is_some_and(|others| others != &json!(false));
    if !takes_others && !SHAPE.iter().any(|keyword| schema.contains_key(*keyword)) {
        schema.insert("properties".to_owned(), json!({}));
    }
    Some(Value::Object(schema))
}

/// The schema of a type that a tool deserializes.
pub(crate) fn of_input<T: JsonSchema>() -> Value {
    top_level::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of a type that a tool serializes.
pub(crate) fn of_output<T: JsonSchema>() -> Value {
    top_level::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn top_level<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut settings = settings.with_transform(RecursiveTransform(plain_numbers));
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// Replaces the `format` of a number by `minimum` and `maximum`, which every validator checks.
fn plain_numbers(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let Some(format) = object.get("format").and_then(Value::as_str) else { return };
    let (low, high) = match format {
        "int8" => (json!(i8::MIN), json!(i8::MAX)),
        "int16" => (json!(i16::MIN), json!(i16::MAX)),
        "int32" => (json!(i32::MIN), json!(i32::MAX)),
        "uint8" => (json!(0), json!(u8::MAX)),
        "uint16" => (json!(0), json!(u16::MAX)),
        "uint32" => (json!(0), json!(u32::MAX)),
        "int64" => (json!(i64::MIN), json!(i64::MAX)),
        "int" => (json!(isize::MIN), json!(isize::MAX)),
        "uint64" => (json!(0), json!(u64::MAX)),
        // The definition is generated in a cell, where `usize` has 32 bits.
        "uint" => (json!(0), json!(usize::MAX)),
        // No maximum: not every JSON parser accepts numbers of that size.
        "uint128" => (json!(0), Value::Null),
        "int128" | "float" | "double" => (Value::Null, Value::Null),
        _ => return,
    };
    object.remove("format");
    bound(object, "minimum", low);
    bound(object, "maximum", high);
}

fn bound(object: &mut Map<String, Value>, keyword: &str, limit: Value) {
    if !limit.is_null() && !object.contains_key(keyword) {
        object.insert(keyword.to_owned(), limit);
    }
}
