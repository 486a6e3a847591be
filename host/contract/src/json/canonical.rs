//! Writes a JSON value as canonical bytes: equal values have equal bytes, different values have
//! different bytes.
//!
//! The seal of a question (its encryption for the client) binds a state to the arguments of its
//! call by the digest of these bytes, and the schema keyword `uniqueItems` compares items by them.
//! Spacing, the order of members and the spelling of numbers do not matter: `1.0` and `1` are
//! equal. Each piece is written with its kind and its length, so that no two values run together to
//! equal bytes.
//!
//! Not here: the canonical text of a tool's definition, in `definition`, which keeps the digits of
//! numbers.

use serde_json::{Number, Value};

/// 2^64. A whole number below it that is written as an integer is read as an integer.
const INTEGERS: f64 = 18_446_744_073_709_551_616.0;

/// Returns the canonical bytes, which do not depend on spacing, on the order of members, or on the
/// spelling of numbers.
pub fn bytes(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, value);
    bytes
}

/// Writes a value unambiguously: its kind, its length, its content.
fn write(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) => piece(bytes, b'1', value.to_string().as_bytes()),
        Value::Number(number) => piece(bytes, b'1', canonical(number).as_bytes()),
        Value::String(text) => piece(bytes, b'"', text.as_bytes()),
        Value::Array(items) => {
            piece(bytes, b'[', &items.len().to_le_bytes());
            items.iter().for_each(|item| write(bytes, item));
        }
        Value::Object(members) => {
            piece(bytes, b'{', &members.len().to_le_bytes());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in members {
                piece(bytes, b'"', name.as_bytes());
                write(bytes, value);
            }
        }
    }
}

/// Returns the text of a number. A client that reads and writes JSON may turn `1.0` into `1`, so
/// both have the same text.
fn canonical(number: &Number) -> String {
    match number.as_f64() {
        Some(double) if number.is_f64() && double.fract() == 0.0 && double.abs() < INTEGERS => {
            format!("{:.0}", double + 0.0)
        }
        _ => number.to_string(),
    }
}

fn piece(bytes: &mut Vec<u8>, kind: u8, content: &[u8]) {
    bytes.push(kind);
    bytes.extend_from_slice(&content.len().to_le_bytes());
    bytes.extend_from_slice(content);
}
