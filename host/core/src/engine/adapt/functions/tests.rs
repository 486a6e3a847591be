//! Tests that values of every type survive the conversion from JSON to wasmtime and back. Random
//! types and values are generated with proptest.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::{Value, json};
use toolcell_contract::call::{CallContext, CallResult, ToolCall};
use toolcell_contract::definition::Checks;
use toolcell_contract::limits::Limits;
use toolcell_contract::outcome::refusal::Refusal;
use toolcell_contract::schema::Schema;
use toolcell_test_guests::rows;

use super::schema;
use super::shape::Integer::{self, S8, S16, S32, S64, U8, U16, U32, U64};
use super::shape::Shape;
use super::value::{bytes_of, from_json, to_json};
use super::{VALUE_BYTES, VALUES};
use crate::engine::adapt::component_kind::{ComponentBytes, ComponentKind};
use crate::engine::{Engine, LoadOptions, Optimise};
use crate::tenant::{shared_bytes, state::TenantState};
use crate::tool::handler::Invocation;

const INTEGERS: [Integer; 8] = [S8, U8, S16, U16, S32, U32, S64, U64];

/// Numbers the names, so that no two are equal.
fn with_unique_names<T>(prefix: &str, items: Vec<T>) -> Vec<(String, T)> {
    let named = |(number, item)| (format!("{prefix}-{number}"), item);
    items.into_iter().enumerate().map(named).collect()
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let names = || {
        (1..4_usize)
            .prop_map(|count| (0..count).map(|number| format!("n{number}")).collect::<Vec<_>>())
    };
    let leaf = prop_oneof![
        Just(Shape::Bool),
        prop::sample::select(&INTEGERS[..]).prop_map(Shape::Integer),
        Just(Shape::Float32),
        Just(Shape::Float64),
        Just(Shape::Char),
        Just(Shape::String),
        Just(Shape::Bytes),
        names().prop_map(Shape::Enum),
        names().prop_map(Shape::Flags),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|shape| {
                let is_byte = shape == Shape::Integer(U8);
                if is_byte { Shape::Bytes } else { Shape::List(Box::new(shape)) }
            }),
            inner.clone().prop_map(|shape| Shape::Option(Box::new(shape))),
            vec(inner.clone(), 1..4).prop_map(Shape::Tuple),
            vec(inner.clone(), 1..4)
                .prop_map(|fields| Shape::Record(with_unique_names("field", fields))),
            vec(option::of(inner.clone()), 1..4)
                .prop_map(|cases| Shape::Variant(with_unique_names("case", cases))),
            (option::of(inner.clone()), option::of(inner))
                .prop_map(|(ok, error)| Shape::Result(ok.map(Box::new), error.map(Box::new))),
        ]
    })
}

/// Returns JSON values of a shape, in the form in which they are written.
fn values(shape: &Shape) -> BoxedStrategy<Value> {
    let tagged = |name: &str, values: BoxedStrategy<Value>| {
        let name = name.to_owned();
        values.prop_map(move |value| json!({ &*name: value })).boxed()
    };
    let or_null = |shape: &Option<Box<Shape>>| {
        shape.as_deref().map_or_else(|| Just(Value::Null).boxed(), values)
    };
    match shape {
        Shape::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Shape::Integer(integer) => whole(*integer),
        Shape::Float32 => any::<f32>()
            .prop_map(|value| floating(value.is_nan(), value.to_string(), f64::from(value)))
            .boxed(),
        Shape::Float64 => any::<f64>()
            .prop_map(|value| floating(value.is_nan(), value.to_string(), value))
            .boxed(),
        Shape::Char => any::<char>().prop_map(|value| value.to_string().into()).boxed(),
        Shape::String => any::<String>().prop_map(Value::from).boxed(),
        Shape::Bytes => vec(any::<u8>(), 0..8)
            .prop_map(|bytes| {
                use base64::Engine as _;
                base64::engine::general_purpose::STANDARD.encode(bytes).into()
            })
            .boxed(),
        Shape::List(item) => vec(values(item), 0..4).prop_map(Value::from).boxed(),
        Shape::Tuple(items) => {
            items.iter().map(values).collect::<Vec<_>>().prop_map(Value::from).boxed()
        }
        Shape::Record(fields) => {
            let names: Vec<_> = fields.iter().map(|(name, _)| name.clone()).collect();
            let values: Vec<_> = fields.iter().map(|(_, shape)| values(shape)).collect();
            values
                .prop_map(move |values| {
                    names.iter().cloned().zip(values).collect::<serde_json::Map<_, _>>().into()
                })
                .boxed()
        }
        Shape::Enum(cases) => prop::sample::select(cases.clone()).prop_map(Value::from).boxed(),
        Shape::Flags(flags) => {
            prop::sample::subsequence(flags.clone(), 0..=flags.len()).prop_map(Value::from).boxed()
        }
        Shape::Option(some) => {
            let some = if some.has_null() { tagged("some", values(some)) } else { values(some) };
            prop_oneof![Just(Value::Null), some].boxed()
        }
        Shape::Result(ok, error) => {
            prop_oneof![tagged("ok", or_null(ok)), tagged("error", or_null(error))].boxed()
        }
        Shape::Variant(cases) => {
            let case = |(name, shape): &(String, Option<Shape>)| match shape {
                Some(shape) => tagged(name, values(shape)),
                None => Just(Value::from(name.clone())).boxed(),
            };
            Union::new(cases.iter().map(case)).boxed()
        }
    }
}

