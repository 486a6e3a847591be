//! Generates values that a JSON Schema probably accepts, with a preference for unusual ones.
//!
//! Fuzzing creates a [`Generator`] with the schema of a tool's parameters and a seed, and asks it
//! for the arguments of each call. The values favour bounds and texts that programs often handle
//! wrongly, such as an empty string, `i64::MIN` or a control character. A value is not guaranteed
//! to fit; the caller validates it and drops misfits. Generation ends for every schema, recursive
//! ones included, because nesting, lengths and repetitions are bounded. Equal seeds give equal
//! values.

use fastrand::Rng;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Number, Value, json};

/// Nesting depth of schemas that is followed. Deeper ones become `null` or are left out.
const MAX_DEPTH: usize = 12;
/// Items and members that a value gets beyond the required ones.
const MAX_EXTRA: usize = 4;
/// Maximum characters of a text without `maxLength`.
const LONG: usize = 3000;
/// Repetitions of a pattern beyond its minimum.
const REPEATED: u32 = 3;

/// Strings that programs often handle incorrectly.
const TEXTS: [&str; 14] = [
    "",
    " ",
    "a",
    "0",
    "-1",
    "1e999",
    "null",
    "\n",
    "\u{0}",
    "é",
    "日本語",
    "👩‍👩‍👧",
    "../../etc/passwd",
    "'\"\\<>{}%s",
];
const INTEGERS: [i64; 10] =
    [0, 1, -1, 2, 255, 65_536, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];
const NUMBERS: [f64; 6] = [0.0, -0.0, 0.1, -1.5, 1e308, 5e-324];

/// Generates values of one schema.
pub(super) struct Generator<'a> {
    root: &'a Value,
    random: Rng,
}

impl<'a> Generator<'a> {
    pub(super) fn new(root: &'a Value, seed: u64) -> Self {
        Self { root, random: Rng::with_seed(seed) }
    }

    /// Generates a value of the whole schema.
    pub(super) fn value(&mut self) -> Value {
        self.of(self.root, 0)
    }

