//! Tests with hostile schemas, each with the value that costs most to check against it.
//!
//! Many of the pairs would take exponential time, or gigabytes, in a checker without bounds. The
//! test passes if every pair gets an answer within ten seconds: an accepted value, a fault, or a
//! refused schema.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Schema;

/// Only a hang takes this long, even on a busy machine.
const BOUND: Duration = Duration::from_secs(10);
/// The size limit of a call's arguments and of its result, in bytes.
const MIB: usize = 1 << 20;

fn each<T: Into<Value>>(count: usize, make: impl Fn(usize) -> T) -> Value {
    (0..count).map(|n| make(n).into()).collect::<Vec<Value>>().into()
}

fn members(count: usize, make: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..count).map(make).collect())
}

fn nested(levels: usize, innermost: Value, around: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(innermost, |inner, _| around(inner))
}

fn arrays(levels: usize, innermost: impl Into<Value>) -> Value {
    nested(levels, innermost.into(), |inner| json!([inner]))
}

/// Builds `links` definitions, each of which refers to the next, and one at the end.
pub(super) fn chain(links: usize, link: impl Fn(Value) -> Value, end: Value) -> Value {
    let next = |n: usize| json!({"$ref": format!("#/$defs/l{}", n + 1)});
    let defs =
        (0..links).map(|n| (format!("l{n}"), link(next(n)))).chain([(format!("l{links}"), end)]);
    json!({"$ref": "#/$defs/l0", "$defs": Value::Object(defs.collect())})
}

/// Builds a schema that applies the same definition `times` times.
fn repeated(times: usize, schema: Value) -> Value {
    json!({"allOf": each(times, |_| json!({"$ref": "#/$defs/it"})), "$defs": {"it": schema}})
}

fn pattern(text: &str) -> Value {
    json!({"pattern": text})
}

/// Builds the schema of a list whose items fit this schema.
fn items(schema: Value) -> Value {
    json!({"items": schema})
}

/// Builds a different array for each number, out of nothing but arrays: a hash of their items alone
/// is the same for all.
fn tree(number: usize) -> Value {
    match (number, number % 2) {
        (0, _) => json!([]),
        (_, 0) => json!([tree(number / 2)]),
        _ => json!([[], tree(number / 2)]),
    }
}

/// Builds integers of 64 bits, several of which are equal as doubles.
fn equal_doubles() -> Value {
    each(MIB / 20, |n| json!((1_u64 << 63) + n as u64))
}

