//! Converts a JSON Schema to Gemini's `Schema`, a subset of OpenAPI 3.0.
//!
//! `gemini::tool` calls [`Subset::parameters`] for the parameters of a tool. Only the subset's
//! fields occur in the result. Every schema in it has one type, or is an `anyOf` and nothing else;
//! references are expanded, because the subset has none, and a recursive schema is cut at a depth.
//! A rule that the subset cannot express goes into the description, with a note. A schema that no
//! value fits, or that is nested too deep, is refused.
//!
//! Source: the API reference, `Schema`; error messages of both endpoints ("must be the only field
//! set", "only allowed for STRING type", "property is not defined", "should be non-empty for OBJECT
//! type").

mod values;

use std::collections::HashSet;

use serde_json::{Value, json};
use toolcell_contract::json::inside;

use crate::Converted;
use crate::schema::{Open, Rewrite, is_never, types};
use values::{ANY, concerns, is_format, is_null, kind_of, values};

type Fields = crate::schema::Keywords;

/// Nested schemas. A message of the API may nest about 100 levels, and a schema takes two.
const MAX_LEVELS: usize = 40;
/// Reason in the notes on most keywords that are removed.
const NO_SUCH: &str = "the API does not support this keyword or this value";

/// The state of a conversion.
#[derive(Debug)]
pub(super) struct Subset<'a, 'n> {
    rewrite: Rewrite<'a, 'n>,
    open: Open,
    levels: usize,
}

impl<'a, 'n> Subset<'a, 'n> {
    pub(super) fn new(rewrite: Rewrite<'a, 'n>) -> Self {
        // A reference may lead back to the whole schema.
        Self { rewrite, open: vec!["#".to_owned()], levels: 0 }
    }

    /// Returns the schema of the arguments, which is always an object.
    pub(super) fn parameters(mut self) -> Converted<Fields> {
        let object = self.rewrite.object(&mut self.open)?;
        self.convert_type(&object, "object", "/parameters")
    }

    fn convert(&mut self, schema: &Value, at: &str) -> Converted {
        let opened = self.open.len();
        let flat = self.rewrite.flatten(schema, at, &mut self.open)?;
        let fields = self.shape(flat, at)?;
        self.open.truncate(opened);
        Ok(fields.into())
    }

    /// Converts a flat schema to one type or to alternatives.
    fn shape(&mut self, mut schema: Fields, at: &str) -> Converted<Fields> {
        self.levels += 1;
        if self.levels > MAX_LEVELS {
            let problem = format!("more than {MAX_LEVELS} schemas stand inside each other");
            return Err(self.rewrite.changes.refusal(at, &problem));
        }
        let alternatives =
            ["anyOf", "oneOf"].into_iter().find_map(|keyword| schema.remove_entry(keyword));
        let fields = match alternatives {
            Some((keyword, branches)) => {
                let at = inside(at, &keyword);
                if keyword == "oneOf" {
                    let reason = "Gemini has no `oneOf`: in an `anyOf`, several may fit";
                    self.rewrite.changes.note(&at, "written as `anyOf`", reason);
                }
                self.alternatives(schema, &branches, &at)?
            }
            None => self.by_type(schema, at)?,
        };
        self.levels -= 1;
        Ok(fields)
    }

    /// Converts alternatives. The keywords beside them are copied into each, since `anyOf` must be
    /// the only field.
    fn alternatives(
        &mut self,
        mut beside: Fields,
        branches: &Value,
        at: &str,
    ) -> Converted<Fields> {
        let copied = json!(beside).to_string().len();
        let head = head_of(&mut beside);
        let (mut forms, mut nullable) = (Vec::new(), false);
        for (index, branch) in branches.as_array().into_iter().flatten().enumerate() {
            let place = format!("{at}/{index}");
            let opened = self.open.len();
            self.rewrite.spend(copied, &place)?;
            let branch = self.rewrite.flatten(branch, &place, &mut self.open)?;
            if is_null(&branch) {
                nullable |= types(&beside).is_none_or(|types| types.contains(&"null"));
            } else if !is_never(&branch) {
                let mut whole = beside.clone();
                self.rewrite.merge(&mut whole, branch, &place);
                forms.push(self.shape(whole, &place)?);
            }
            self.open.truncate(opened);
        }
        self.combine(&head, forms, nullable, at)
    }

    /// Converts a schema without alternatives, for each type that it allows.
    fn by_type(&mut self, mut schema: Fields, at: &str) -> Converted<Fields> {
        let (mut kinds, nullable) = self.kinds(&schema, at);
        // An integer is a number.
        if kinds.contains(&"number") {
            kinds.retain(|kind| *kind != "integer");
        }
        let head = head_of(&mut schema);
        let forms = kinds
            .into_iter()
            .map(|kind| self.convert_type(&schema, kind, at))
            .collect::<Result<_, _>>()?;
        self.combine(&head, forms, nullable, at)
    }

