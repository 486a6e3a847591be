//! Converts JSON to jq values and back.
//!
//! Invariants: a whole number becomes an integer, as jq prints it; a number beyond JSON becomes the
//! value that jq prints for it; any other value without a JSON form is an error.

use jaq_json::{Num, Val};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

/// Levels of nesting in an output. A filter can build any depth; JSON parsers commonly stop at 128.
const MAX_NESTING: usize = 120;
/// 2^53: above it a float cannot represent every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Converts JSON to a jq value.
///
/// # Errors
/// The error of the deserializer. JSON does not cause one, but the type allows for it.
pub(crate) fn from_json(json: Value) -> Result<Val, String> {
    Val::deserialize(json).map_err(|error| error.to_string())
}

/// Converts a jq value to JSON.
///
/// # Errors
/// An output that is nested too deep, has a key that is not a string, or is a string of bytes.
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
        // Integers that fit into `i64` or `u64` stay exact, others become the nearest float.
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

/// NaN becomes null and an infinity the largest finite number, as jq prints them.
fn real_number(real: f64) -> Value {
    if real.fract() == 0.0 && real.abs() < EXACT {
        return Value::from(real as i64);
    }
    Number::from_f64(real.clamp(-f64::MAX, f64::MAX)).map_or(Value::Null, Value::Number)
}
