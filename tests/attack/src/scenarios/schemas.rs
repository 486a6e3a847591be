//! Schemas and arguments that would keep a checker busy for hours, or crash it.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell::{CallOptions, Definition, Executor, Tool, ToolCall};
use toolcell_tests::wait;

use super::Scenario;
use crate::fixture::{Fixture, is_typed};
use crate::rng::SeededRng;
use crate::tally::{Fault, Tally, wrong};

/// Time that taking a definition, or checking arguments against it, may need. Source:
/// docs/threat-model.md, row 7.
const BOUND: Duration = Duration::from_millis(50);
/// More than this is a failure even on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Levels of a random schema.
const DEPTH: u64 = 5;
const TYPES: [&str; 6] = ["object", "array", "string", "integer", "null", "what"];
const REFERENCES: [&str; 6] =
    ["#", "#/properties/a", "#/$defs/x", "http://127.0.0.1/x", "file:///etc/passwd", ""];

pub(crate) struct Schemas {
    seed: u64,
}

impl Schemas {
    pub(crate) fn new(stage: &Fixture) -> Self {
        Self { seed: stage.seed }
    }
}

static PATTERNS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let patterns = r"^(a+)+$ (x{1,1000}){1000} (a|a)*b (.*)*(.*)*x ^(([a-z])+.)+[A-Z]([a-z])+$
        \p{L}{500} (?:a{0,255}){0,255} [\s\S]{60000} (?=a)a (a)\1
        ((((((((((a*)*)*)*)*)*)*)*)*)*) [";
    patterns.split_whitespace().collect()
});

