//! Merges two JSON Schemas that must both hold into one.
//!
//! The rewriting of schemas for an API calls `merge` to remove `allOf` and `$ref`, which some APIs
//! do not accept. It takes a schema and adds the keywords of another: required members are joined,
//! bounds become the tighter one, types and listed values are intersected, inner schemas are put
//! into an `allOf` that is merged later. Two values that do not fit into one keyword are kept by
//! describing the second one in the text, with a note.

use serde_json::{Value, json};
use toolcell_contract::json::inside;

use super::{COMPARISONS, Keywords, Rewrite};

/// Keywords that have a meaning only at their original place, or none for the model.
const LEFT_BEHIND: [&str; 7] =
    ["$defs", "definitions", "$schema", "$id", "id", "$anchor", "$comment"];

/// Keywords that are one rule together, and none without the first one.
const RULES: [[&str; 3]; 2] = [["if", "then", "else"], ["contains", "minContains", "maxContains"]];

impl Rewrite<'_, '_> {
    /// Adds a schema that must hold as well. A rule that does not fit into one keyword goes into
    /// the description.
    pub(crate) fn merge(&mut self, into: &mut Keywords, mut other: Keywords, at: &str) {
        if restricts_members(into, &other) || restricts_members(&other, into) {
            let change = "`additionalProperties` now allows the members that another part declares";
            self.changes.note(at, change, "the parts are written as one object");
        }
        for rule in RULES {
            // The `else` of one `if` must not end up beside the `then` of another.
            let (held, added) = (taken(into, rule), taken(&mut other, rule));
            if held.is_empty() || added.is_empty() || held == added {
                into.extend(added);
            } else {
                let (place, reason) = (inside(at, rule[0]), "there is another one beside it");
                self.describe_keyword(into, "allOf", &json!([added]), &place, reason);
            }
            into.extend(held);
        }
        for (keyword, value) in other {
            match into.get_mut(&keyword) {
                _ if LEFT_BEHIND.contains(&keyword.as_str()) => {}
                None => drop(into.insert(keyword, value)),
                Some(held) if *held == value => {}
                Some(held) => {
                    if let (Value::Array(held), Value::Array(other)) = (&*held, &value) {
                        // The next part that is processed is refused if this was too much.
                        self.work += held.len() * other.len() / COMPARISONS;
                    }
                    if let Err(value) = combine(&keyword, held, value) {
                        let (place, reason) =
                            (inside(at, &keyword), "it is given two different values");
                        self.describe_keyword(into, &keyword, &value, &place, reason);
                    }
                }
            }
        }
    }
}

/// Returns true if the `additionalProperties` of one schema is a rule for members that only the
/// other schema declares.
fn restricts_members(one: &Keywords, other: &Keywords) -> bool {
    let own = |name: &str| one.get("properties").is_some_and(|own| own.get(name).is_some());
    let declared = other.get("properties").and_then(Value::as_object);
    one.get("additionalProperties").is_some_and(|rest| *rest != json!(true))
        && declared.is_some_and(|declared| declared.keys().any(|name| !own(name)))
}

/// Removes and returns the keywords of a rule; none if they are not a rule.
fn taken(schema: &mut Keywords, rule: [&str; 3]) -> Keywords {
    let taken: Keywords = rule.iter().filter_map(|keyword| schema.remove_entry(*keyword)).collect();
    if taken.contains_key(rule[0]) { taken } else { Keywords::new() }
}

/// Combines both values of a keyword, or returns the second one if that is impossible.
fn combine(keyword: &str, held: &mut Value, other: Value) -> Result<(), Value> {
    match (keyword, &mut *held, other) {
        ("properties" | "patternProperties", Value::Object(held), Value::Object(other)) => {
            for (name, schema) in other {
                match held.get_mut(&name) {
                    None => drop(held.insert(name, schema)),
                    Some(own) if *own == schema => {}
                    Some(own) => both(own, schema),
                }
            }
        }
        ("items" | "additionalProperties", _, other) => both(held, other),
        ("required", Value::Array(held), Value::Array(other)) => {
            for name in other {
                if !held.contains(&name) {
                    held.push(name);
                }
            }
        }
        ("enum", Value::Array(held), Value::Array(other))
            if held.iter().any(|value| other.contains(value)) =>
        {
            held.retain(|value| other.contains(value));
        }
        ("type", _, other) => match common_types(held, &other) {
            Some(common) => *held = common,
            None => return Err(other),
        },
        ("description", Value::String(held), Value::String(other)) => {
            held.push('\n');
            held.push_str(&other);
        }
        (
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties",
            Value::Number(_),
            other @ Value::Number(_),
        ) => {
            if held.as_f64() < other.as_f64() {
                *held = other;
            }
        }
        (
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties",
            Value::Number(_),
            other @ Value::Number(_),
        ) => {
            if held.as_f64() > other.as_f64() {
                *held = other;
            }
        }
        (_, _, other) => return Err(other),
    }
    Ok(())
}

/// Puts inner schemas into one `allOf`, which is merged when the conversion reaches it.
fn both(held: &mut Value, other: Value) {
    match held.as_object_mut().filter(|held| held.len() == 1).and_then(|held| held.get_mut("allOf"))
    {
        Some(Value::Array(all)) if all.contains(&other) => {}
        Some(Value::Array(all)) => all.push(other),
        _ => *held = json!({"allOf": [held.take(), other]}),
    }
}

/// Returns the types that both schemas allow, or `None` if there is no such type.
fn common_types(one: &Value, other: &Value) -> Option<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let (one, other) = (list(one), list(other));
    // An integer is a number.
    let allows = |types: &[Value], kind: &Value| {
        types.contains(kind) || kind == "integer" && types.contains(&json!("number"))
    };
    let mut common: Vec<_> = one.iter().filter(|kind| allows(&other, kind)).cloned().collect();
    for kind in other {
        if allows(&one, &kind) && !common.contains(&kind) {
            common.push(kind);
        }
    }
    if common.len() > 1 { Some(common.into()) } else { common.pop() }
}
