//! Serializes the author's values to JSON text as soon as they are given, and stores an error
//! instead of returning it.
//!
//! Invariants: code that builds a `Json` never sees an error; code that reads one must decide what
//! happens on failure.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Deserializes JSON of a caller. For JSON Schema `5.0` is an integer, for serde it is not: if the
/// text does not fit, it is tried again with whole numbers written as integers.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| {
        let respelt = serde_json::from_str(text).map(|mut value| {
            respell(&mut value);
            value
        });
        respelt.and_then(serde_json::from_value).map_err(|_| error)
    })
}

fn respell(value: &mut Value) {
    /// 2^53: up to here a double represents every whole number exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            if let Some(double) =
                number.as_f64().filter(|double| number.is_f64() && double.fract() == 0.0)
                && double.abs() <= EXACT
            {
                *value = Value::from(double as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(respell),
        Value::Object(members) => members.values_mut().for_each(respell),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// JSON text, or the reason why the author's value cannot be written as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Json(Result<String, String>);

impl Json {
    pub(crate) fn of(value: &(impl Serialize + ?Sized)) -> Self {
        let mut text = Vec::new();
        let written =
            value.serialize(&mut Serializer::with_formatter(&mut text, Bounded::default()));
        let text = written.map(|()| String::from_utf8_lossy(&text).into_owned());
        Self(text.map_err(|error| error.to_string()))
    }

    pub(crate) fn text(self) -> Result<String, String> {
        self.0
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// Deserializes the text, for tests and accessors. `None` after an error.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.0.as_deref().ok()?).ok()
    }
}

/// Levels of nested arrays and objects that the host accepts.
const MAX_DEPTH: usize = 127;

/// Writes like `serde_json` does by default, but fails for values that nest too deep.
#[derive(Default)]
struct Bounded {
    depth: usize,
}

impl Bounded {
    fn enter(&mut self) -> io::Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(io::Error::other(format!("it nests deeper than {MAX_DEPTH} levels")));
        }
        Ok(())
    }
}

impl Formatter for Bounded {
    fn begin_array<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.enter()?;
        to.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth -= 1;
        to.write_all(b"]")
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.enter()?;
        to.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth -= 1;
        to.write_all(b"}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_deeply_nested_value_is_not_written() {
        let nested =
            |depth| (1..depth).fold(Value::Array(Vec::new()), |inner, _| Value::Array(vec![inner]));
        assert!(Json::of(&nested(MAX_DEPTH)).problem().is_none());
        let too_deep = Json::of(&nested(MAX_DEPTH + 1));
        assert_eq!(too_deep.problem(), Some("it nests deeper than 127 levels"));
        // Only depth is limited, not the number of elements.
        assert!(Json::of(&vec![Vec::<u8>::new(); 200]).problem().is_none());
    }

    #[test]
    fn whole_number_is_an_integer_in_any_notation() {
        let numbers = read::<(u8, f64, Option<i64>)>("[5.0, 5.0, -1e3]").unwrap();
        assert_eq!(numbers, (5, 5.0, Some(-1000)));
        for (text, problem) in [
            ("5.5", "floating point `5.5`"),
            ("1e300", "1e+300"),
            ("\"5\"", "string"),
            ("{", "map"),
        ] {
            let error = read::<u8>(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
