//! One JSON value as text, known to be valid and not nested too deep.
//!
//! In: text of a model, a guest or a native handler. Out: [`Json`], or the [`JsonFault`] that says where it breaks.
//! Invariants: a `Json` always holds valid JSON of at most [`MAX_DEPTH`] levels; its text is what its maker wrote.
//! Not here: sizes ([`Limits`](crate::Limits)) and schemas.

pub(crate) mod canonical;

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::defence::{Defence, stands};

/// How many arrays and objects may stand inside each other. The parser's own recursion bound: deeper text is refused
/// before it can exhaust a stack.
pub const MAX_DEPTH: usize = 127;

/// Members that the parser beneath takes as words to itself: a tree with one would read otherwise the second time.
const RESERVED: &str = "$serde_json::private::";

/// One JSON value (RFC 8259). Cheap to pass on: the text is kept, not a tree.
///
/// # Shape
/// As JSON: the value itself, in the words of whoever wrote it.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Checks `text` and keeps it.
    ///
    /// # Errors
    /// [`JsonFault`] when the text is not one JSON value or nests deeper than [`MAX_DEPTH`].
    pub fn parse(text: String) -> Result<Self, JsonFault> {
        // The parser that keeps text lets through what no tree can hold; this one means what the checks will see.
        parse_strict(&text)?;
        RawValue::from_string(text).map(Self).map_err(|error| JsonFault::Syntax(error.to_string()))
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

    /// The text, given away.
    #[must_use]
    pub fn into_string(self) -> String {
        Box::<str>::from(self.0).into_string()
    }

    /// The value as a tree. A number that fits no 64-bit type becomes the nearest double.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // Only what an embedder made from a tree of its own can fail here, by a member that the parser reserves.
        parse_strict(self.as_str()).unwrap_or(Value::Null)
    }
}

impl Json {
    /// Checks the depth of what an embedder made from a tree of its own, which nobody has checked.
    pub(crate) fn check_depth(&self) -> Result<(), JsonFault> {
        check_depth(self.as_str(), MAX_DEPTH)
    }
}

impl From<Value> for Json {
    /// Keeps the tree as text. One that nests deeper than [`MAX_DEPTH`] is noticed where it is used: a handler's answer
    /// with it is an `invalid_return`.
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
    /// Equal as values: spacing and the order of an object's members do not matter.
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
        parse_strict(raw.get()).map_err(D::Error::custom)?;
        Ok(Self(raw))
    }
}

/// A member that is there: `null` is a value, and not the same as none.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Why a text is not usable as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonFault {
    /// Not one JSON value; the parser's words, with line and column.
    #[error("not valid JSON: {0}")]
    Syntax(String),
    /// Nested deeper than this many levels, [`MAX_DEPTH`] or fewer.
    #[error("JSON nested deeper than {0} levels")]
    TooDeep(usize),
}

/// Parses `text` into a tree that can only mean one thing: an object that names a member twice is refused, because the
/// host would judge one of the two and a guest might read the other.
///
/// # Errors
/// [`JsonFault`] as for [`Json::parse`], and for a repeated member.
pub(crate) fn parse_strict(text: &str) -> Result<Value, JsonFault> {
    parse_within(text, MAX_DEPTH)
}

/// The same, with fewer levels.
pub(crate) fn parse_within(text: &str, levels: usize) -> Result<Value, JsonFault> {
    check_depth(text, levels)?;
    let mut parser = serde_json::Deserializer::from_str(text);
    Strict
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| JsonFault::Syntax(error.to_string()))
}

/// Counts brackets outside of strings. Linear, allocates nothing, and says nothing of validity.
fn check_depth(text: &str, levels: usize) -> Result<(), JsonFault> {
    if text.len() <= levels || !stands(Defence::JsonDepth) {
        return Ok(());
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > levels {
                    return Err(JsonFault::TooDeep(levels));
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// Builds a [`Value`] and refuses repeated members.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if name.starts_with(RESERVED) {
                return Err(A::Error::custom(format_args!("member `{name}` is reserved")));
            }
            if object.contains_key(&name) && stands(Defence::JsonMembers) {
                return Err(A::Error::custom(format_args!("member `{name}` stands twice in one object")));
            }
            let value = members.next_value_seed(Strict)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn depth_is_bounded_and_strings_do_not_count() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(Json::parse(nested(MAX_DEPTH)).is_ok());
        assert_eq!(Json::parse(nested(MAX_DEPTH + 1)), Err(JsonFault::TooDeep(MAX_DEPTH)));
        assert_eq!(parse_strict(&nested(100_000)), Err(JsonFault::TooDeep(MAX_DEPTH)));
        assert!(parse_strict(&nested(MAX_DEPTH)).is_ok());
        assert!(serde_json::from_str::<Json>(&nested(MAX_DEPTH + 1)).is_err());
        assert!(Json::parse(format!("\"{}\\\"[\"", "[".repeat(500))).is_ok());
    }

    #[test]
    fn strict_refuses_what_could_be_read_twice() {
        for bad in [
            r#"{"$serde_json::private::RawValue":"42"}"#,
            r#"{"x":"\ud800"}"#,
            r#"{"a":1,"a":2}"#,
            r#"[{"b":{"a":1,"\u0061":2}}]"#,
            "{} {}",
            "",
            "1e999",
            "nul",
            "{\"a\":}",
        ] {
            assert!(matches!(parse_strict(bad), Err(JsonFault::Syntax(_))), "{bad}");
            assert!(Json::parse(bad.into()).is_err() && serde_json::from_str::<Json>(bad).is_err(), "{bad}");
        }
        let text = r#"{"n":18446744073709551615,"f":-0.5,"s":"ü","l":[null,true]}"#;
        assert_eq!(parse_strict(text), Ok(serde_json::from_str(text).unwrap()));
    }

    #[test]
    fn numbers_are_what_they_say_or_refused() {
        for (text, read) in [
            ("9007199254740993", json!(9_007_199_254_740_993_u64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("-9223372036854775809", json!(-9_223_372_036_854_775_808.0)),
            ("-0", json!(-0.0)),
            ("-0.0", json!(-0.0)),
            ("1E2", json!(100.0)),
            ("1e+2", json!(100.0)),
            ("10e-1", json!(1.0)),
            ("1e-999", json!(0.0)),
            ("0.1", json!(0.1)),
        ] {
            assert_eq!(parse_strict(text).map(|value| value.to_string()), Ok(read.to_string()), "{text}");
            assert_eq!(Json::parse(text.to_owned()).unwrap().as_str(), text);
        }
        for bad in ["1e999", "-1e999", "01", "-01", "+1", ".5", "1.", "1e", "0x1", "NaN", "-Infinity", "--1", "1_000"] {
            assert!(matches!(parse_strict(bad), Err(JsonFault::Syntax(_))), "{bad}");
        }
    }

    #[test]
    fn text_is_kept_and_equality_is_by_value() {
        let spaced = Json::parse("{ \"b\": 1,\n \"a\": 2 }".into()).unwrap();
        assert_eq!(spaced.as_str(), "{ \"b\": 1,\n \"a\": 2 }");
        assert_eq!(spaced, Json::from(serde_json::json!({"a": 2, "b": 1})));
    }
}
