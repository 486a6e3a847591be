//! Rewrites an untrusted JSON Schema to the form that a provider's API accepts.
//!
//! The formats build a [`Rewrite`] for the schema of a tool (2020-12, possibly never compiled) and
//! ask for what their API needs: a plain object at the root, no references, no `true` and `false`
//! as schemas. The result is equivalent or looser. Every loosened rule is described in the text and
//! noted; a schema never gets stricter without a note. This is safe, because the host always checks
//! arguments against the original schema. The work is bounded: a schema that grows too large with
//! its references expanded is refused.

mod merge;
mod spread;

use serde_json::{Map, Value, json};
use toolcell_contract::json::inside;
use toolcell_contract::schema::decoded;

use super::{Converted, ProviderError, note::Changes};

/// Bytes of schema that one conversion may process, with references followed: 64 times the largest
/// schema of a tool. Two references to one place at each of many levels would double the output per
/// level.
const MAX_WORK: usize = 4 << 20;
/// Places, with references followed, that the schemas of one list may have beside each tool's own.
/// A place takes some 10 us and 2 KB.
pub(super) const LIST_PLACES: usize = 64 << 10;
/// Places that the schema of each tool may have, however large those of other tools are.
const OWN_PLACES: usize = 500;
/// Places of a schema with all expansions of its recursion. Otherwise it is expanded once.
const RECURSIVE_PLACES: usize = 4_000;
/// Comparisons of two listed values that count as a byte of this work.
const COMPARISONS: usize = 16;
/// Nested `$ref` and `allOf` at one place. Generated schemas have a handful.
const MAX_HOPS: usize = 64;
/// Expansions of a recursive schema, at most, for an API without references.
pub(super) const MAX_RECURSION: usize = 3;
/// Places that are inspected to find out if a schema allows only objects.
const MAX_LOOKS: usize = 1_000;

/// Keywords with one subschema, with a list of subschemas, and with a map of subschemas.
const ONE: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const MAP: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
/// Keywords for which every API accepts `true` and `false`.
const YES_OR_NO: [&str; 3] = ["additionalProperties", "unevaluatedItems", "unevaluatedProperties"];

/// A schema that is being rewritten.
#[derive(Debug)]
pub(super) struct Rewrite<'a, 'n> {
    /// The root that references point into. `None`: any value is allowed.
    document: Option<&'a Value>,
    /// The place of the schema in the definition.
    start: &'static str,
    pub(super) changes: &'a mut Changes<'n>,
    /// Number of expansions of a recursive schema.
    recursion: usize,
    work: usize,
    places: usize,
    levels: usize,
}

/// The keywords of a schema.
pub(super) type Keywords = Map<String, Value>;

/// The references that are being followed, as written in the schema.
pub(super) type Open = Vec<String>;

impl<'a, 'n> Rewrite<'a, 'n> {
    pub(super) fn new(
        document: Option<&'a Value>,
        start: &'static str,
        changes: &'a mut Changes<'n>,
    ) -> Self {
        Self { document, start, changes, recursion: MAX_RECURSION, work: 0, places: 0, levels: 0 }
    }

    /// Sets the number of expansions of a recursive schema.
    pub(super) fn with_recursion(self, recursion: usize) -> Self {
        Self { recursion, ..self }
    }

    /// Returns the schema as an object without alternatives or references at its root. The
    /// references that were followed stay in `open`.
    pub(super) fn object(&mut self, open: &mut Open) -> Converted<Keywords> {
        let any = Value::Bool(true);
        let mut object = self.flatten(self.document.unwrap_or(&any), self.start, open)?;
        self.expect_objects(&object)?;
        while let Some((keyword, branches)) =
            ["anyOf", "oneOf"].iter().find_map(|word| object.remove_entry(*word))
        {
            self.merge_alternatives(&mut object, &keyword, branches, open)?;
        }
        object.insert("type".into(), "object".into());
        object.entry("properties").or_insert_with(|| json!({}));
        Ok(object)
    }

    /// Returns the schema with `type: object` at its root, and otherwise unchanged.
    pub(super) fn object_of_any_form(&mut self) -> Converted<Keywords> {
        let mut object = match self.document {
            None | Some(Value::Bool(true)) => Keywords::new(),
            Some(Value::Object(keywords)) => keywords.clone(),
            Some(_) => {
                return Err(self.changes.refusal(self.start, "no object can fit this schema"));
            }
        };
        self.expect_objects(&object)?;
        object.insert("type".into(), "object".into());
        Ok(object)
    }

    fn expect_objects(&self, schema: &Keywords) -> Converted<()> {
        let problem = "no object can fit this schema, and only objects are allowed here";
        if takes_objects(schema) { Ok(()) } else { Err(self.changes.refusal(self.start, problem)) }
    }

