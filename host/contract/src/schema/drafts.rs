//! Tests of schemas of every draft, of references within a schema, and of parts that cannot be
//! enforced.
//!
//! They compare the translation to 2020-12 with expected texts, resolve anchors and dynamic
//! references, and check that a bad part is left out with a warning while the others stay enforced.
//! Further tests match regular expressions with look-around, whose backtracking must be bounded.

use serde_json::{Value, json};

use super::Schema;
use super::work::MAX_BYTES;
use crate::cases::rows;
use crate::definition::Definition;

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).unwrap_or_else(|problem| panic!("{schema}: {problem}"))
}

/// Compiles a schema, which must accept the first value and refuse the second.
fn telling_apart(schema: &Value, good: &Value, bad: &Value) -> Schema {
    let schema = compiled(schema);
    assert_eq!(schema.check(good), Ok(()), "{}", schema.text());
    assert!(schema.check(bad).is_err(), "{}", schema.text());
    schema
}

/// The text that is listed and checked is 2020-12 without identifiers.
#[test]
fn earlier_draft_is_translated_to_2020_12() {
    for (given, written) in
        rows::<(Value, Value)>("schema/drafts", "earlier_draft_is_translated_to_2020_12")
    {
        let schema = compiled(&given);
        assert_eq!(schema.text(), &written, "{given}");
        assert_eq!(compiled(&written).text(), &written, "translated again");
        assert!(schema.translated.warnings.is_empty(), "{given}");
    }
}

/// The references are anchors, identifiers and dynamic references that end inside of the schema.
#[test]
fn references_resolve_within_the_schema() {
    for (schema, good, bad) in
        rows::<(Value, Value, Value)>("schema/drafts", "references_resolve_within_the_schema")
    {
        let text = telling_apart(&schema, &good, &bad).text().to_string();
        for word in ["$id", "nchor", "$dynamicRef", "$recursiveRef"] {
            assert!(!text.contains(word), "{text}");
        }
    }
}

/// Each path to a schema that depends on its dynamic scope needs a copy: two paths at each of
/// `levels` levels would need 2^levels copies.
#[test]
fn copies_for_dynamic_references_are_bounded() {
    let levels = 12;
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        for side in ["a", "b"] {
            // A schema that is reached through it finds its own anchor of this level.
            let next = |other: &str| json!({"$ref": format!("r{}{other}", level + 1)});
            let schema = json!({"$id": format!("r{level}{side}"), "$defs": {"own": {"$dynamicAnchor": format!("n{level}")}},
                "anyOf": [next("a"), next("b")]});
            defs.insert(format!("{level}{side}"), schema);
        }
    }
    let asks: Vec<_> =
        (0..levels).map(|level| json!({"$dynamicRef": format!("#n{level}")})).collect();
    let own: serde_json::Map<_, _> = (0..levels)
        .map(|level| (format!("{level}"), json!({"$dynamicAnchor": format!("n{level}")})))
        .collect();
    for side in ["a", "b"] {
        let schema = json!({"$id": format!("r{levels}{side}"), "properties": {"x": {"allOf": asks}}, "$defs": own});
        defs.insert(format!("end{side}"), schema);
    }
    let problem =
        Schema::compile(&json!({"$ref": "r0a", "$defs": defs})).expect_err("too many copies");
    assert!(problem.contains(&format!("copies of more than {MAX_BYTES} bytes")), "{problem}");
}

/// Only the bad part is left out. That never makes the schema stricter.
#[test]
fn bad_schema_part_leaves_others_enforced() {
    let definition = Definition::new("t", "").unwrap().with_parameters(json!({
        "type": "object",
        "madeUp": {"type": "elephant"},
        "properties": {
            "animal": {"type": "elephant", "maxLength": 3},
            "code": {"pattern": "(", "maxLength": 3},
            "none": 5,
        },
        "not": {"properties": {"code": {"pattern": "("}}},
        "patternProperties": {"[": {"type": "null"}, "^x": {"type": "string"}},
        "additionalProperties": false,
        "required": ["code", 7],
    }));
    let schema = compiled(definition.parameters.as_ref().unwrap());
    let good = json!({"animal": "abc", "code": "abc", "none": 1, "other": 1, "xa": "b"});
    assert_eq!(schema.check(&good), Ok(()));
    for bad in [json!({"animal": "abcd"}), json!({"code": "abcd"}), json!({"xa": 1}), json!([])] {
        assert!(schema.check(&bad).is_err(), "{bad}");
    }
    insta::assert_snapshot!(definition.unenforced().join("\n"));
    let translated = definition.with_parameters(schema.text().clone());
    assert_eq!(translated.unenforced(), [""; 0]);
    for (bad, left) in rows::<(Value, Value)>("schema/drafts", "parts_left_out") {
        let schema = compiled(&bad);
        assert_eq!((schema.text(), schema.translated.warnings.len()), (&left, 1));
    }
}

/// A schema with a bad part accepts more, so a keyword that turns it around, or counts on what it
/// finds, would refuse more. That holds behind references too.
#[test]
fn keyword_around_a_bad_part_is_not_enforced() {
    for (schema, good, bad) in
        rows::<(Value, Value, Value)>("schema/drafts", "keyword_around_a_bad_part_is_not_enforced")
    {
        telling_apart(&schema, &good, &bad);
    }
}