    /// Combines several forms into one schema. Title and description are copied into each form.
    fn combine(
        &mut self,
        head: &Fields,
        forms: Vec<Fields>,
        nullable: bool,
        at: &str,
    ) -> Converted<Fields> {
        let (mut whole, mut seen) = (Vec::<Fields>::new(), HashSet::new());
        for form in forms.into_iter().flat_map(alternatives_of) {
            let mut fields = head.clone();
            self.rewrite.merge(&mut fields, form, at);
            if nullable {
                fields.insert("nullable".into(), true.into());
            }
            if seen.insert(fields.clone()) {
                whole.push(fields);
            }
        }
        match (whole.len(), whole.pop()) {
            (_, None) if nullable => {
                let null = Fields::from_iter([("type".to_owned(), "NULL".into())]);
                Ok(head.clone().into_iter().chain(null).collect())
            }
            (_, None) => Err(self.rewrite.changes.refusal(at, "no value can fit this schema")),
            (1, Some(only)) => Ok(only),
            (_, Some(last)) => {
                whole.push(last);
                Ok(Fields::from_iter([("anyOf".to_owned(), json!(whole))]))
            }
        }
    }

    /// Returns the types that a schema allows, and true if `null` is one of them.
    fn kinds(&mut self, schema: &Fields, at: &str) -> (Vec<&'static str>, bool) {
        const UNTYPED: &str = "every schema must name a type";
        let named = types(schema);
        let allowed = |kind: &str| named.as_ref().is_none_or(|types| types.contains(&kind));
        if let Some(values) = values(schema) {
            let kinds = values.iter().map(kind_of);
            let kinds =
                kinds.map(|kind| if kind == "integer" && !allowed(kind) { "number" } else { kind });
            let mut listed: Vec<_> = kinds.filter(|kind| allowed(kind)).collect();
            listed.sort_unstable();
            listed.dedup();
            if !listed.is_empty() {
                let nullable = listed.contains(&"null");
                listed.retain(|kind| *kind != "null");
                return (listed, nullable);
            }
        }
        if named.is_some() {
            return (ANY.into_iter().filter(|kind| allowed(kind)).collect(), allowed("null"));
        }
        let concerned: Vec<_> = schema.keys().filter_map(|keyword| concerns(keyword)).collect();
        if concerned.is_empty() {
            let change = "a schema that allowed any value now allows only simple values, lists of simple values, and objects";
            self.rewrite.changes.note(at, change, UNTYPED);
            return (ANY.to_vec(), true);
        }
        self.rewrite.changes.note(at, "its type was taken from its keywords", UNTYPED);
        (ANY.into_iter().filter(|kind| concerned.contains(kind)).collect(), false)
    }

    /// Converts the parts of a schema that concern one type.
    fn convert_type(&mut self, schema: &Fields, kind: &'static str, at: &str) -> Converted<Fields> {
        let mut fields = Fields::from_iter([("type".to_owned(), kind.to_uppercase().into())]);
        let head = ["title", "description"].map(|field| schema.get_key_value(field));
        fields
            .extend(head.into_iter().flatten().map(|(field, text)| (field.clone(), text.clone())));
        let concerned = if kind == "integer" { "number" } else { kind };
        for (keyword, value) in schema {
            let place = inside(at, keyword);
            if concerns(keyword).is_some_and(|only| only != concerned) {
                continue;
            }
            match keyword.as_str() {
                // Converted elsewhere, or without a meaning of its own. The required members are
                // added after the members.
                "$anchor" | "$comment" | "$defs" | "$id" | "$schema" | "definitions"
                | "description" | "id" | "required" | "title" | "type" => {}
                "maxItems" | "maxLength" | "maxProperties" | "maximum" | "minItems"
                | "minLength" | "minProperties" | "minimum" | "pattern" => {
                    fields.entry(keyword.as_str()).or_insert_with(|| value.clone());
                }
                "const" | "enum" => self.values(&mut fields, keyword, value, kind, &place),
                "exclusiveMaximum" | "exclusiveMinimum" => {
                    self.bound(&mut fields, schema, keyword, kind, &place);
                }
                "properties" => self.members(&mut fields, value, &place)?,
                "items" => drop(fields.insert("items".into(), self.convert(value, &place)?)),
                "format" if is_format(kind, value) => {
                    fields.insert("format".into(), value.clone());
                }
                "additionalProperties" | "unevaluatedItems" | "unevaluatedProperties"
                    if value.is_boolean() =>
                {
                    if *value == json!(false) {
                        let change = "left out; the host still refuses what is not declared";
                        self.rewrite.changes.note(&place, change, NO_SUCH);
                    }
                }
                "deprecated" | "readOnly" | "uniqueItems" | "writeOnly"
                    if *value == json!(false) => {}
                _ => self.rewrite.describe_keyword(&mut fields, keyword, value, &place, NO_SUCH),
            }
        }
        if kind == "object" {
            self.required(&mut fields, schema, at);
        }
        if kind == "array" && !fields.contains_key("items") {
            let simple = ["object", "string", "number", "boolean"]
                .map(|kind| json!({"type": kind.to_uppercase()}));
            fields.insert("items".into(), json!({"anyOf": simple}));
            let change = "its items are now simple values or objects only";
            self.rewrite.changes.note(at, change, "an array must say what its items are");
        }
        Ok(fields)
    }

