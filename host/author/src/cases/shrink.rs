//! Proposes simpler forms of a JSON value, to find the smallest one that has a property.
//!
//! Fuzzing calls [`simplified`] with arguments at which a tool fails. It returns candidates that
//! are one step simpler, the simplest first: shorter ones (halves, without one item or member),
//! then equally long ones with plainer content, such as `a` in place of another character. None has
//! a longer text. The caller tries them in order, continues from the first that still fails, and
//! ends when none does.

use serde_json::{Value, json};

/// The character that replaces others.
const PLAIN: char = 'a';
/// Items and characters that are removed or replaced one by one.
const MAX_STEPS: usize = 20;

/// Returns values that are one step simpler, the simplest first: shorter ones, then equally short
/// ones with plainer content. None has a longer text.
pub(super) fn simplified(value: &Value) -> Vec<Value> {
    match value {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::Bool(true) => vec![json!(false)],
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(0), _) => Vec::new(),
            (Some(number @ (1 | -1)), _) => {
                [0, 1].iter().filter(|it| **it != number).map(|it| json!(it)).collect()
            }
            (Some(number), _) => {
                [0, 1, number / 2, number - number.signum()].map(|number| json!(number)).to_vec()
            }
            (None, Some(number)) if number.fract() != 0.0 => {
                vec![json!(0), json!(1), json!(number.trunc())]
            }
            _ => vec![json!(0), json!(1)],
        },
        Value::String(text) => texts(text).into_iter().map(Value::String).collect(),
        Value::Array(items) => {
            let mut found: Vec<_> = parts(items).into_iter().map(Value::Array).collect();
            for (at, item) in items.iter().enumerate() {
                found.extend(simplified(item).into_iter().map(|item| {
                    let mut items = items.clone();
                    items[at] = item;
                    Value::Array(items)
                }));
            }
            found
        }
        Value::Object(members) => {
            let without = members.keys().map(|name| {
                let mut members = members.clone();
                members.remove(name);
                Value::Object(members)
            });
            let mut found: Vec<_> = without.collect();
            for (name, member) in members {
                found.extend(simplified(member).into_iter().map(|member| {
                    let mut members = members.clone();
                    members.insert(name.clone(), member);
                    Value::Object(members)
                }));
            }
            found
        }
    }
}

fn texts(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut found: Vec<String> =
        parts(&chars).into_iter().map(|part| part.into_iter().collect()).collect();
    if chars.iter().any(|char| *char != PLAIN) {
        // The same number of characters, and the same number of bytes: a tool can count either.
        found.push(PLAIN.to_string().repeat(chars.len()));
        found.push(PLAIN.to_string().repeat(text.len()));
        for at in (0..chars.len().min(MAX_STEPS)).filter(|at| chars[*at] != PLAIN) {
            let mut plainer = chars.clone();
            plainer[at] = PLAIN;
            found.push(plainer.into_iter().collect());
        }
        // Keeps the number of bytes while it replaces a character of several bytes.
        for (at, char) in
            text.char_indices().filter(|(_, char)| char.len_utf8() > 1).take(MAX_STEPS)
        {
            let plain = PLAIN.to_string().repeat(char.len_utf8());
            found.push([&text[..at], &plain, &text[at + char.len_utf8()..]].concat());
        }
    }
    found.retain(|simpler| simpler != text);
    found
}

/// Returns the empty list, each half, and the list without one of its items.
fn parts<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return Vec::new();
    }
    let (first, second) = items.split_at(items.len() / 2);
    let mut found = vec![Vec::new(), first.to_vec(), second.to_vec()];
    for at in 0..items.len().min(MAX_STEPS) {
        found.push([&items[..at], &items[at + 1..]].concat());
    }
    found.retain(|part| part.len() < items.len());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the smallest value with the property that stepwise simplification finds.
    fn smallest(mut value: Value, has: impl Fn(&Value) -> bool) -> Value {
        while let Some(next) = simplified(&value).into_iter().find(|value| has(value)) {
            value = next;
        }
        value
    }

    #[test]
    fn smallest_value_with_a_property_is_found() {
        let large = json!({"list": [1, 2, {"deep": "some text with a ? in it"}], "number": -300, "other": [true, 1.5]});
        let found = smallest(large.clone(), |value| value.to_string().contains('?'));
        assert_eq!(found, json!({"list": [{"deep": "?"}]}));
        let found = smallest(large.clone(), |value| {
            value["number"].as_i64().is_some_and(|number| number < -100)
        });
        assert_eq!(found, json!({"number": -101}));
        assert_eq!(smallest(large, |_| true), json!({}));
    }

    #[test]
    fn equally_short_values_become_plain() {
        let smallest_text = |text: &str, has: fn(&str) -> bool| {
            smallest(json!(text), |value| has(value.as_str().unwrap()))
        };
        assert_eq!(smallest_text("日本語のテキスト", |text| text.len() > 5), json!("aaaaaa"));
        assert_eq!(smallest_text("日本語", |text| text.chars().count() > 1), json!("aa"));
        assert_eq!(
            smallest_text("ünique?", |text| text.len() == 4 && text.ends_with('?')),
            json!("aaa?")
        );
        assert_eq!(
            smallest_text("some ? text", |text| text.starts_with("so") && text.contains('?')),
            json!("so?")
        );
        for (number, found) in [(json!(-7), 1), (json!(1e300), 1), (json!(2.5), 1), (json!(-1), 1)]
        {
            assert_eq!(
                smallest(number.clone(), |value| value != &json!(0)),
                json!(found),
                "{number}"
            );
        }
    }
}
