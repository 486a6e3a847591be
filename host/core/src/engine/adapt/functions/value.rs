//! Converts values between JSON and the component model, by their type.
//!
//! The code that calls exported functions uses [`from_json`] for each argument and [`to_json`] for
//! the result. `from_json` takes a [`Shape`] (a type) and returns wasmtime's value, or a [`Fault`]
//! with the path of the first part that does not fit. `to_json` returns `None` if the value has
//! another type.
//!
//! The rules, which `docs/existing-components.md` states for users:
//!
//! - Whole numbers are exact. Those of 64-bit types beyond 2^53 - 1 are written as a string of
//!   decimal digits, and read as either.
//! - Numbers that JSON does not have are the strings `NaN`, `Infinity` and `-Infinity`.
//! - `list<u8>` is a string in base64.
//! - An option is its value or `null`; `{"some": …}` where its value can be `null` itself.
//! - A case of a variant is its name, or an object with its name and value.
//! - A result inside another type is `{"ok": …}` or `{"error": …}`.
//! - Flags are a list.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use toolcell_contract::outcome::refusal::{Fault, FaultKind};
use wasmtime::component::Val;

use super::shape::{Integer, Shape};

/// Member names that tag values which JSON cannot distinguish.
pub(super) const SOME: &str = "some";
pub(super) const OK: &str = "ok";
pub(super) const ERROR: &str = "error";
/// Floating-point values that JSON does not have, as strings.
pub(super) const NUMBERS_WITHOUT_JSON: [&str; 3] = ["NaN", "Infinity", "-Infinity"];
/// The largest number up to which every whole number is exact as a double. Many programs read JSON
/// numbers as doubles.
const EXACT: i128 = (1 << 53) - 1;
/// [`EXACT`] as a double.
const EXACT_DOUBLE: f64 = 9_007_199_254_740_991.0;