fn whole(integer: Integer) -> BoxedStrategy<Value> {
    let (least, most) = integer.range();
    let written = |number: i128| match i64::try_from(number) {
        Ok(number) if number.unsigned_abs() < 1 << 53 => json!(number),
        _ => json!(number.to_string()),
    };
    prop_oneof![Just(least), Just(most), least..=most].prop_map(written).boxed()
}

fn floating(is_nan: bool, text: String, value: f64) -> Value {
    match (is_nan, value.is_finite()) {
        (true, _) => json!("NaN"),
        (_, true) => json!(text.parse::<f64>().unwrap()),
        (_, false) if value > 0.0 => json!("Infinity"),
        (_, false) => json!("-Infinity"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// The values also fit the schema that a model is shown.
    #[test]
    fn values_of_every_type_round_trip((shape, value) in any_shape().prop_flat_map(|shape| {
        let values = values(&shape);
        (Just(shape), values)
    })) {
        let schema = schema::of(&shape);
        let checked = Schema::compile(&schema).unwrap().check(&value);
        prop_assert!(checked.is_ok(), "{shape}: {value} does not fit {schema}: {checked:?}");
        let read = from_json(&shape, &value, "").map_err(|fault| TestCaseError::fail(format!("{shape}: {value}: {fault:?}")))?;
        prop_assert_eq!(to_json(&shape, &read), Some(value), "{}", shape);
    }

    /// Any JSON value for any type is either a fault, or a value that converts to JSON and back
    /// unchanged.
    #[test]
    fn any_value_round_trips_or_is_a_fault(shape in any_shape(), (_, value) in any_shape().prop_flat_map(|shape| {
        let values = values(&shape);
        (Just(shape), values)
    })) {
        if let Ok(read) = from_json(&shape, &value, "") {
            let again = to_json(&shape, &read).unwrap();
            prop_assert_eq!(from_json(&shape, &again, "").ok().and_then(|read| to_json(&shape, &read)), Some(again));
        }
    }
}

#[test]
fn numbers_are_exact_or_refused() {
    let converted = |shape: &Shape, value: &Value| {
        from_json(shape, value, "").ok().and_then(|read| to_json(shape, &read))
    };
    let numbers = rows::<(&str, Value, Option<Value>)>("engine/adapt/functions", "numbers");
    for (kind, given, expected) in numbers {
        let kind = INTEGERS.into_iter().find(|known| format!("{known:?}") == kind).expect(kind);
        assert_eq!(converted(&Shape::Integer(kind), &given), expected, "{kind:?}: {given}");
    }
    for (given, expected) in [
        (json!(0.1), Some("0.1")),
        (json!(1e39), None),
        (json!(-0.0), Some("-0.0")),
        (json!("NaN"), Some(r#""NaN""#)),
        (json!("nan"), None),
    ] {
        let text = converted(&Shape::Float32, &given).map(|value| value.to_string());
        assert_eq!(text.as_deref(), expected, "{given}");
    }
}

#[test]
fn fault_has_path_and_expectation() {
    let shape = Shape::Record(vec![
        ("list".into(), Shape::List(Box::new(Shape::Tuple(vec![Shape::Bool, Shape::Char])))),
        ("case".into(), Shape::Variant(vec![("a".into(), None), ("b".into(), Some(Shape::Bool))])),
        ("some".into(), Shape::Option(Box::new(Shape::Option(Box::new(Shape::Bool))))),
    ]);
    for (given, path, expected) in rows::<(Value, &str, &str)>("engine/adapt/functions", "faults") {
        let fault = from_json(&shape, &given, "").unwrap_err();
        assert_eq!((fault.path.as_str(), fault.expected().as_str()), (path, expected), "{given}");
    }
    let fits = json!({ "list": [], "case": "a" });
    assert!(from_json(&shape, &fits, "").is_ok(), "an option can be left out");
}

/// Returns the type in the notation of WIT; adds declarations for types that need a name.
fn wit(shape: &Shape, declarations: &mut Vec<String>) -> String {
    let declare = |declarations: &mut Vec<String>, word: &str, members: Vec<String>| {
        let name = format!("t{}", declarations.len());
        declarations.push(format!("{word} {name} {{ {} }}", members.join(", ")));
        name
    };
    match shape {
        Shape::List(item) => format!("list<{}>", wit(item, declarations)),
        Shape::Option(some) => format!("option<{}>", wit(some, declarations)),
        Shape::Tuple(items) => {
            let items: Vec<_> = items.iter().map(|item| wit(item, declarations)).collect();
            format!("tuple<{}>", items.join(", "))
        }
        Shape::Result(ok, error) => {
            let mut side =
                |shape: &Option<Box<Shape>>| shape.as_ref().map(|shape| wit(shape, declarations));
            match (side(ok), side(error)) {
                (None, None) => "result".to_owned(),
                (Some(ok), None) => format!("result<{ok}>"),
                (ok, Some(error)) => format!("result<{}, {error}>", ok.as_deref().unwrap_or("_")),
            }
        }
        Shape::Record(fields) => {
            let fields =
                fields.iter().map(|(name, shape)| format!("{name}: {}", wit(shape, declarations)));
            let fields = fields.collect();
            declare(declarations, "record", fields)
        }
        Shape::Variant(cases) => {
            let case = |(name, shape): &(String, Option<Shape>)| match shape {
                Some(shape) => format!("{name}({})", wit(shape, declarations)),
                None => name.clone(),
            };
            let cases = cases.iter().map(case).collect();
            declare(declarations, "variant", cases)
        }
        Shape::Enum(names) => declare(declarations, "enum", names.clone()),
        Shape::Flags(names) => declare(declarations, "flags", names.clone()),
        Shape::Bool
        | Shape::Integer(_)
        | Shape::Float32
        | Shape::Float64
        | Shape::Char
        | Shape::String
        | Shape::Bytes => shape.to_string(),
    }
}

/// Returns a call of the function of [`toolcell_test_guests::echoing`].
fn echo_of(wrapped: &Value) -> Arc<Invocation> {
    let mut arguments = json!({ "value": wrapped });
    for number in 0..toolcell_test_guests::ECHO_PADDING {
        arguments[format!("a{number}")] = json!(number);
    }
    let call = ToolCall::with_value("1", "echo_echo", &arguments);
    let (context, limits) = (CallContext::default(), Limits::default());
    Arc::new(Invocation::outside_call(call, arguments, context, limits))
}

/// Fails without: the bytes of options that are left out, and of the names of a record.
#[test]
fn values_are_counted_before_they_are_made() {
    let option = Shape::Option(Box::new(Shape::Bool));
    let record = Shape::Record(with_unique_names("o", vec![option.clone(); 100]));
    let records = Shape::List(Box::new(record));
    assert_eq!(bytes_of(&records, &json!([{}, {}])) / (2 * 100), 96);
    let tagged = Shape::Result(Some(Box::new(Shape::Option(Box::new(option)))), None);
    assert_eq!(bytes_of(&tagged, &json!({ "ok": { "some": true } })), 4 * 40);
}

/// Fails without: the count of the arguments' bytes; their release.
#[test]
fn values_of_arguments_share_a_limit_of_bytes() {
    let engine = Engine::builder().cells(1).optimise(Optimise::Never).build().unwrap();
    let wait = engine.compiler.scheduler.sleeps;
    let bytes = toolcell_test_guests::echoing("", "list<u8>");
    let bytes = ComponentBytes::new(bytes, ComponentKind::Functions);
    let loaded = wait.block_on(engine.load(bytes, LoadOptions::default())).unwrap();
    // 12,000 bytes. The other tests of this process leave room for them.
    let wrapped = json!({ "value": "AAAA".repeat(4000), "pad": 1 });
    let call = || {
        let called = loaded.call(echo_of(&wrapped), Checks::default(), Arc::default());
        wait.block_on(called)
    };
    for _ in 0..2 {
        assert_eq!(call().value().map(|value| value.to_value()), Some(wrapped.clone()));
        let tenant = TenantState::of(None);
        let _others = shared_bytes::take(&VALUES, &tenant, VALUE_BYTES - 400_000).unwrap();
        assert_eq!(call(), CallResult::Refusal(Refusal::overloaded()));
    }
}

/// The values go through the function of a component.
#[test]
fn random_values_round_trip_through_a_guest() {
    let engine = Engine::builder().cells(1).optimise(Optimise::Never).build().unwrap();
    let wait = engine.compiler.scheduler.sleeps;
    let several = any_shape().prop_flat_map(|shape| (vec(values(&shape), 4), Just(shape)));
    let config =
        ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
    let tested = proptest::test_runner::TestRunner::new(config).run(&several, |(values, shape)| {
        let mut declarations = Vec::new();
        let ty = wit(&shape, &mut declarations);
        let bytes = toolcell_test_guests::echoing(&declarations.join(" "), &ty);
        let bytes = ComponentBytes::new(bytes, ComponentKind::Functions);
        let loaded = wait.block_on(engine.load(bytes, LoadOptions::default())).unwrap();
        for value in values {
            let wrapped = json!({ "value": value, "pad": "18446744073709551615" });
            let called = loaded.call(echo_of(&wrapped), Checks::default(), Arc::default());
            let result = wait.block_on(called);
            let returned = result.value().map(|value| value.to_value());
            prop_assert_eq!(returned, Some(wrapped), "{}: {:?}", ty, result);
        }
        Ok(())
    });
    tested.unwrap();
}
