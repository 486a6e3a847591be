//! JSON to jq's values and back.
//!
//! Invariants: a number that is whole comes out as an integer, as jq prints it; what has no JSON
//! form is an error or, for numbers beyond JSON, what jq prints for them.

use jaq_json::{Num, Val};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

/// Nesting of an output. A filter can build any depth; readers of JSON commonly stop at 128.
const MAX_NESTING: usize = 120;
/// From here on not every integer has a float of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A jq value for JSON.
///
/// # Errors
/// None for JSON as such; the conversion says so by its type.
pub(crate) fn from_json(json: Value) -> Result<Val, String> {
    Val::deserialize(json).map_err(|error| error.to_string())
}

/// JSON for a jq value.
///
/// # Errors
/// Too deep, or with keys or strings that JSON does not have.
pub(crate) fn to_json(value: &Val) -> Result<Value, String> {
    convert(value, MAX_NESTING)
}

fn convert(value: &Val, levels: usize) -> Result<Value, String> {
    let Some(below) = levels.checked_sub(1) else {
        return Err(format!("an output is nested deeper than {MAX_NESTING} levels"));
    };
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(truth) => Value::Bool(*truth),
        Val::Num(number) => convert_number(number),
        Val::TStr(text) => Value::String(String::from_utf8_lossy(text).into_owned()),
        Val::BStr(_) => {
            return Err(
                "an output is a string of bytes, which JSON does not have; use @base64".to_owned()
            );
        }
        Val::Arr(items) => {
            Value::Array(items.iter().map(|item| convert(item, below)).collect::<Result<_, _>>()?)
        }
        Val::Obj(entries) => {
            let mut object = Map::new();
            for (key, entry) in entries.iter() {
                let Val::TStr(key) = key else {
                    return Err(format!("an output has the key {key}, and keys must be strings"));
                };
                object.insert(String::from_utf8_lossy(key).into_owned(), convert(entry, below)?);
            }
            Value::Object(object)
        }
    })
}

fn convert_number(number: &Num) -> Value {
    match number {
        Num::Int(whole) => Value::from(*whole as i64),
        // Integers that JSON's readers keep exact stay exact, larger ones become the nearest float.
        Num::BigInt(whole) => match whole.to_string().parse::<i64>() {
            Ok(whole) => Value::from(whole),
            Err(_) => whole
                .to_string()
                .parse::<u64>()
                .map_or_else(|_| float(&whole.to_string()), Value::from),
        },
        Num::Float(real) => real_number(*real),
        Num::Dec(text) => float(text),
    }
}

fn float(text: &str) -> Value {
    real_number(text.parse().unwrap_or(f64::NAN))
}

/// NaN is null and the infinities are the largest numbers: both as jq prints them.
fn real_number(real: f64) -> Value {
    if real.fract() == 0.0 && real.abs() < EXACT {
        return Value::from(real as i64);
    }
    Number::from_f64(real.clamp(-f64::MAX, f64::MAX)).map_or(Value::Null, Value::Number)
}
