//! A JSON value that is kept as text, and is known to be valid and bounded.
//!
//! [`Json`] carries arguments, results and states through the host without building a tree.
//! [`Json::parse`] takes text of a model, a guest (the WebAssembly code of a tool) or a native
//! handler (a tool that is a Rust closure), and returns a `Json` or a [`JsonFault`], which says
//! where the text is invalid. The text is kept as it was written. It has at most
//! [`Json::MAX_DEPTH`] levels and [`Json::MAX_NODES`] values, and no object names a member twice. A
//! `Json` that an embedder (the program that uses this library) makes from a tree is checked later,
//! where it is used.
//!
//! Not here: the limits on the size in bytes, in `limits`; JSON Schema, in `schema`.

#[doc(hidden)]
pub mod canonical;
mod exact;
mod members;
mod strict;

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

#[doc(hidden)]
pub use exact::{exact, fits, scalars};
#[doc(hidden)]
pub use members::Members;
#[doc(hidden)]
pub use strict::{Size, check, measure, parse_measured, parse_strict, parse_within};

/// One JSON value (RFC 8259). It is kept as text, not as a tree, so it is cheap to pass on.
///
/// # Shape
/// As JSON: the value itself, as its author wrote it.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The maximum nesting depth of arrays and objects. It is the parser's own recursion limit:
    /// deeper text is refused before it can exhaust a stack.
    pub const MAX_DEPTH: usize = 127;
    /// The maximum number of values in one JSON text: every object, array, string, number, boolean
    /// and null counts as one. A tree takes up to 700 bytes for an object with one member, so the
    /// largest tree takes some 35 MB.
    pub const MAX_NODES: usize = 100_000;

    /// Checks `text` and keeps it.
    ///
    /// # Errors
    /// [`JsonFault`] if the text is not one JSON value, is nested deeper than [`Json::MAX_DEPTH`],
    /// or holds more than [`Json::MAX_NODES`] values.
    pub fn parse(text: String) -> Result<Self, JsonFault> {
        // The parser of raw values accepts text that no tree can hold. This check agrees with the
        // later checks of the tree.
        check(&text)?;
        RawValue::from_string(text).map(Self).map_err(|error| JsonFault::syntax(&error))
    }

    /// Checks `text` as [`parse`](Self::parse) does, and keeps nothing.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse).
    pub fn check(text: &str) -> Result<(), JsonFault> {
        check(text)
    }

    /// `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The text as an owned string.
    #[must_use]
    pub fn into_string(self) -> String {
        Box::<str>::from(self.0).into_string()
    }

    /// The value as a tree. A number that fits no 64-bit type becomes the nearest double: see
    /// [`to_exact_value`](Self::to_exact_value).
    #[must_use]
    pub fn to_value(&self) -> Value {
        // This can fail only for a value that an embedder made from a tree: because of its depth,
        // or because of a member name that the parser reserves.
        parse_measured(self.as_str()).unwrap_or(Value::Null)
    }

    /// The value as a tree, in which a whole number that neither a 64-bit type nor a double holds
    /// exactly is a string with all its digits.
    #[must_use]
    pub fn to_exact_value(&self) -> Value {
        parse_measured(&exact(self.as_str(), fits)).unwrap_or(Value::Null)
    }

    /// The canonical bytes of [`to_exact_value`](Self::to_exact_value): equal for equal values,
    /// whatever the spacing, the order of members and the spelling of numbers.
    #[doc(hidden)]
    #[must_use]
    pub fn canonical_bytes(&self) -> Vec<u8> {
        canonical::bytes(&self.to_exact_value())
    }

    /// Checks the depth and the number of values of a `Json` that an embedder made from a tree.
    #[doc(hidden)]
    pub fn check_size(&self) -> Result<(), JsonFault> {
        measure(self.as_str(), Self::MAX_DEPTH).map(drop)
    }
}