type Bomb = (&'static str, Value, Value);

fn schemas_that_multiply() -> Vec<Bomb> {
    let both = |next: Value| json!({"allOf": [next.clone(), next]});
    let deep = nested(100, json!(1), |inner| json!({"a": inner}));
    let alternatives = |keyword: &str, count: usize| json!({keyword: each(count, |n| json!({"properties": {"a": {"$ref": "#"}, format!("x{n}"): false}}))});
    let seen = |keyword: &'static str, unseen: &'static str, innermost: Value| {
        nested(40, innermost, move |inner| {
            let inner = if keyword == "if" { inner } else { json!([inner]) };
            json!({keyword: inner, unseen: false})
        })
    };
    let open = json!({"properties": {"a": true}});
    let fan = chain(24, both, json!({"type": "object"}));
    let mut marked = fan.clone();
    marked["unevaluatedProperties"] = json!(false);
    vec![
        ("itself", json!({"$ref": "#"}), json!({})),
        ("each other", json!({"not": {"if": {"anyOf": [{"$ref": "#"}]}}}), json!({})),
        ("two ways to the next", fan, json!({})),
        ("two ways, asked what they saw", marked, json!({"a": 1})),
        ("two ways inside", alternatives("anyOf", 2), deep.clone()),
        ("three ways inside", alternatives("oneOf", 3), deep.clone()),
        ("forty ways inside", alternatives("allOf", 40), deep),
        ("allOf, seen", seen("allOf", "unevaluatedProperties", open.clone()), json!({"a": 1})),
        ("anyOf, seen", seen("anyOf", "unevaluatedProperties", open.clone()), json!({"a": 1})),
        ("oneOf, seen", seen("oneOf", "unevaluatedProperties", open.clone()), json!({"a": 1})),
        ("if, seen", seen("if", "unevaluatedProperties", open), json!({"a": 1})),
        (
            "items, seen",
            seen("anyOf", "unevaluatedItems", json!({"prefixItems": [true]})),
            json!([1]),
        ),
        ("a long way", chain(990, |next| json!({"items": next}), json!({})), arrays(120, 1)),
        ("a long way in place", chain(390, |next| json!({"not": next}), json!({})), json!({})),
        (
            "dynamic, two ways inside",
            json!({"$dynamicAnchor": "n", "anyOf": each(2, |n| json!({"properties": {"a": {"$dynamicRef": "#n"},
                format!("x{n}"): false}}))}),
            nested(100, json!(1), |inner| json!({"a": inner})),
        ),
        (
            "dynamic, many names",
            json!({"allOf": each(1_200, |n| json!({"$dynamicAnchor": format!("a{n}")})),
                "anyOf": each(1_200, |n| json!({"$dynamicRef": format!("#a{n}")}))}),
            json!({}),
        ),
        ("too many", json!({"anyOf": each(20_000, |_| true)}), json!({})),
    ]
}

fn values_that_are_large() -> Vec<Bomb> {
    let zeros = || each(MIB / 2, |_| 0);
    let text = || json!("ab".repeat(MIB / 2 - 1));
    let objects = || each(MIB / 8, |_| json!({"z": 0}));
    let long_names =
        |count: usize| members(count, |n| (format!("{}{n}", "k".repeat(2_000)), json!(0)));
    let asked = json!(long_names(6).as_object().unwrap().keys().collect::<Vec<_>>());
    let names = || long_names(500);
    let x = || json!("x".repeat(1_000));
    let unique = || json!({"uniqueItems": true});
    let again = |schema: Value| repeated(1_900, schema);
    let constants = |count: usize| each(count, |n| json!({"const": n + 1}));
    vec![
        ("unique trees", unique(), each(MIB / 50, tree)),
        ("unique trees, again", again(unique()), each(MIB / 50, tree)),
        ("unique alike", unique(), equal_doubles()),
        (
            "unique at each level",
            json!({"uniqueItems": true, "items": {"$ref": "#"}}),
            each(3_000, |n| arrays(120, n)),
        ),
        ("counted text", again(json!({"minLength": 1})), text()),
        ("a fixed text", again(json!({"const": "ab".repeat(6_000)})), json!("ab".repeat(6_000))),
        ("a pattern, again", again(pattern("^[ab]*$")), text()),
        ("a slow pattern", pattern("a[ab]{300}x*$"), text()),
        ("a nested pattern", pattern("^((a+)+b?)*c$"), text()),
        ("a long look at each place", pattern("(?=[^]*[ab][^]{60}y)z"), text()),
        ("a long look after each step back", pattern("^[ab]*?(?=[^]*a[^]{60}y)z"), text()),
        ("a long way after a look", pattern("(?=a)[^]*[ab][^]{60}y"), text()),
        ("a long way beside a back-reference", pattern("(q)\\1|[^]*[ab][^]{60}yz"), text()),
        ("a long way after a group", pattern("^(?:(?!q)b|[ab]*?)[^]*[ab][^]{60}y"), text()),
        ("a long way after a boundary", pattern("^(?=[ab]*?\\B[^]*[ab][^]{60}y)z"), text()),
        ("a look that can end in many ways", pattern("^(?=[ab]*?\\B[^]*)z"), text()),
        ("a look at each step", pattern("^(?:(?=.*$)(?:x|x|x))*y$"), x()),
        (
            "looks in looks",
            items(pattern("^(?:(?=(?:(?=(?:(?=x)x)*)x)*)x)*$")),
            each(MIB / 50, |n| "x".repeat(20 + n % 20)),
        ),
        ("looks before each way back", pattern("^(?:x|xx?|x{1,9}){1,9}(?:(?=.*x)x){900}y"), x()),
        ("back-references", items(pattern("^(x+x+)+\\1y")), each(MIB / 50, |_| "x".repeat(40))),
        (
            "names that look around",
            json!({"patternProperties": members(100, |n| (format!("^(x+x+)+(?=y){n}"), json!(true)))}),
            members(500, |n| (format!("{}{n}", "x".repeat(2_000)), json!(0))),
        ),
        ("a large pattern", pattern("(x{1,1000}){1000}"), text()),
        (
            "patterns for names",
            json!({"patternProperties": members(190, |n| (format!("k+{n}x"), json!(true)))}),
            names(),
        ),
        ("names with patterns", again(json!({"propertyNames": pattern("k+x")})), names()),
        ("names that are asked for", again(json!({"required": asked})), names()),
        (
            "names that are missing",
            items(json!({"required": each(6_000, |n| format!("n{n}"))})),
            each(MIB / 3, |_| json!({})),
        ),
        (
            "names that are declared",
            items(json!({"properties": members(1_900, |n| (format!("p{n}"), json!(true)))})),
            objects(),
        ),
        (
            "fixed arrays",
            items(json!({"enum": each(1_900, |n| arrays(5, n))})),
            each(MIB / 12, |n| arrays(5, n + 2_000)),
        ),
        (
            "a fixed tree",
            items(json!({"allOf": each(90, |n| json!({"not": {"const": arrays(110, n)}}))})),
            each(4_000, |_| arrays(110, "x")),
        ),
        ("alternatives of zeros", items(json!({"anyOf": constants(1_900)})), zeros()),
        ("a few alternatives", items(json!({"anyOf": constants(19)})), zeros()),
        ("multiples", items(json!({"allOf": each(9, |_| json!({"multipleOf": 1e-300}))})), zeros()),
        (
            "contained",
            json!({"contains": {"not": {"contains": {"enum": [1, 2]}}}, "minContains": 9}),
            each(MIB / 4, |_| json!([0])),
        ),
        (
            "contained, seen",
            json!({"anyOf": each(100, |_| json!({"contains": {"type": "string"}})), "unevaluatedItems": {"type": "integer"}}),
            zeros(),
        ),
        (
            "dependent",
            repeated(
                60,
                json!({"dependentSchemas": members(30, |_| ("z".into(), json!({"minProperties": 1})))}),
            ),
            names(),
        ),
        (
            "first items",
            json!({"prefixItems": each(1_990, |_| json!({"type": "integer"}))}),
            zeros(),
        ),
    ]
}

#[test]
fn every_schema_bomb_is_answered_in_time() {
    let bombs = [schemas_that_multiply(), values_that_are_large()].concat();
    assert!(bombs.len() >= 30);
    for (name, schema, value) in bombs {
        let (said, heard) = mpsc::channel();
        // On a thread with a small stack of its own.
        std::thread::spawn(move || {
            let began = Instant::now();
            let compiled = Schema::compile(&schema);
            let loaded = began.elapsed();
            let end =
                compiled.map(|schema| schema.check(&value).map_err(|faults| faults[0].expected()));
            said.send((loaded, began.elapsed() - loaded, end))
        });
        let (loaded, checked, end) =
            heard.recv_timeout(BOUND).unwrap_or_else(|_| panic!("{name}: no answer"));
        println!("{name}: {loaded:?} to load, {checked:?} to check: {end:.60?}");
    }
}