    /// Returns true if the root of the schema allows only objects.
    pub(super) fn promises_an_object(&self) -> bool {
        self.document.is_some_and(|schema| self.promises(schema, 0, &mut 0))
    }

    fn promises(&self, schema: &Value, hops: usize, looks: &mut usize) -> bool {
        *looks += 1;
        if hops > MAX_HOPS || *looks > MAX_LOOKS {
            return false;
        }
        let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array);
        let target = schema.get("$ref").and_then(|reference| self.target(reference));
        let mut promises = |branch: &Value| self.promises(branch, hops + 1, looks);
        schema.get("type").is_some_and(|kind| kind == "object")
            || target.is_some_and(&mut promises)
            || list("allOf").is_some_and(|all| all.iter().any(&mut promises))
            || ["anyOf", "oneOf"]
                .into_iter()
                .filter_map(list)
                .any(|branches| !branches.is_empty() && branches.iter().all(&mut promises))
    }

    /// Returns a schema with the `$ref` and `allOf` at its root merged into it. The references that
    /// were followed are left in `open`: if one of them occurs again inside, the schema is
    /// recursive. After the allowed number of expansions it is cut there, with a note.
    pub(super) fn flatten(
        &mut self,
        schema: &Value,
        at: &str,
        open: &mut Open,
    ) -> Converted<Keywords> {
        self.spend(schema.to_string().len(), at)?;
        self.take_place(at)?;
        self.levels += 1;
        if self.levels > MAX_HOPS {
            let problem =
                format!("more than {MAX_HOPS} `$ref` and `allOf` are nested in each other");
            return Err(self.changes.refusal(at, &problem));
        }
        let mut flat = match schema {
            Value::Bool(true) => Keywords::new(),
            Value::Bool(false) => Keywords::from_iter([("not".to_owned(), json!({}))]),
            Value::Object(keywords) => keywords.clone(),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(self.changes.refusal(at, "it is not a JSON Schema"));
            }
        };
        // Two parts may refer to the same place: only the references on the path to a place make a
        // cycle.
        let way = open.clone();
        let count = |list: &[String], reference: &str| {
            list.iter().filter(|followed| *followed == reference).count()
        };
        let arrived = |open: &mut Open, followed: Open| {
            for reference in followed.iter().skip(way.len()) {
                if count(open, reference) < count(&followed, reference) {
                    open.push(reference.clone());
                }
            }
        };
        if let Some(reference) = flat.remove("$ref") {
            let Some((target, written)) = self.target(&reference).zip(reference.as_str()) else {
                let problem = "the `$ref` names no part of this schema";
                return Err(self.changes.refusal(&inside(at, "$ref"), problem));
            };
            if count(&way, written) > self.recursion {
                self.cut(&mut flat, target, written);
            } else {
                let mut followed = way.clone();
                followed.push(written.to_owned());
                let target = self.flatten(target, at, &mut followed)?;
                arrived(open, followed);
                self.merge(&mut flat, target, at);
            }
        }
        if let Some(Value::Array(branches)) = flat.remove("allOf") {
            for (index, branch) in branches.iter().enumerate() {
                let place = format!("{at}/allOf/{index}");
                let mut followed = way.clone();
                let branch = self.flatten(branch, &place, &mut followed)?;
                arrived(open, followed);
                self.merge(&mut flat, branch, &place);
            }
        }
        self.levels -= 1;
        Ok(flat)
    }

    /// Replaces a recursive schema by its types and a description.
    fn cut(&mut self, into: &mut Keywords, target: &Value, reference: &str) {
        let words = "More of the same form, which is not written out here.";
        let mut form = Keywords::from_iter([("description".to_owned(), words.into())]);
        if let Some(kinds) = target.get("type") {
            form.insert("type".into(), kinds.clone());
        } else if target.get("properties").is_some() {
            form.insert("type".into(), "object".into());
        }
        let place = format!("{}{}", self.start, reference.trim_start_matches('#'));
        let change = match self.recursion {
            1 => "written out inside of itself once, and cut there".to_owned(),
            times => format!("written out inside of itself {times} times, and cut there"),
        };
        self.changes.note(&place, &change, "this list cannot hold a schema that refers to itself");
        self.merge(into, form, &place);
    }

    /// Charges bytes of schema that are processed or copied.
    pub(super) fn spend(&mut self, bytes: usize, at: &str) -> Converted<()> {
        self.work += bytes;
        if self.work <= MAX_WORK { Ok(()) } else { Err(self.too_large(at)) }
    }

    /// Counts a place: first those of the tool, then those of the whole list.
    fn take_place(&mut self, at: &str) -> Converted<()> {
        self.places += 1;
        if self.recursion == MAX_RECURSION && self.places > RECURSIVE_PLACES {
            return Err(self.too_large(at));
        }
        if self.places > OWN_PLACES {
            let left = self.changes.places.checked_sub(1).ok_or_else(|| self.too_large(at))?;
            *self.changes.places = left;
        }
        Ok(())
    }

    fn too_large(&self, at: &str) -> ProviderError {
        let problem = "the schema is too large with its references and alternatives expanded";
        self.changes.refusal(at, problem)
    }

    /// Returns the subschema that a reference names.
    fn target(&self, reference: &Value) -> Option<&'a Value> {
        target(self.document?, reference.as_str()?)
    }

    /// Moves a keyword from the schema's rules into its description.
    pub(super) fn describe_keyword(
        &mut self,
        schema: &mut Keywords,
        keyword: &str,
        value: &Value,
        at: &str,
        reason: &str,
    ) {
        // A description with references is of no use to the model.
        if has_reference(value) {
            return self.changes.note(at, &format!("`{keyword}` left out"), reason);
        }
        let words = format!("{keyword}: {value}");
        match schema.get_mut("description") {
            Some(Value::String(description)) => {
                description.push('\n');
                description.push_str(&words);
            }
            _ => drop(schema.insert("description".into(), words.into())),
        }
        self.changes.note(at, &format!("`{keyword}` moved into the description"), reason);
    }

    /// Replaces `true` and `false` as schemas, which many parsers do not support. Checks the
    /// references, since one may have pointed into a part that was rewritten.
    pub(super) fn plain(&self, schema: Keywords) -> Converted {
        let mut plain = Value::Object(schema);
        each_subschema(&mut plain, &mut expand_booleans);
        let Some(reference) = first_dead_reference(&plain) else { return Ok(plain) };
        let problem = if self.document.and_then(first_dead_reference).is_some() {
            "a `$ref` names no part of this schema".to_owned()
        } else {
            format!("`{reference}` points at a part that is rewritten: move that part to `$defs`")
        };
        Err(self.changes.refusal(self.start, &problem))
    }
}