fn bomb(dice: &mut SeededRng) -> Value {
    let count = dice.pick(&[3_usize, 50, 199, 399, 1_999, 20_000]);
    let nested =
        |key: &str, levels: usize| (0..levels).fold(json!({}), |inner, _| json!({key: inner}));
    let properties = |a: Value| json!({"properties": {"a": a}});
    match dice.number(0..13) {
        0 => properties(json!({"type": "string", "pattern": dice.pick(&PATTERNS)})),
        1 => json!({"patternProperties": {dice.pick(&PATTERNS): {"type": "integer"}}}),
        2 => {
            json!({"anyOf": vec![json!({"pattern": dice.pick(&PATTERNS), "minLength": 3}); count]})
        }
        3 => nested(
            dice.pick(&["items", "not", "additionalProperties", "contains", "if"]),
            count.min(119),
        ),
        // Each level references the next one twice.
        4 => {
            let link = |n: usize| json!({"anyOf": [{"$ref": format!("#/$defs/{}", n + 1)}, {"allOf": [{"$ref": format!("#/$defs/{}", n + 1)}]}]});
            let levels = count.min(60);
            let mut defs: serde_json::Map<_, _> =
                (0..levels).map(|n| (n.to_string(), link(n))).collect();
            defs.insert(levels.to_string(), json!({"type": "integer"}));
            json!({"$ref": "#/$defs/0", "$defs": defs})
        }
        5 => json!({"$ref": "#"}),
        6 => {
            json!({"properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}}})
        }
        7 => {
            json!({"properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "array", "uniqueItems": true}}}})
        }
        8 => {
            let values: Vec<_> = (0..count).map(|n| format!("value-{n}")).collect();
            properties(json!({ "enum": values }))
        }
        9 => {
            json!({"$dynamicRef": "#a", "$defs": {"b": {"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}}})
        }
        10 => {
            json!({"unevaluatedProperties": false, "anyOf": vec![json!({"properties": {"b": {"unevaluatedProperties": false}}}); count.min(200)]})
        }
        11 => properties(json!({"multipleOf": dice.pick(&[1e-300, 5e-324, 0.0, -1.0, 1e308])})),
        _ => random_schema(dice, DEPTH),
    }
}

/// Returns a schema of random keywords.
fn random_schema(dice: &mut SeededRng, depth: u64) -> Value {
    let mut schema = serde_json::Map::new();
    for _ in 0..dice.number(0..4) {
        let inner = |dice: &mut SeededRng| {
            if depth == 0 { json!(true) } else { random_schema(dice, depth - 1) }
        };
        let (key, value) = match dice.number(0..16) {
            0 => ("type", json!(dice.pick(&TYPES))),
            1 => ("properties", json!({"a": inner(dice), "b": inner(dice)})),
            2 => ("items", inner(dice)),
            3 => ("anyOf", json!([inner(dice), inner(dice)])),
            4 => ("oneOf", json!([inner(dice), inner(dice), inner(dice)])),
            5 => ("not", inner(dice)),
            6 => ("$ref", json!(dice.pick(&REFERENCES))),
            7 => ("required", json!(["a", "b", "a"])),
            8 => ("if", inner(dice)),
            9 => ("then", inner(dice)),
            10 => ("minimum", json!(dice.pick(&[-1e308, 0.5, 1e308]))),
            11 => ("maxItems", json!(dice.pick(&[-1_i64, 0, i64::MAX]))),
            12 => ("unevaluatedItems", inner(dice)),
            13 => ("dependentSchemas", json!({"a": inner(dice)})),
            14 => ("$id", json!(dice.pick(&["a", "http://a.example/", "#", "urn:x"]))),
            _ => ("propertyNames", inner(dice)),
        };
        schema.insert(key.into(), value);
    }
    Value::Object(schema)
}

/// Arrays that contain only arrays, a different one for each number: a hash over their items'
/// scalar values is the same for all.
fn tree(number: usize) -> Value {
    match (number, number % 2) {
        (0, _) => json!([]),
        (_, 0) => json!([tree(number / 2)]),
        _ => json!([[], tree(number / 2)]),
    }
}

fn arguments(dice: &mut SeededRng) -> String {
    let count = dice.pick(&[1_usize, 100, 5_000, 60_000]);
    match dice.number(0..12) {
        0 => "[".repeat(count),
        1 => format!(r#"{{"a":{}{}}}"#, "[".repeat(count.min(126)), "]".repeat(count.min(126))),
        2 => format!(r#"{{"a":"{}!"}}"#, "a".repeat(count)),
        3 => json!({"a": (0..count).collect::<Vec<_>>()}).to_string(),
        4 => json!({"a": (0..count.min(5_000)).map(|n| json!({"a": n, "b": [n]})).collect::<Vec<_>>()}).to_string(),
        5 => r#"{"a":1e999999}"#.into(),
        6 => r#"{"a":1,"a":2}"#.into(),
        7 => format!(r#"{{"a":{}}}"#, "9".repeat(count)),
        8 => Value::Object((0..count).map(|n| (format!("k{n}"), json!(null))).collect()).to_string(),
        9 => r#"{"a":"\ud800"}"#.into(),
        10 => json!({"a": (0..count.min(20_000)).map(tree).collect::<Vec<_>>()}).to_string(),
        _ => "{}".into(),
    }
}

impl Scenario for Schemas {
    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let mut dice = SeededRng::of(self.seed, "schemas", case);
        let schema = bomb(&mut dice);
        let definition = Definition::new("bomb", "").expect("a name");
        let text = schema.to_string();
        let judge = |tally: &mut Tally, what: &str, began: Instant, detail: &str| {
            let took = began.elapsed();
            tally.overran(took.saturating_sub(BOUND));
            tally.record_result(if took > MAX_TIME {
                let (text, detail) =
                    (&text[..text.len().min(200)], &detail[..detail.len().min(60)]);
                Err((Fault::Slow, what.to_owned(), format!("{took:?}: {text} {detail}")))
            } else {
                Ok(())
            });
        };
        let began = Instant::now();
        let made = Tool::manual(definition.with_parameters(schema));
        judge(tally, "to take a schema", began, "");
        let tool = match made {
            Ok(tool) => tool,
            Err(error) if is_typed(&error) => return,
            Err(error) => {
                let failure = wrong("an error of no kind", format!("{error:?}"));
                return tally.record_result(Err(failure));
            }
        };
        for _ in 0..4 {
            let arguments = arguments(&mut dice);
            let (tool, call) = (tool.clone(), ToolCall::new("1", "bomb", arguments.as_str()));
            let began = Instant::now();
            wait(async move { Executor::new().call(&tool, call, CallOptions::default()).await });
            judge(tally, "to check arguments", began, &arguments);
        }
    }
}