    fn of(&mut self, schema: &'a Value, depth: usize) -> Value {
        let Some(map) = schema.as_object() else { return self.any() };
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        if let Some(target) = map.get("$ref").and_then(Value::as_str) {
            return match target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
                Some(target) => self.of(target, depth + 1),
                None => self.any(),
            };
        }
        if let Some(value) = map.get("const") {
            return value.clone();
        }
        if let Some(values) = items(map, "enum") {
            return self.one(values).clone();
        }
        if let Some(examples) = items(map, "examples").filter(|_| self.random.u8(..4) == 0) {
            return self.one(examples).clone();
        }
        if let Some(choices) = items(map, "anyOf").or_else(|| items(map, "oneOf")) {
            let choice = self.one(choices);
            let chosen = self.of(choice, depth + 1);
            // The schema can declare members beside its alternatives.
            let has_more = map.contains_key("properties");
            return if has_more { merged(self.plain(map, depth), chosen) } else { chosen };
        }
        if let Some(parts) = map.get("allOf").and_then(Value::as_array) {
            let begin = self.plain(map, depth);
            return parts.iter().fold(begin, |value, part| merged(value, self.of(part, depth + 1)));
        }
        self.plain(map, depth)
    }

    fn plain(&mut self, map: &'a Map<String, Value>, depth: usize) -> Value {
        let kind = match map.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) if !kinds.is_empty() => {
                self.one(kinds).as_str().unwrap_or_default()
            }
            _ if map.contains_key("properties") => "object",
            _ if map.contains_key("items") => "array",
            _ => return self.any(),
        };
        match kind {
            "object" => self.object(map, depth),
            "array" => self.array(map, depth),
            "string" => Value::String(self.text(map)),
            "integer" => self.integer(map),
            "number" if self.random.bool() => self.integer(map),
            "number" => {
                let number = *self.one(&NUMBERS);
                let least = bound(map, "minimum").unwrap_or(f64::MIN);
                let most = bound(map, "maximum").unwrap_or(f64::MAX);
                Number::from_f64(number.clamp(least, most.max(least))).into()
            }
            "boolean" => Value::Bool(self.random.bool()),
            _ => Value::Null,
        }
    }

    fn object(&mut self, map: &'a Map<String, Value>, depth: usize) -> Value {
        let required = items(map, "required").map(Vec::as_slice).unwrap_or_default();
        let mut object = Map::new();
        for (name, schema) in map.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let is_wanted = required.iter().any(|required| required == name)
                || (depth < MAX_DEPTH / 2 && self.random.bool());
            if is_wanted {
                object.insert(name.clone(), self.of(schema, depth + 1));
            }
        }
        if let Some(schema) = map.get("additionalProperties").filter(|schema| schema.is_object()) {
            for at in 0..self.random.usize(..=MAX_EXTRA.saturating_sub(depth)) {
                object.insert(format!("key{at}"), self.of(schema, depth + 1));
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, map: &'a Map<String, Value>, depth: usize) -> Value {
        let least = size(map, "minItems").unwrap_or(0);
        let most = size(map, "maxItems").unwrap_or(least + MAX_EXTRA).max(least);
        let count = match self.random.u8(..4) {
            0 => least,
            1 => most.min(least + 100),
            _ => self.random.usize(least..=most.min(least + MAX_EXTRA)),
        };
        let fixed = items(map, "prefixItems").map(Vec::as_slice).unwrap_or_default();
        let items = (0..count).map(|at| match fixed.get(at).or(map.get("items")) {
            Some(schema) => self.of(schema, depth + 1),
            None => self.any(),
        });
        Value::Array(items.collect())
    }

    fn text(&mut self, map: &Map<String, Value>) -> String {
        if let Some(pattern) = map.get("pattern").and_then(Value::as_str) {
            let mut text = String::new();
            // In JSON Schema these classes are ASCII only.
            let pattern = pattern.replace("\\d", "[0-9]").replace("\\w", "[0-9A-Za-z_]");
            if let Ok(pattern) = regex_syntax::parse(&pattern) {
                self.matching(&pattern, &mut text);
            }
            return text;
        }
        let least = size(map, "minLength").unwrap_or(0);
        let most = size(map, "maxLength").unwrap_or(LONG).max(least);
        let mut text = match (map.get("format").and_then(Value::as_str), self.random.u8(..8)) {
            (Some("date"), _) => "2024-02-29".to_owned(),
            (Some("date-time"), _) => "2024-02-29T23:59:60Z".to_owned(),
            (Some("uri" | "url"), _) => "https://example.com/a?b=c#d".to_owned(),
            (Some("email"), _) => "a@example.com".to_owned(),
            (_, 0) => "x".repeat(most),
            _ => (*self.one(&TEXTS)).to_owned(),
        };
        let length = text.chars().count();
        text.extend(std::iter::repeat_n('x', least.saturating_sub(length)));
        text.chars().take(most).collect()
    }

    /// Appends a text that the pattern matches. Look-around assertions and bytes add nothing.
    fn matching(&mut self, pattern: &Hir, text: &mut String) {
        match pattern.kind() {
            HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => {}
            HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
            HirKind::Class(Class::Unicode(class)) => {
                if let Some(range) =
                    class.ranges().get(self.random.usize(..class.ranges().len().max(1)))
                {
                    text.push(self.random.char(range.start()..=range.end()));
                }
            }
            HirKind::Repetition(repetition) => {
                let most =
                    repetition.min.saturating_add(REPEATED).min(repetition.max.unwrap_or(u32::MAX));
                for _ in 0..self.random.u32(repetition.min..=most.max(repetition.min)).min(1000) {
                    self.matching(&repetition.sub, text);
                }
            }
            HirKind::Capture(capture) => self.matching(&capture.sub, text),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.matching(part, text)),
            HirKind::Alternation(choices) => {
                let choice = self.random.usize(..choices.len());
                self.matching(&choices[choice], text);
            }
        }
    }

    fn integer(&mut self, map: &Map<String, Value>) -> Value {
        let least = integer_bound(map, "minimum")
            .or(integer_bound(map, "exclusiveMinimum").map(|least| least.saturating_add(1)));
        let most = integer_bound(map, "maximum")
            .or(integer_bound(map, "exclusiveMaximum").map(|most| most.saturating_sub(1)));
        let (least, most) = (least.unwrap_or(i64::MIN), most.unwrap_or(i64::MAX));
        let number = match self.random.u8(..4) {
            0 => least,
            1 => most,
            _ => *self.one(&INTEGERS),
        };
        let number = number.clamp(least, most.max(least));
        let step = integer_bound(map, "multipleOf").filter(|step| *step > 0).unwrap_or(1);
        let rounded = number.saturating_sub(number.rem_euclid(step));
        json!(if rounded < least { rounded.saturating_add(step) } else { rounded })
    }

    /// Generates a value where the schema sets no constraint.
    fn any(&mut self) -> Value {
        match self.random.u8(..7) {
            0 => Value::Null,
            1 => json!(self.random.bool()),
            2 => json!(self.one(&INTEGERS)),
            3 => json!(self.one(&NUMBERS)),
            4 => json!(self.one(&TEXTS)),
            5 => json!([]),
            _ => json!({}),
        }
    }

    fn one<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.random.usize(..values.len())]
    }
}

/// Merges two objects. For other values, returns the second.
fn merged(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (_, other) => other,
    }
}

/// Returns a list that has items.
fn items<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Vec<Value>> {
    map.get(key)?.as_array().filter(|items| !items.is_empty())
}

fn size(map: &Map<String, Value>, key: &str) -> Option<usize> {
    map.get(key)?.as_u64().and_then(|size| usize::try_from(size).ok()).map(|size| size.min(100_000))
}

fn bound(map: &Map<String, Value>, key: &str) -> Option<f64> {
    map.get(key)?.as_f64()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a bound beyond the integers is the nearest integer"
)]
fn integer_bound(map: &Map<String, Value>, key: &str) -> Option<i64> {
    let bound = map.get(key)?;
    bound.as_i64().or_else(|| bound.as_f64().map(|bound| bound as i64))
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn generated_values_fit_their_schema() {
        for schema in rows::<Value>("cases/generate", "generated_values_fit_their_schema") {
            let validator = jsonschema::draft202012::new(&schema).expect("a schema");
            let mut generator = Generator::new(&schema, 7);
            for _ in 0..300 {
                let value = generator.value();
                assert!(validator.is_valid(&value), "{schema}: {value}");
            }
        }
    }

    #[test]
    fn same_seed_generates_same_values() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}});
        let values = |seed| {
            let mut generator = Generator::new(&schema, seed);
            (0..20).map(|_| generator.value()).collect::<Vec<_>>()
        };
        assert_eq!(values(1), values(1));
        assert_ne!(values(1), values(2));
    }

    #[test]
    fn generation_ends_for_every_schema() {
        for schema in rows::<Value>("cases/generate", "generation_ends_for_every_schema") {
            let mut generator = Generator::new(&schema, 3);
            // Some branches are taken at random.
            (0..16).for_each(|_| drop(generator.value()));
        }
    }
}