#[test]
fn unknown_draft_is_read_as_2020_12() {
    let schema = compiled(&json!({"$schema": "https://a.example/dialect", "type": "string"}));
    assert_eq!(schema.text(), &json!({"type": "string"}));
    assert_eq!(schema.translated.warnings[0].0, "/$schema");
}

#[test]
fn external_reference_is_refused_with_its_pointer() {
    let schema = json!({"properties": {"a/b": {"$ref": "other.json#/x"}}});
    let problem = Schema::compile(&schema).unwrap_err();
    let told = "at `/properties/a~1b/$ref`: `other.json#/x` is in another document";
    assert!(problem.starts_with(told), "{problem}");
    let problem = Schema::compile(&json!({"items": {"$ref": "#/$defs/x"}})).unwrap_err();
    assert_eq!(problem, "at `/items/$ref`: `#/$defs/x` names no part of this schema");
}

#[test]
fn patterns_support_lookaround_and_backreferences() {
    for (pattern, good, bad) in rows::<(&str, &str, &str)>(
        "schema/drafts",
        "patterns_support_lookaround_and_backreferences",
    ) {
        let schema = compiled(&json!({"pattern": pattern}));
        assert_eq!(schema.check(&json!(good)), Ok(()), "{pattern}");
        let faults = schema.check(&json!(bad)).expect_err(pattern);
        assert_eq!(faults[0].expected(), format!("expected text that matches `{pattern}`"));
        let names = compiled(&json!({"patternProperties": {pattern: false}}));
        assert!(names.check(&json!({ good: 1 })).is_err(), "{pattern}");
        assert!(names.check(&json!({ bad: 1 })).is_ok(), "{pattern}");
    }
}

/// The engine gets the patterns in its own syntax, in which two of them may be alike.
#[test]
fn names_keep_the_schema_of_each_pattern() {
    for other in [json!({}), json!({"(?=x)y": true})] {
        let mut schema = json!({"patternProperties": {"^\\d$": {"type": "string"}, "^[0-9]$": {"maxLength": 2}, "^(?<n>[0-9])$": {"minLength": 1}}});
        schema["patternProperties"]
            .as_object_mut()
            .unwrap()
            .extend(other.as_object().unwrap().clone());
        let schema = compiled(&schema);
        assert_eq!(schema.check(&json!({"1": "ab"})), Ok(()));
        for bad in [json!({"1": 5}), json!({"1": "abc"}), json!({"1": ""})] {
            assert!(schema.check(&bad).is_err(), "{bad}");
        }
    }
}

/// The references point to parts that are not under a keyword. One of these parts defines an anchor
/// that others look up.
#[test]
fn references_to_odd_places_do_not_panic() {
    let schema = json!({
        "properties": {"a": {"$ref": "#/x1"}, "b": {"$ref": "#/x2"}},
        "x1": {"type": "string"},
        "x2": {"$dynamicAnchor": "n", "$dynamicRef": "#n"},
    });
    let _ = Schema::compile(&schema);
}

#[test]
fn unquantified_brace_is_literal() {
    for (pattern, good, bad) in
        rows::<(&str, &str, &str)>("schema/drafts", "unquantified_brace_is_literal")
    {
        let schema = compiled(&json!({"pattern": pattern}));
        assert!(schema.check(&json!(good)).is_ok(), "{pattern}");
        assert!(schema.check(&json!(bad)).is_err(), "{pattern}");
    }
    // Each brace is read once, however many follow.
    compiled(&json!({"pattern": "{".repeat(1_000)}));
}

/// A match that does not finish within the bounds does not count as a mismatch: the value is
/// refused as one that cannot be checked, under `not` too.
#[test]
fn backtracking_is_bounded() {
    let slow = r"^(x+x+)+\1y";
    let looped = r"^(?:(?!--).)*$";
    let long = "x".repeat(2_000);
    for (schema, value) in [
        (json!({"pattern": looped}), json!(long)),
        (json!({"pattern": slow}), json!("x".repeat(40))),
        (json!({"not": {"pattern": slow}}), json!("x".repeat(40))),
        (json!({"anyOf": [{"pattern": looped}, true]}), json!(long)),
        (json!({"items": {"pattern": looped}}), json!(vec!["x".repeat(500); 10])),
        // The pattern does not backtrack, and is large.
        (json!({"pattern": "[ab]{1,900}[^c]{1,900}c"}), json!("ab".repeat(50_000))),
    ] {
        let faults = compiled(&schema).check(&value).expect_err("it does not end");
        let told = faults[0].to_string();
        assert!(told.contains("within the limits of work"), "{schema}: {told}");
    }
    let schema = compiled(&json!({"properties": {"a": {"pattern": looped}}}));
    assert_eq!(schema.check(&json!({"a": long})).unwrap_err()[0].path, "/a");
    // Texts of ordinary tools.
    for (schema, value) in [
        (json!({"pattern": "^(?!\\s*$)"}), json!("a ".repeat(50_000))),
        (json!({"items": {"pattern": looped}}), json!(vec!["item 12345"; 9_500])),
        (json!({"items": {"pattern": "^.{1,1000}$"}}), json!(vec!["é".repeat(1_000); 30])),
    ] {
        assert_eq!(compiled(&schema).check(&value), Ok(()), "{schema}");
    }
}
