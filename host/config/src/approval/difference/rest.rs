//! Finds the parts of a tool's definition that a short description leaves out.
//!
//! `toolcell approve` shows a new tool in the short form of `toolcell inspect`. An approval covers
//! the whole definition, so every text of its author must be on the page. `Page::of_new` takes the
//! definition and the short text and returns its lines, followed by each part whose words or place
//! the text lacks. Types and keywords of JSON Schema are left out, since they are not the author's
//! words. `in_words` writes a place as "parameter city, pattern".

use serde_json::{Value, json};
use toolcell::Definition;

use super::{Page, changes};
use crate::text::clean;

/// Words of the definition's format that a place may contain. Any other word is the author's.
const WORDS: &str = "\
    $defs additionalProperties allOf anyOf const default definitions description destructive enum \
    examples exclusiveMaximum exclusiveMinimum format hints idempotent items kind maxItems \
    maxLength maxProperties maximum minItems minLength minProperties minimum multipleOf name needs \
    oneOf open_world output parameters pattern properties read_only reason required title type \
    uniqueItems";

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The sentence that the text has for a tool with an empty list of needs.
const NEEDLESS: &str = "needs nothing: its list of needs is empty";

impl Page {
    /// Formats a new tool: the text `shown`, then the parts that the text leaves out. Very long
    /// lines are truncated.
    pub fn of_new(definition: &Definition, shown: &str) -> Self {
        let mut page = Self::default();
        for line in shown.lines() {
            page.append(Self::beginning(vec![format!("  {line}")]));
        }
        let rest = Self::of_rest(definition, shown);
        if !rest.lines.is_empty() {
            page.lines.push("    also in its definition".to_owned());
            page.append(rest);
        }
        page
    }

    /// Returns the parts of a tool's definition that the text does not contain, each with its
    /// place. Types are left out, because there are only seven of them.
    pub(super) fn of_rest(definition: &Definition, shown: &str) -> Self {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = words(shown);
        let has = |text: &str| {
            !text.contains(toolcell::tool::is_invisible) && shown.contains(&words(text))
        };
        let is_shown = |value: &Value| match value.as_array() {
            Some(items) => items.iter().all(|item| has(&plain(item))),
            None => has(&plain(value)),
        };
        let is_known_place = |place: &str| {
            parts(place).all(|part| {
                WORDS.split(' ').any(|word| word == part)
                    || part.parse::<u32>().is_ok()
                    || has(&part)
            })
        };
        let is_plain = |place: &str, value: &Value| match value {
            Value::Bool(_) => {
                place.ends_with("/additionalProperties") || place.starts_with("/hints/")
            }
            Value::String(word) if place.ends_with("/type") => TYPES.contains(&word.as_str()),
            Value::Array(words) if place.ends_with("/type") => {
                words.iter().all(|word| word.as_str().is_some_and(|word| TYPES.contains(&word)))
            }
            Value::Null
            | Value::String(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => false,
        };
        let mut page = Self::default();
        for change in changes(None, Some(definition)) {
            let value = change.new.as_ref().unwrap_or(&Value::Null);
            // The text has a sentence for this.
            let is_needless =
                change.pointer == "/extensions/needs" && value == &json!([]) && has(NEEDLESS);
            let is_listed = is_plain(&change.pointer, value) || is_shown(value);
            if is_needless
                || is_listed && is_known_place(&change.pointer)
                || change.pointer == "/max_execution_ms"
            {
                continue;
            }
            let place = clean::escaped(&in_words(&change.pointer));
            let Self { lines, is_cut } = change.page();
            let values: Vec<_> =
                lines.iter().map(|line| line.trim_start().trim_start_matches("+ ")).collect();
            match values.as_slice() {
                [only] => page.lines.push(format!("      {place}: {only}")),
                several => {
                    page.lines.push(format!("      {place}:"));
                    page.lines.extend(several.iter().map(|line| format!("        {line}")));
                }
            }
            page.is_cut |= is_cut;
        }
        page
    }
}

/// Returns the decoded parts of a JSON pointer.
fn parts(place: &str) -> impl Iterator<Item = String> {
    place.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"))
}

/// Formats a place in a definition in words: `parameter city, pattern` for
/// `/parameters/properties/city/pattern`.
pub(super) fn in_words(place: &str) -> String {
    let parts: Vec<_> = parts(place).collect();
    let parts: Vec<_> = parts.iter().map(String::as_str).collect();
    let (mut words, mut rest) = match parts.as_slice() {
        ["parameters", "properties", name, rest @ ..] => (vec![format!("parameter {name}")], rest),
        ["parameters", rest @ ..] => (vec!["parameters".to_owned()], rest),
        ["output", rest @ ..] => (vec!["result".to_owned()], rest),
        ["attributes", name, rest @ ..] => (vec![format!("attribute {name}")], rest),
        ["extensions", rest @ ..] | rest => (Vec::new(), rest),
    };
    loop {
        let (word, after) = match rest {
            [] => return words.join(", "),
            ["properties", name, rest @ ..] => (format!("member {name}"), rest),
            ["$defs" | "definitions", name, rest @ ..] => (format!("definition {name}"), rest),
            ["items", rest @ ..] => ("each item".to_owned(), rest),
            [word, rest @ ..] => ((*word).to_owned(), rest),
        };
        words.push(word);
        rest = after;
    }
}

/// Returns a string as it is, and another value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