/// Converts a JSON value to a value of this type.
///
/// # Errors
/// The first place that does not fit, below `place`.
pub(super) fn from_json(shape: &Shape, value: &Value, place: &str) -> Result<Val, Box<Fault>> {
    let not = |expected: &str| Box::new(Fault::new(place, format!("expected {expected}")));
    let not_type = |name: &str| Box::new(Fault::of_kind(place, FaultKind::of_type(name)));
    let none_of = |place: &str, names: &[String]| {
        let allowed = names.iter().map(|name| Value::from(name.as_str())).collect();
        Box::new(Fault::of_kind(place, FaultKind::Enum { allowed, more: 0 }))
    };
    let below = |name: &str| below(place, name);
    Ok(match shape {
        Shape::Bool => Val::Bool(value.as_bool().ok_or_else(|| not_type("boolean"))?),
        Shape::Integer(integer) => return whole(*integer, value, place),
        Shape::Float32 => {
            Val::Float32(float32(value).ok_or_else(|| not("a number of 32 bits, or `NaN`"))?)
        }
        Shape::Float64 => Val::Float64(float64(value).ok_or_else(|| not("a number, or `NaN`"))?),
        Shape::Char => {
            let only = value.as_str().and_then(|text| text.parse().ok());
            Val::Char(only.ok_or_else(|| not("one character"))?)
        }
        Shape::String => Val::String(value.as_str().ok_or_else(|| not_type("string"))?.to_owned()),
        Shape::Bytes => {
            let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            let bytes = bytes.ok_or_else(|| not("a string in base64"))?;
            Val::List(bytes.into_iter().map(Val::U8).collect())
        }
        Shape::List(item) => {
            let items = value.as_array().ok_or_else(|| not_type("array"))?.iter().enumerate();
            let items =
                items.map(|(index, value)| from_json(item, value, &below(&index.to_string())));
            Val::List(items.collect::<Result<_, _>>()?)
        }
        Shape::Tuple(shapes) => {
            let items = value.as_array().filter(|items| items.len() == shapes.len());
            let items = items.ok_or_else(|| not(&format!("a list of {}", shapes.len())))?;
            let item = |(index, (shape, value)): (usize, (&Shape, &Value))| {
                from_json(shape, value, &below(&index.to_string()))
            };
            Val::Tuple(shapes.iter().zip(items).enumerate().map(item).collect::<Result<_, _>>()?)
        }
        Shape::Record(fields) => {
            let members = value.as_object().ok_or_else(|| not_type("object"))?;
            let field = |(name, shape): &(String, Shape)| {
                member(shape, members, name, place).map(|value| (name.clone(), value))
            };
            Val::Record(fields.iter().map(field).collect::<Result<_, _>>()?)
        }
        Shape::Enum(cases) => {
            let name = value.as_str().filter(|name| cases.iter().any(|case| case == name));
            Val::Enum(name.ok_or_else(|| none_of(place, cases))?.to_owned())
        }
        Shape::Flags(flags) => {
            let items = value.as_array().ok_or_else(|| not_type("array"))?.iter().enumerate();
            let flag = |(index, value): (usize, &Value)| {
                let name = value.as_str().filter(|name| flags.iter().any(|flag| flag == name));
                name.map(str::to_owned).ok_or_else(|| none_of(&below(&index.to_string()), flags))
            };
            Val::Flags(items.map(flag).collect::<Result<_, _>>()?)
        }
        Shape::Option(_) if value.is_null() => Val::Option(None),
        Shape::Option(some) if some.has_null() => {
            let Some((SOME, value)) = tag(value) else {
                return Err(not("`null` or {\"some\": …}"));
            };
            Val::Option(Some(Box::new(from_json(some, value, &below(SOME))?)))
        }
        Shape::Option(some) => Val::Option(Some(Box::new(from_json(some, value, place)?))),
        Shape::Result(ok, error) => {
            let with = |shape: &Option<Box<Shape>>, value: &Value, name: &str| match shape {
                Some(shape) => {
                    from_json(shape, value, &below(name)).map(|value| Some(Box::new(value)))
                }
                None if value.is_null() => Ok(None),
                None => Err(Fault::of_kind(below(name), FaultKind::of_type("null")).into()),
            };
            match tag(value) {
                Some((OK, value)) => Val::Result(Ok(with(ok, value, OK)?)),
                Some((ERROR, value)) => Val::Result(Err(with(error, value, ERROR)?)),
                Some(_) | None => return Err(not("{\"ok\": …} or {\"error\": …}")),
            }
        }
        Shape::Variant(cases) => {
            let named = match value.as_str() {
                Some(name) => Some((name, None)),
                None => tag(value).map(|(name, value)| (name, Some(value))),
            };
            let (name, value) = named.unwrap_or_default();
            let case = cases
                .iter()
                .find(|(case, shape)| case == name && shape.is_some() == value.is_some());
            let Some((name, shape)) = case else {
                let case = |(name, shape): &(String, Option<Shape>)| match shape {
                    Some(_) => format!("{{\"{name}\": …}}"),
                    None => format!("\"{name}\""),
                };
                let cases: Vec<_> = cases.iter().map(case).collect();
                return Err(not(&format!("one of {}", cases.join(", "))));
            };
            let value = shape
                .as_ref()
                .zip(value)
                .map(|(shape, value)| from_json(shape, value, &below(name)));
            Val::Variant(name.clone(), value.transpose()?.map(Box::new))
        }
    })
}

/// Converts a member of an object. An option may be left out.
pub(super) fn member(
    shape: &Shape,
    members: &Map<String, Value>,
    name: &str,
    place: &str,
) -> Result<Val, Box<Fault>> {
    let place = below(place, name);
    match members.get(name) {
        Some(value) => from_json(shape, value, &place),
        None if shape.has_null() => Ok(Val::Option(None)),
        None => {
            let fault = Fault::of_kind(place, FaultKind::Required { member: name.to_owned() });
            Err(fault.with_members(members).into())
        }
    }
}

