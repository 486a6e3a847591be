//! Validates a file against its schema, and reports all violations at once.
//!
//! A deserializer stops at the first error, so reading a configuration calls [`check`] before it.
//! `check` takes the file as a tree with places and the JSON Schema of the file's types. It reports
//! each unknown key with the nearest known one, each value of another type with an example, and
//! each missing key. Invalid parts are removed from the tree, so that the rest can be deserialised
//! and checked further. No key is hard-coded.
//!
//! Not here: JSON Schema in general. Only the keywords that are generated from the crate's types
//! are supported; the rest is ignored.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;
use toml::de::{DeArray, DeTable, DeValue};
use toolcell::names;

use crate::problem::Problems;

/// Validates a file against its schema, and removes invalid parts, so that the rest can be
/// deserialized.
pub(crate) fn check(problems: &mut Problems<'_>, schema: &Value, file: &mut DeTable<'_>) {
    Shape { root: schema, problems }.table(&[schema], file, &(0..0), &[]);
}

/// The types of a value: the name in the schema, the name in a message, and an example.
const TYPES: [(&str, &str, &str); 7] = [
    ("array", "a list: `[…]`", "[…]"),
    ("boolean", "`true` or `false`", "true"),
    ("datetime", "a date or a time", "…"),
    ("integer", "a whole number", "1"),
    ("number", "a fraction", "1"),
    ("object", "a table: `{ … }`", "{ … }"),
    ("string", "text in quotes", "\"…\""),
];

/// The position of a value.
#[derive(Clone, Copy)]
enum Place {
    /// After the key and `=`.
    Key,
    /// In the list that is the key's value.
    List,
}

struct Shape<'a, 'b, 'c> {
    root: &'a Value,
    problems: &'b mut Problems<'c>,
}

impl<'a> Shape<'a, '_, '_> {
    /// Returns true if a value is valid. Invalid parts of it are removed.
    fn value(
        &mut self,
        schema: &'a Value,
        value: &mut DeValue<'_>,
        span: &Range<usize>,
        path: &[String],
        place: Place,
    ) -> bool {
        let mut forms = Vec::new();
        self.forms(schema, &mut forms);
        let fitting: Vec<_> =
            forms.iter().copied().filter(|form| takes(form, name_of(value))).collect();
        let what = path.join(".");
        if fitting.is_empty() {
            let types = all_types(&forms).into_iter();
            let expected: Vec<_> = types.map(|name| described(name).0).collect();
            let expected = expected.join(" or ");
            let what = match place {
                Place::List => format!("an item of `{what}`"),
                Place::Key => format!("`{what}`"),
            };
            // Text on a command line has no quotes.
            let found = match name_of(value) {
                "string" => "text",
                other => described(other).0,
            };
            let message = format!("{what} must be {expected}, not {found}");
            self.problems.error(span, message, example_of(path.last(), &forms, place));
            return false;
        }
        match value {
            DeValue::Table(table) => return self.table(&fitting, table, span, path),
            DeValue::Array(items) => {
                for schema in fitting.iter().filter_map(|form| form.get("items")) {
                    let mut usable = DeArray::new();
                    for mut item in std::mem::replace(items, DeArray::new()) {
                        let span = item.span();
                        if self.value(schema, item.get_mut(), &span, path, Place::List) {
                            usable.push(item);
                        }
                    }
                    *items = usable;
                }
            }
            DeValue::String(text) => {
                let words = words(&fitting);
                if !words.is_empty() && !words.contains(&text.as_ref()) {
                    self.problems.error(
                        span,
                        format!("`{what}`: `{text}` is not one of its values"),
                        nearest(text, &words, "write one of"),
                    );
                    return false;
                }
            }
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {}
        }
        true
    }