impl From<Value> for Json {
    /// Keeps the tree as text. A tree that is nested deeper than [`Json::MAX_DEPTH`] or holds more
    /// than [`Json::MAX_NODES`] values is refused later, where it is used: a handler's answer with
    /// it is an `invalid_return`.
    fn from(value: Value) -> Self {
        serde_json::value::to_raw_value(&value).map_or_else(|_| Self::null(), Self)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for Json {
    /// Compares values: spacing and the order of an object's members do not matter.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || self.to_value() == other.to_value()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        check(raw.get()).map_err(D::Error::custom)?;
        Ok(Self(raw))
    }
}

/// Reads a member that is present: `null` is a value, and differs from an absent member.
#[doc(hidden)]
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Returns true if a tree is nested deeper than [`Json::MAX_DEPTH`]. Does not recurse: such a tree
/// could exhaust the stack if it were written as text.
#[doc(hidden)]
pub fn is_too_deep(tree: &Value) -> bool {
    let mut open = vec![(tree, 0)];
    while let Some((value, outside)) = open.pop() {
        let levels = outside + 1;
        match value {
            Value::Array(_) | Value::Object(_) if levels > Json::MAX_DEPTH => return true,
            Value::Array(items) => open.extend(items.iter().map(|item| (item, levels))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, levels))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// Returns the JSON pointer of a member below a place.
#[doc(hidden)]
pub fn inside(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Decodes a step of a JSON pointer into a member name.
pub(crate) fn member_name(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Returns true for the default value, which is left out of JSON.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns a member that is required, or an error if it is absent.
#[doc(hidden)]
pub fn needed<T, E: serde::de::Error>(member: Option<T>, name: &'static str) -> Result<T, E> {
    member.ok_or_else(|| E::missing_field(name))
}

/// Returns arguments as JSON text. Blank text becomes `{}`: providers send it for a tool without
/// parameters.
#[doc(hidden)]
pub fn or_empty_object(text: String) -> String {
    if text.trim().is_empty() { "{}".to_owned() } else { text }
}

/// The reason why a text is not usable as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonFault {
    /// Not one JSON value.
    #[error("not valid JSON: {message}")]
    Syntax {
        /// The parser's message, with line and column.
        message: String,
        /// The line, from 1; 0 if the parser does not name it.
        line: usize,
        /// The column, from 1; 0 if the parser does not name it.
        column: usize,
    },
    /// Nested deeper than this many levels, [`Json::MAX_DEPTH`] or fewer.
    #[error("JSON nested deeper than {0} levels")]
    TooDeep(usize),
    /// More than this many values, [`Json::MAX_NODES`].
    #[error("JSON with more than {0} values")]
    TooManyNodes(usize),
}

impl JsonFault {
    /// Keeps the parser's message, except for a term of its own code, which it uses for a text that
    /// begins like `null` but continues differently.
    #[doc(hidden)]
    pub fn syntax(error: &serde_json::Error) -> Self {
        let message = error.to_string().replace("expected ident", "expected a value");
        Self::Syntax { message, line: error.line(), column: error.column() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cases::rows;

    #[test]
    fn json_depth_is_bounded_outside_strings() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(Json::parse(nested(Json::MAX_DEPTH)).is_ok());
        let too_deep = JsonFault::TooDeep(Json::MAX_DEPTH);
        assert_eq!(Json::parse(nested(Json::MAX_DEPTH + 1)), Err(too_deep.clone()));
        assert_eq!(parse_strict(&nested(100_000)), Err(too_deep));
        assert!(parse_strict(&nested(Json::MAX_DEPTH)).is_ok());
        assert!(serde_json::from_str::<Json>(&nested(Json::MAX_DEPTH + 1)).is_err());
        assert!(Json::parse(format!("\"{}\\\"[\"", "[".repeat(500))).is_ok());
        let tree = |levels| (1..levels).fold(json!([]), |inner, _| json!({"a": [], "b": inner}));
        assert!(!is_too_deep(&tree(Json::MAX_DEPTH)));
        assert!(is_too_deep(&tree(Json::MAX_DEPTH + 1)) && is_too_deep(&tree(3000)));
    }

    /// Fails without: the check of values that are not kept.
    #[test]
    fn strict_parser_refuses_ambiguous_json() {
        for bad in rows::<&str>("json", "strict_parser_refuses_ambiguous_json") {
            assert!(matches!(parse_strict(bad), Err(JsonFault::Syntax { .. })), "{bad}");
            assert_eq!(check(bad), parse_strict(bad).map(drop), "{bad}");
            assert!(Json::parse(bad.into()).is_err(), "{bad}");
            assert!(serde_json::from_str::<Json>(bad).is_err(), "{bad}");
        }
        let text = r#"{"n":18446744073709551615,"f":-0.5,"s":"ü","l":[null,true]}"#;
        assert_eq!(parse_strict(text), Ok(serde_json::from_str(text).unwrap()));
    }

    #[test]
    fn json_numbers_parse_by_value_or_are_refused() {
        for (text, read) in
            rows::<(&str, Value)>("json", "json_numbers_parse_by_value_or_are_refused")
        {
            let parsed = parse_strict(text).map(|value| value.to_string());
            assert_eq!(parsed, Ok(read.to_string()), "{text}");
            assert_eq!(Json::parse(text.to_owned()).unwrap().as_str(), text);
        }
        for bad in rows::<&str>("json", "invalid_numbers") {
            assert!(matches!(parse_strict(bad), Err(JsonFault::Syntax { .. })), "{bad}");
        }
    }

    #[test]
    fn json_keeps_text_and_compares_by_value() {
        let spaced = Json::parse("{ \"b\": 1,\n \"a\": 2 }".into()).unwrap();
        assert_eq!(spaced.as_str(), "{ \"b\": 1,\n \"a\": 2 }");
        assert_eq!(spaced, Json::from(serde_json::json!({"a": 2, "b": 1})));
    }
}