    fn members(&mut self, fields: &mut Fields, members: &Value, at: &str) -> Converted<()> {
        let mut converted = Fields::new();
        for (name, schema) in members.as_object().into_iter().flatten() {
            let place = inside(at, name);
            if *schema == json!(false) {
                let change = "left out; the host still refuses this member";
                let reason = "Gemini cannot express the schema `false`";
                self.rewrite.changes.note(&place, change, reason);
            } else {
                converted.insert(name.clone(), self.convert(schema, &place)?);
            }
        }
        // An object without members must not list them.
        if !converted.is_empty() {
            fields.insert("properties".into(), converted.into());
        }
        Ok(())
    }

    fn required(&mut self, fields: &mut Fields, schema: &Fields, at: &str) {
        let names = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let members = fields.get("properties");
        let is_member = |name: &Value| {
            members.zip(name.as_str()).is_some_and(|(members, name)| members.get(name).is_some())
        };
        let (members, others): (Vec<_>, Vec<_>) = names.into_iter().partition(is_member);
        if !members.is_empty() {
            fields.insert("required".into(), members.into());
        }
        if !others.is_empty() {
            let (place, reason) =
                (inside(at, "required"), "only a declared member can be required");
            self.rewrite.describe_keyword(fields, "required", &others.into(), &place, reason);
        }
    }

    /// Converts `enum` and `const`: a list of strings is kept, anything else is described in the
    /// text.
    fn values(&mut self, fields: &mut Fields, keyword: &str, value: &Value, kind: &str, at: &str) {
        let listed = if let ("enum", Value::Array(listed)) = (keyword, value) {
            listed
        } else {
            &vec![value.clone()]
        };
        let listed: Vec<_> = listed.iter().filter(|value| kind_of(value) == kind).collect();
        let sayable = kind == "string"
            && !listed.is_empty()
            && listed.iter().all(|value| **value != json!(""));
        let says_all =
            kind == "boolean" && listed.contains(&&json!(true)) && listed.contains(&&json!(false));
        if sayable && !fields.contains_key("enum") {
            fields.insert("enum".into(), json!(listed));
        } else if !says_all {
            let reason = "a schema can have one `enum`, of non-empty strings";
            self.rewrite.describe_keyword(fields, keyword, value, at, reason);
        }
    }

    /// Converts an exclusive bound: for integers to the next integer, for other numbers to the
    /// inclusive bound and a description.
    fn bound(&mut self, fields: &mut Fields, schema: &Fields, keyword: &str, kind: &str, at: &str) {
        let (field, step) =
            if keyword == "exclusiveMinimum" { ("minimum", 1) } else { ("maximum", -1) };
        let Some(value) = schema.get(keyword) else { return };
        let next =
            value.as_i64().filter(|_| kind == "integer").and_then(|bound| bound.checked_add(step));
        let bound = next.map_or_else(|| value.clone(), Value::from);
        let is_tighter = |own: &Value| {
            if step > 0 { own.as_f64() > bound.as_f64() } else { own.as_f64() < bound.as_f64() }
        };
        let tightest = schema.get(field).filter(|own| is_tighter(own)).unwrap_or(&bound).clone();
        fields.insert(field.into(), tightest);
        if next.is_none() {
            let reason = "Gemini has no exclusive bounds";
            self.rewrite.describe_keyword(fields, keyword, value, at, reason);
        }
    }
}

/// Removes and returns the title and the description.
fn head_of(schema: &mut Fields) -> Fields {
    ["title", "description"].into_iter().filter_map(|field| schema.remove_entry(field)).collect()
}

/// Returns the alternatives of a form, or the form itself.
fn alternatives_of(mut form: Fields) -> Vec<Fields> {
    let Some(Value::Array(inner)) = form.remove("anyOf") else { return vec![form] };
    let object = |form| if let Value::Object(form) = form { Some(form) } else { None };
    inner.into_iter().filter_map(object).collect()
}