    /// Returns true if a table has all required members. Invalid members are removed.
    fn table(
        &mut self,
        forms: &[&'a Value],
        table: &mut DeTable<'_>,
        span: &Range<usize>,
        path: &[String],
    ) -> bool {
        let place =
            if path.is_empty() { "the file".to_owned() } else { format!("`{}`", path.join(".")) };
        let members = || forms.iter().filter_map(|form| form.get("properties")?.as_object());
        let mut unusable = Vec::new();
        for (key, value) in table.iter_mut() {
            let name = key.get_ref().as_ref();
            let rest = || {
                forms.iter().find_map(|form| {
                    form.get("additionalProperties").filter(|rest| **rest != false)
                })
            };
            match members().find_map(|members| members.get(name)).or_else(rest) {
                Some(schema) => {
                    let path = [path, &[name.to_owned()]].concat();
                    let span = value.span();
                    if !self.value(schema, value.get_mut(), &span, &path, Place::Key) {
                        unusable.push(key.clone());
                    }
                }
                None => {
                    let known: Vec<_> =
                        members().flat_map(|members| members.keys().map(String::as_str)).collect();
                    let message = format!("{place} has an unknown key `{}`", name.escape_debug());
                    self.problems.error(
                        &key.span(),
                        message,
                        nearest(name, &known, "the keys are"),
                    );
                    unusable.push(key.clone());
                }
            }
        }
        let required = forms.iter().filter_map(|form| form.get("required")?.as_array()).flatten();
        let required: Vec<_> = required.filter_map(Value::as_str).collect();
        for name in &required {
            if table.get(*name).is_none() {
                let mut forms = Vec::new();
                for schema in members().filter_map(|members| members.get(*name)) {
                    self.forms(schema, &mut forms);
                }
                let first = forms.iter().find_map(|form| types(form).first().copied());
                let form = first.map_or("…", |name| described(name).1);
                self.problems.error(
                    span,
                    format!("{place} has no `{name}`"),
                    format!("add `{name} = {form}`"),
                );
            }
        }
        unusable.iter().for_each(|key| drop(table.remove(key)));
        required.iter().all(|name| table.get(*name).is_some())
    }

    /// Returns a schema's alternatives, with references followed. The generated schema has no
    /// cycles.
    fn forms(&self, schema: &'a Value, forms: &mut Vec<&'a Value>) {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|name| self.root.pointer(name.strip_prefix('#')?));
        if let Some(target) = target {
            return self.forms(target, forms);
        }
        match schema.get("anyOf").and_then(Value::as_array) {
            Some(alternatives) => alternatives.iter().for_each(|schema| self.forms(schema, forms)),
            None => forms.push(schema),
        }
    }
}

/// Shows how to write a key: with one of its words or its example if it has some, otherwise with a
/// value of an allowed type.
fn example_of(key: Option<&String>, forms: &[&Value], place: Place) -> String {
    let words: Vec<_> = words(forms).iter().map(|word| format!("`\"{word}\"`")).collect();
    if !words.is_empty() {
        return format!("write one of: {}", words.join(", "));
    }
    let key = key.map_or("…", String::as_str);
    if let Some(example) = forms.iter().find_map(|form| form.get("examples")?.get(0)) {
        return format!("write `{key} = {example}`");
    }
    let line = |name| match place {
        Place::Key => format!("`{key} = {}`", described(name).1),
        Place::List => format!("`{key} = [{}]`", described(name).1),
    };
    let lines: Vec<_> = all_types(forms).into_iter().map(line).collect();
    format!("write {}", lines.join(" or "))
}

/// Returns the words that a text can be.
fn words<'v>(forms: &[&'v Value]) -> Vec<&'v str> {
    let words = forms.iter().filter_map(|form| form.get("enum")?.as_array()).flatten();
    words.filter_map(Value::as_str).collect()
}

/// Returns the types of a value that is present.
fn all_types<'v>(forms: &[&'v Value]) -> BTreeSet<&'v str> {
    forms.iter().flat_map(|form| types(form)).filter(|name| *name != "null").collect()
}

/// Returns the name of a type in a message, and an example.
fn described(name: &str) -> (&'static str, &'static str) {
    let known = TYPES.iter().find(|(known, ..)| *known == name);
    known.map_or(("…", "…"), |(_, words, example)| (*words, *example))
}

fn types(schema: &Value) -> Vec<&str> {
    let said = &schema["type"];
    let several = said.as_array().into_iter().flatten();
    said.as_str().into_iter().chain(several.filter_map(Value::as_str)).collect()
}

fn takes(schema: &Value, name: &str) -> bool {
    let types = types(schema);
    types.is_empty() || types.contains(&name)
}

fn name_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "string",
        DeValue::Integer(_) => "integer",
        DeValue::Float(_) => "number",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "datetime",
        DeValue::Array(_) => "array",
        DeValue::Table(_) => "object",
    }
}

fn nearest(name: &str, known: &[&str], list: &str) -> String {
    names::did_you_mean(name, known.iter().copied(), || format!("{list}: {}", known.join(", ")))
}