/// Returns the JSON pointer of a member or an item at this place.
fn below(place: &str, name: &str) -> String {
    format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Converts the value of a case of a `result` to JSON; `null` if the case has no value.
pub(super) fn case_to_json(shape: &Option<Box<Shape>>, value: &Option<Box<Val>>) -> Option<Value> {
    match (shape, value) {
        (Some(shape), Some(value)) => to_json(shape, value),
        (None, None) => Some(Value::Null),
        _ => None,
    }
}

/// Converts a value of this type to JSON; `None` if it is of another type.
pub(super) fn to_json(shape: &Shape, value: &Val) -> Option<Value> {
    let tagged =
        |name: &str, value: Value| Value::Object([(name.to_owned(), value)].into_iter().collect());
    Some(match (shape, value) {
        (Shape::Bool, Val::Bool(value)) => Value::Bool(*value),
        (Shape::Integer(integer), value) => {
            let number = number_of(value)?;
            let is_text = integer.is_wide() && !(-EXACT..=EXACT).contains(&number);
            if is_text {
                Value::String(number.to_string())
            } else {
                Value::from(i64::try_from(number).ok()?)
            }
        }
        (Shape::Float32, Val::Float32(value)) => {
            // The shortest text that is read as the same number, if that is also true when it is
            // read as a double first.
            let short =
                value.to_string().parse().ok().filter(|short: &f64| is_same(*short, *value));
            floating(short.unwrap_or(f64::from(*value)))
        }
        (Shape::Float64, Val::Float64(value)) => floating(*value),
        (Shape::Char, Val::Char(value)) => Value::String(value.to_string()),
        (Shape::String, Val::String(value)) => Value::String(value.clone()),
        (Shape::Bytes, Val::List(items)) => {
            let byte = |item: &Val| if let Val::U8(byte) = item { Some(*byte) } else { None };
            Value::String(STANDARD.encode(items.iter().map(byte).collect::<Option<Vec<_>>>()?))
        }
        (Shape::List(item), Val::List(items)) => {
            Value::Array(items.iter().map(|value| to_json(item, value)).collect::<Option<_>>()?)
        }
        (Shape::Tuple(shapes), Val::Tuple(items)) => {
            let items = shapes.iter().zip(items).map(|(shape, value)| to_json(shape, value));
            Value::Array(items.collect::<Option<_>>()?)
        }
        (Shape::Record(shapes), Val::Record(fields)) => {
            let field = |((name, shape), (_, value)): (&(String, Shape), &(String, Val))| {
                Some((name.clone(), to_json(shape, value)?))
            };
            Value::Object(shapes.iter().zip(fields).map(field).collect::<Option<_>>()?)
        }
        (Shape::Enum(_), Val::Enum(name)) => Value::String(name.clone()),
        (Shape::Flags(_), Val::Flags(names)) => names.iter().cloned().map(Value::String).collect(),
        (Shape::Option(_), Val::Option(None)) => Value::Null,
        (Shape::Option(some), Val::Option(Some(value))) => {
            let value = to_json(some, value)?;
            if some.has_null() { tagged(SOME, value) } else { value }
        }
        (Shape::Result(ok, _), Val::Result(Ok(value))) => tagged(OK, case_to_json(ok, value)?),
        (Shape::Result(_, error), Val::Result(Err(value))) => {
            tagged(ERROR, case_to_json(error, value)?)
        }
        (Shape::Variant(cases), Val::Variant(name, value)) => {
            let (_, shape) = cases.iter().find(|(case, _)| case == name)?;
            match (shape, value) {
                (Some(shape), Some(value)) => tagged(name, to_json(shape, value)?),
                (None, None) => Value::String(name.clone()),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Returns the bytes that a value takes in the host's memory once it is converted, without the texts
/// of the caller. It is counted before that: `{}` becomes a record with all of its options.
pub(super) fn bytes_of(shape: &Shape, value: &Value) -> u64 {
    /// Bytes of the memory of a short text.
    const ALLOCATED: usize = 32;
    let inside: u64 = match (shape, value) {
        (Shape::Bytes, Value::String(text)) => (text.len() / 4 * 3 * size_of::<Val>()) as u64,
        (Shape::List(item), Value::Array(items)) => {
            items.iter().map(|value| bytes_of(item, value)).sum()
        }
        (Shape::Tuple(shapes), Value::Array(items)) => {
            shapes.iter().zip(items).map(|(shape, value)| bytes_of(shape, value)).sum()
        }
        (Shape::Record(fields), Value::Object(members)) => {
            let field = |(name, shape): &(String, Shape)| {
                let named = size_of::<String>() + name.len().max(ALLOCATED);
                named as u64 + bytes_of(shape, members.get(name).unwrap_or(&Value::Null))
            };
            fields.iter().map(field).sum()
        }
        (Shape::Option(some), value) if some.has_null() => {
            tag(value).map_or(0, |(_, value)| bytes_of(some, value))
        }
        (Shape::Option(some), value) if !value.is_null() => bytes_of(some, value),
        (Shape::Result(ok, error), value) => tag(value).map_or(0, |(name, value)| {
            let case = if name == OK { ok } else { error };
            case.as_deref().map_or(0, |shape| bytes_of(shape, value))
        }),
        (Shape::Variant(cases), value) => tag(value).map_or(0, |(name, value)| {
            let case = cases.iter().find(|(case, _)| case == name);
            case.and_then(|(_, shape)| shape.as_ref()).map_or(0, |shape| bytes_of(shape, value))
        }),
        _ => 0,
    };
    inside + size_of::<Val>() as u64
}

/// Returns the name and the value of an object with one member.
fn tag(value: &Value) -> Option<(&str, &Value)> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.iter().next().map(|(name, value)| (name.as_str(), value))
}

fn whole(integer: Integer, value: &Value, place: &str) -> Result<Val, Box<Fault>> {
    let (least, most) = integer.range();
    let digits = value.as_str().filter(|digits| integer.is_wide() && !digits.starts_with('+'));
    let number = match digits {
        Some(digits) => digits.parse().ok(),
        None => value.as_number().and_then(whole_number),
    };
    let found = number.and_then(|number| integer.val(number));
    let expected = || match number {
        Some(_) => FaultKind::Range {
            minimum: Number::from_i128(least),
            exclusive_minimum: None,
            maximum: Number::from_i128(most),
            exclusive_maximum: None,
        },
        None => FaultKind::of_type("integer"),
    };
    found.ok_or_else(|| Fault::of_kind(place, expected()).into())
}

/// Returns a number without a fraction. A number that was read as a double is accepted only where
/// doubles are exact.
fn whole_number(number: &Number) -> Option<i128> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a whole number that a double holds exactly"
    )]
    let double = || {
        number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() <= EXACT_DOUBLE).map(|n| n as i128)
    };
    number.as_i128().or_else(double)
}

fn number_of(value: &Val) -> Option<i128> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other value is a whole number")]
    Some(match value {
        Val::S8(value) => (*value).into(),
        Val::U8(value) => (*value).into(),
        Val::S16(value) => (*value).into(),
        Val::U16(value) => (*value).into(),
        Val::S32(value) => (*value).into(),
        Val::U32(value) => (*value).into(),
        Val::S64(value) => (*value).into(),
        Val::U64(value) => (*value).into(),
        _ => return None,
    })
}

fn float64(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some(text) if NUMBERS_WITHOUT_JSON.contains(&text) => text.parse().ok(),
        Some(_) => None,
        None => value.as_f64(),
    }
}

/// Returns the nearest 32-bit number; `None` if a finite number is out of range.
fn float32(value: &Value) -> Option<f32> {
    let wide = float64(value)?;
    #[expect(clippy::cast_possible_truncation, reason = "the nearest is meant")]
    let narrow = wide as f32;
    (narrow.is_finite() || !wide.is_finite()).then_some(narrow)
}

fn floating(value: f64) -> Value {
    let without = || match value {
        value if value.is_nan() => NUMBERS_WITHOUT_JSON[0],
        value if value > 0.0 => NUMBERS_WITHOUT_JSON[1],
        _ => NUMBERS_WITHOUT_JSON[2],
    };
    Number::from_f64(value).map_or_else(|| Value::from(without()), Value::Number)
}

fn is_same(wide: f64, narrow: f32) -> bool {
    #[expect(clippy::cast_possible_truncation, reason = "to see whether nothing is lost")]
    let again = wide as f32;
    again.to_bits() == narrow.to_bits()
}
