//! Tests of the texts of faults, and of the limits on a schema's cost.
//!
//! They check that typical mistakes of models get the right correction, that hostile schemas are
//! refused, that expensive values are refused at once, and that large ordinary values pass.

use serde_json::{Value, json};

use super::Schema;
use super::bombs::chain;
use crate::cases::rows;
use crate::json::Json;
use crate::outcome::Question;
use crate::outcome::refusal::{Fault, FaultKind, Refusal};

fn faults(schema: Value, value: Value) -> String {
    match Schema::compile(&schema).expect("a usable schema").check(&value) {
        Ok(()) => String::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn every_fault_is_named() {
    let (schema, given) = rows::<(Value, Value)>("schema", "every_fault_is_named").remove(0);
    insta::assert_snapshot!(faults(schema, given));
}

/// Typical mistakes of models, each with the correction.
#[test]
fn fault_hint_gives_the_correction() {
    let schema = json!({
        "$defs": {"page": {"type": "object", "properties": {"size": {"type": "integer"}, "n~/": {"type": "integer"}}}},
        "properties": {
            "items": {"type": "array"},
            "filter": {"type": "object"},
            "count": {"type": "integer"},
            "fast": {"type": "boolean"},
            "tags": {"anyOf": [{"type": "array"}, {"type": "null"}]},
            "page": {"$ref": "#/$defs/page"},
            "unit": {"enum": ["m", "ft"]},
            "either": {"type": ["string", "null"]},
            "properties": {"type": "integer"},
        },
        "required": ["count", "properties"],
    });
    for (given, hint) in rows::<(Value, Option<&str>)>("schema", "fault_hint_gives_the_correction")
    {
        let mut arguments = json!({"count": 1, "properties": 1});
        arguments.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        let faults = Schema::compile(&schema).unwrap().check(&arguments).unwrap_err();
        let hints: Vec<_> = faults.iter().map(|fault| fault.hint.as_deref()).collect();
        assert_eq!(hints, [hint], "{given}: {faults:?}");
    }
}

/// A given member that the schema declares is not reported as a misspelling of another member.
#[test]
fn declared_member_is_not_a_misspelling() {
    for (schema, given, told) in
        rows::<(Value, Value, &str)>("schema", "declared_member_is_not_a_misspelling")
    {
        assert_eq!(faults(schema, given.clone()), told, "{given}");
    }
}

/// The forms of enumerations: variants with descriptions, optional ones, and variants with data.
#[test]
fn fault_names_the_nearest_alternative() {
    let mut told = Vec::new();
    for (schema, refused) in
        rows::<(Value, Vec<Value>)>("schema", "fault_names_the_nearest_alternative")
    {
        for given in refused {
            told.push(format!("{given}\n{}\n", faults(schema.clone(), given.clone())));
        }
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn answer_is_checked_against_its_questions_schema() {
    let question = Question::new("How many?");
    let answer = |value: Value| Json::from(value);
    assert_eq!(question.check_answer(&answer(json!("any"))), Ok(()));
    let unusable = question.clone().with_answer_schema(json!({"type": "nonsense"}));
    assert_eq!(unusable.check_answer(&answer(json!("any"))), Ok(()));
    let question = question.with_answer_schema(json!({"type": "integer", "minimum": 1}));
    assert_eq!(question.check_answer(&answer(json!(2))), Ok(()));
    let faults = question.check_answer(&answer(json!("two"))).unwrap_err();
    let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["expected an integer, got \"two\""]);
}

/// Programs use the code and the values, not the sentence.
#[test]
fn fault_has_a_code_and_values() {
    for (schema, given, expected) in
        rows::<(Value, Value, Value)>("schema", "fault_has_a_code_and_values")
    {
        let faults = Schema::compile(&schema).unwrap().check(&given).unwrap_err();
        let [fault] = faults.as_slice() else { panic!("{schema}: {faults:?}") };
        let mut written = serde_json::to_value(fault).unwrap();
        assert_eq!(&serde_json::from_value::<Fault>(written.clone()).unwrap(), fault, "{written}");
        let members = written.as_object_mut().unwrap();
        assert_eq!(members.remove("expected"), Some(json!(fault.expected())), "{schema}");
        members.remove("message");
        assert_eq!(written, expected, "{schema}");
    }
}

/// The required member is missing because its name is mistyped: one fault, not two.
#[test]
fn mistyped_member_name_is_one_fault() {
    let strict = json!({"properties": {"name": {}, "unit": {"enum": ["celsius"]}}, "required": ["name"],
        "additionalProperties": false});
    let told =
        Schema::compile(&strict).unwrap().check(&json!({"nme": 1, "unit": "celsus"})).unwrap_err();
    let mut nearest: Vec<_> =
        told.iter().map(|fault| (fault.path.as_str(), fault.nearest.as_deref())).collect();
    nearest.sort();
    assert_eq!(nearest, [("/nme", Some("name")), ("/unit", Some("celsius"))]);
}

#[test]
fn valid_value_has_no_faults() {
    assert_eq!(faults(json!({"type": "object"}), json!({"anything": [1]})), "");
    assert_eq!(faults(json!(true), json!(null)), "");
}

#[test]
fn excess_faults_are_counted_not_listed() {
    let text = faults(json!({"items": {"type": "string"}}), json!(vec![1; 1000]));
    assert_eq!(text.lines().count(), Refusal::MAX_FAULTS + 1);
    assert!(text.ends_with("968 more"), "{text}");
}

/// Each of these schemas could hang the host. They are refused when they are compiled.
#[test]
fn hostile_schemas_are_refused() {
    let fan = chain(40, |next| json!({"allOf": [next, next]}), json!({"type": "object"}));
    for (why, schema) in rows::<(&str, Value)>("schema", "hostile_schemas_are_refused")
        .into_iter()
        .chain([("at most", json!({"description": "x".repeat(100_000)})), ("not a usable", fan)])
    {
        match Schema::compile(&schema) {
            Ok(schema) => {
                let faults = schema.check(&json!({"a": 1})).expect_err("too costly");
                assert_eq!(faults[0].kind, FaultKind::TooCostly);
            }
            Err(problem) => assert!(problem.contains(why), "{problem}"),
        }
    }
}

/// Escapes in a reference are decoded.
#[test]
fn escapes_in_references_are_decoded() {
    for (name, reference) in
        [("a\"b", "#/$defs/a%22b"), ("a/b", "#/$defs/a~1b"), ("é%", "#/$defs/%C3%A9%25")]
    {
        let schema = json!({"$ref": reference, "$defs": {name: {"type": "null"}}});
        assert_eq!(faults(schema.clone(), json!(null)), "");
        assert_ne!(faults(schema, json!(1)), "");
    }
    for reference in ["#/$defs/%zz", "#/$defs/%", "#/$defs/%2", "#/$defs/%+1", "#/$defs/%ff"] {
        let schema = json!({"$ref": reference, "$defs": {"x": {"type": "null"}}});
        assert!(Schema::compile(&schema).unwrap_err().contains("names no part of this schema"));
    }
    // A mixture of valid and invalid escapes is refused, whichever part it could name.
    for defs in [json!({"A%zz": true}), json!({"A%zz": {"$ref": "#"}, "%41%zz": true})] {
        let schema = json!({"$ref": "#/$defs/%41%zz", "$defs": defs});
        assert!(Schema::compile(&schema).unwrap_err().contains("names no part of it"));
    }
}

/// Two references to the whole schema cause 2^depth visits. Flat values are checked, deep ones are
/// refused at once.
#[test]
fn exponential_schema_checks_only_flat_values() {
    let schema = json!({"anyOf": [
        {"properties": {"a": {"$ref": "#"}, "x": {"type": "string"}}},
        {"properties": {"a": {"$ref": "#"}, "x": {"type": "null"}}},
    ]});
    let nested = |levels| (0..levels).fold(json!({"x": 1}), |inner, _| json!({ "a": inner }));
    assert!(faults(schema.clone(), nested(3)).contains("expected one of"));
    assert!(faults(schema, nested(60)).contains("too costly"));
}

/// A pattern that would take a backtracking engine years.
#[test]
fn pattern_matching_takes_linear_time() {
    let text = "a".repeat(64 << 10) + "!";
    assert!(faults(json!({"pattern": "^(a+)+$"}), json!(text)).contains("matches"));
}

/// The largest result of a call, from an ordinary tool.
#[test]
fn large_table_is_checked() {
    let row = rows::<Value>("schema", "large_table_is_checked").remove(0);
    let rows = (0..9_500).map(|n| {
        json!({"id": n, "name": format!("item {n}"), "day": "2026-11-22", "size": "medium", "tags": ["a", "b"],
            "price": 9.95})
    });
    let table: Value = rows.collect();
    assert!(table.to_string().len() > 900_000);
    assert_eq!(faults(json!({"type": "array", "items": row, "uniqueItems": true}), table), "");
}

/// Errors cost memory too. A small schema and a small value that have millions of faults together
/// get one fault.
#[test]
fn fault_search_has_a_budget() {
    let names: Vec<String> = (0..6000).map(|n| format!("n{n}")).collect();
    let alternatives: Vec<Value> = (0..1900).map(|n| json!({"const": n + 1})).collect();
    for (schema, value) in [
        (json!({"items": {"required": names}}), json!(vec![json!({}); 200])),
        (json!({"items": {"anyOf": alternatives}}), json!(vec![0; 5000])),
        // Few visits at the top level, each of which copies the whole value below.
        (json!({"anyOf": vec![json!({"type": "integer"}); 4]}), json!(vec![json!([1, 2]); 20_000])),
    ] {
        assert_eq!(faults(schema, value).lines().count(), 1);
    }
    let unknown: serde_json::Map<_, _> =
        (0..5000).map(|n| (format!("u{n}").repeat(20), json!(1))).collect();
    let text =
        faults(json!({"properties": {"known": {}}, "additionalProperties": false}), unknown.into());
    assert!(
        text.lines().count() <= Refusal::MAX_FAULTS + 1 && text.len() < 10_000,
        "{}",
        text.len()
    );
}

/// Also for many items, which are not compared one by one.
#[test]
fn unique_items_are_compared_by_value() {
    for many in [0, 100] {
        let among = |items: [Value; 2]| {
            let others = (0..many).map(|n| json!({"n": n}));
            faults(json!({"uniqueItems": true}), items.into_iter().chain(others).collect())
        };
        for (one, other, differ) in
            rows::<(Value, Value, bool)>("schema", "unique_items_are_compared_by_value")
        {
            let (items, told) = (format!("{one} and {other}"), among([one, other]));
            assert_eq!(told.is_empty(), differ, "{items}: {told}");
            assert!(differ || told.contains("items that all differ"), "{items}: {told}");
        }
    }
    assert_eq!(faults(json!({"uniqueItems": false}), json!([1, 1])), "");
}

#[test]
fn pattern_count_and_cost_are_bounded() {
    let many: Vec<Value> = (0..60).map(|_| json!({"pattern": "a[ab]{300}x*"})).collect();
    assert!(faults(json!({"allOf": many}), json!("ab".repeat(100_000))).contains("too costly"));
    let too_many: Vec<Value> = (0..300).map(|_| json!({"pattern": "a"})).collect();
    assert!(Schema::compile(&json!({"allOf": too_many})).unwrap_err().contains("300 patterns"));
}
