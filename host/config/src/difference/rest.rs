//! What a short description of a tool leaves out of its definition.
//!
//! In: a definition, and the text that a person was shown. Out: every part whose words or place are not in that text.
//! Invariants: approval covers the whole definition, so each text of its author is in one of the two.

use serde_json::Value;
use toolcell::Definition;

use super::{Page, changes};
use crate::clean;

/// Words of JSON Schema that a place may have in it; any other word is the author's.
const KEYWORDS: [&str; 27] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "enum",
    "examples",
    "format",
    "items",
    "kind",
    "maximum",
    "minLength",
    "minimum",
    "name",
    "needs",
    "oneOf",
    "output",
    "parameters",
    "pattern",
    "properties",
    "reason",
    "required",
    "title",
    "type",
    "$defs",
];

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// What an author can claim of a tool's effects: `inspect` names what is claimed.
const HINTS: [&str; 5] = ["hints", "read_only", "idempotent", "destructive", "open_world"];

impl Page {
    /// The parts of a tool's definition that a text about it does not contain, each with its place: what a short description
    /// leaves out. Types are left out, for they are one of seven words.
    pub fn of_rest(definition: &Definition, shown: &str) -> Self {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = words(shown);
        let has = |text: &str| !text.contains(toolcell::is_unseen) && shown.contains(&words(text));
        let is_shown = |value: &Value| match value.as_array() {
            Some(items) => items.iter().all(|item| has(&plain(item))),
            None => has(&plain(value)),
        };
        let is_known_place = |place: &str| {
            let mut parts = place.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
            parts.all(|part| {
                KEYWORDS.contains(&&*part) || HINTS.contains(&&*part) || part.parse::<u32>().is_ok() || has(&part)
            })
        };
        let is_plain = |place: &str, value: &Value| match value {
            Value::Bool(_) => place.ends_with("/additionalProperties") || place.starts_with("/hints/"),
            Value::String(word) if place.ends_with("/type") => TYPES.contains(&word.as_str()),
            Value::Null | Value::String(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
        };
        let mut page = Self::default();
        for change in changes(None, Some(definition)) {
            let value = change.new.as_ref().unwrap_or(&Value::Null);
            let is_listed = is_plain(&change.place, value) || is_shown(value);
            if is_listed && is_known_place(&change.place) || change.place == "/max_execution_ms" {
                continue;
            }
            page.lines.push(format!("    {}", clean::shown(&change.place)));
            let Self { lines, is_cut } = change.page();
            page.lines.extend(lines);
            page.is_cut |= is_cut;
        }
        page
    }
}

/// A text as it is, another value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