/// Resolves a reference in a document.
fn target<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    document.pointer(&decoded(reference)?)
}

/// Returns the types that a schema names, or `None` if it names none.
pub(super) fn types(schema: &Keywords) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(one) => Some(vec![one]),
        Value::Array(many) => Some(many.iter().filter_map(Value::as_str).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn takes_objects(schema: &Keywords) -> bool {
    !is_never(schema) && types(schema).is_none_or(|types| types.contains(&"object"))
}

/// Returns true if no value fits the schema.
pub(super) fn is_never(schema: &Keywords) -> bool {
    schema.get("not").is_some_and(|not| *not == json!({}) || *not == json!(true))
}

pub(super) fn is_array(schema: &Keywords) -> bool {
    types(schema).is_some_and(|types| types.contains(&"array"))
}

/// Visits every subschema that is an object, inner ones first, and the schema itself.
pub(super) fn each_subschema(schema: &mut Value, look: &mut impl FnMut(&mut Keywords)) {
    let Value::Object(keywords) = schema else { return };
    each_inner(keywords, |_, inner| each_subschema(inner, look));
    look(keywords);
}

/// Visits the schemas directly inside of a schema, each with its keyword.
fn each_inner(keywords: &mut Keywords, mut look: impl FnMut(&str, &mut Value)) {
    for (keyword, value) in keywords {
        let keyword = keyword.as_str();
        if ONE.contains(&keyword) {
            look(keyword, value);
        } else if let Value::Object(map) = value
            && MAP.contains(&keyword)
        {
            map.values_mut().for_each(|inner| look(keyword, inner));
        } else if let Value::Array(list) = value
            && LIST.contains(&keyword)
        {
            list.iter_mut().for_each(|inner| look(keyword, inner));
        }
    }
}

/// Replaces `true` and `false` by the equivalent schemas.
fn expand_booleans(keywords: &mut Keywords) {
    each_inner(keywords, |keyword, inner| {
        if let Value::Bool(is_any) = *inner
            && !YES_OR_NO.contains(&keyword)
        {
            *inner = if is_any { json!({}) } else { json!({"not": {}}) };
        }
    });
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name == "$ref" || has_reference(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns a reference in a schema that names no part of it.
fn first_dead_reference(schema: &Value) -> Option<String> {
    let mut dead = None;
    each_subschema(&mut schema.clone(), &mut |keywords| {
        if let Some(Value::String(reference)) = keywords.get("$ref")
            && target(schema, reference).is_none()
        {
            dead.get_or_insert_with(|| reference.clone());
        }
    });
    dead
}
