//! Translates a schema of any draft into JSON Schema 2020-12.
//!
//! `Schema::compile` calls [`translate`] with an untrusted schema. The result is one 2020-12
//! schema, which models and clients get too, and a warning for each part that cannot be enforced,
//! such as a pattern that is not a regular expression. Such a part is left out, which never makes
//! the schema stricter. Every reference becomes a `$ref` with a JSON pointer into the result; a
//! schema that is reached by dynamic references (whose target depends on the path to them) is
//! copied for each path. A reference out of the document is an error. The work and the size of the
//! copies are bounded, and translating the result again changes nothing.
//!
//! Source: docs/contract.md, section 4; JSON Schema drafts 4, 6, 7, 2019-09 and 2020-12.

mod loose;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::rc::Rc;

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::index::{Index, SchemaRef, Target, decoded, ignores_siblings};
use super::keywords::{Subschemas, expected_form, subschemas};
use super::pattern::{Pattern, Unusable};
use super::work::{MAX_BYTES, MAX_PATTERNS};
use crate::controls::bound;
use crate::json::inside;
use crate::names::shorten;
use loose::{LeftOut, Loose, REVERSED, UNEVALUATED};

/// Keywords that are kept beside a `$ref` where others are ignored, because they assert nothing.
const BESIDE_A_REFERENCE: [&str; 7] =
    ["$comment", "$defs", "default", "definitions", "description", "examples", "title"];
/// The maximum number of characters that are quoted of an untrusted text.
const QUOTE: usize = 60;

/// A schema in 2020-12.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) schema: Value,
    /// The parts that are left out: the JSON pointer of the place in the original, and the problem.
    pub(crate) warnings: Vec<(String, String)>,
}

/// Translates a schema.
///
/// # Errors
/// The place and the problem, if a reference leads out of the schema or does not name a part of it,
/// or if the result would be too large.
pub(crate) fn translate(schema: &Value) -> Result<Translated, String> {
    let (translated, loose) = translate_around(schema, Loose::default())?;
    if loose.schemas.is_empty() {
        return Ok(translated);
    }
    translate_around(schema, loose).map(|(translated, _)| translated)
}

/// Translates a schema, and leaves out what these loose schemas would make stricter. Returns the
/// schemas that are loose in the result.
fn translate_around<'a>(
    schema: &'a Value,
    loose: Loose<'a>,
) -> Result<(Translated, Loose<'a>), String> {
    let mut warnings = Vec::new();
    let mut draft = Draft::Draft202012;
    if let Some(said) = schema.get("$schema").and_then(Value::as_str) {
        draft = Draft::from_schema_uri(said);
        if draft == Draft::Unknown {
            draft = Draft::Draft202012;
            let said = shorten(said, QUOTE);
            warnings.push((
                "/$schema".to_owned(),
                format!("`{said}` is not a known draft: it is read as 2020-12"),
            ));
        }
    }
    let index = Index::of(schema, draft).ok_or("not a usable JSON Schema")?;
    let mut writer = Writer::new(index, loose, warnings);
    let mut whole = writer.schema(SchemaRef(schema), NO_NAMES, "")?;
    // The copies by name, and their bytes.
    let (mut copies, mut copied) = (BTreeMap::new(), 0);
    let mut next = 0;
    while let Some(Link { target, scope, .. }) = writer.links.get(next) {
        next += 1;
        let (target, scope) = (*target, *scope);
        if !writer.written.contains_key(&(target, scope)) {
            copied += target.0.to_string().len();
            if copied > bound!(SchemaCopies, MAX_BYTES) {
                return Err(format!("its references need copies of more than {MAX_BYTES} bytes"));
            }
            let name = (copies.len()..)
                .map(|n| format!("copy{n}"))
                .find(|name| whole["$defs"].get(name).is_none() && !copies.contains_key(name));
            let name = name.unwrap_or_default();
            let copy = writer.schema(target, scope, &format!("/$defs/{name}"))?;
            copies.insert(name, copy);
        }
    }
    if let (Value::Object(keywords), false) = (&mut whole, copies.is_empty()) {
        let defs = keywords.entry("$defs").or_insert_with(|| json!({}));
        defs.as_object_mut().into_iter().for_each(|defs| defs.extend(std::mem::take(&mut copies)));
    }
    for Link { from, target, scope } in &writer.links {
        let Some(pointer) = writer.written.get(&(*target, *scope)) else {
            return Err("its dynamic references cannot be followed".to_owned());
        };
        if let Some(Value::String(reference)) = whole.pointer_mut(from)
            && decoded(reference).as_deref() != Some(pointer.as_str())
        {
            *reference = fragment(pointer);
        }
    }
    let loose = writer.left_out.loosened(&writer.index);
    Ok((Translated { schema: whole, warnings: writer.warnings }, loose))
}

/// The targets of dynamic references during a check: the outermost schema of each name, sorted by
/// name.
type Names<'a> = Rc<[(&'a str, SchemaRef<'a>)]>;

/// The number of such a list among those of a `Writer`. A schema can have a thousand names, and a
/// list of them is looked up at every subschema.
type Scope = usize;

/// The list without names.
const NO_NAMES: Scope = 0;

/// A `$ref` in the result: its place, and its target with the scope there.
struct Link<'a> {
    from: String,
    target: SchemaRef<'a>,
    scope: Scope,
}

struct Writer<'a> {
    index: Index<'a>,
    /// The pointers of the schemas in the result. A schema appears once for each scope in which it
    /// is reached.
    written: HashMap<(SchemaRef<'a>, Scope), String>,
    links: Vec<Link<'a>>,
    /// The lists by number, and their numbers.
    scopes: Vec<Names<'a>>,
    numbers: HashMap<Names<'a>, Scope>,
    /// The scope inside of a resource, by the resource and the scope around it.
    entered: HashMap<(usize, Scope), Scope>,
    /// What is known to be loose.
    loose: Loose<'a>,
    left_out: LeftOut<'a>,
    /// The sum of the patterns' weights.
    pattern_weight: u64,
    warnings: Vec<(String, String)>,
}

impl<'a> Writer<'a> {
    fn new(index: Index<'a>, loose: Loose<'a>, warnings: Vec<(String, String)>) -> Self {
        let none = Names::from([]);
        Self {
            index,
            written: HashMap::new(),
            links: Vec::new(),
            scopes: vec![Rc::clone(&none)],
            numbers: HashMap::from([(none, NO_NAMES)]),
            entered: HashMap::new(),
            loose,
            left_out: LeftOut::default(),
            pattern_weight: 0,
            warnings,
        }
    }

    fn warn(&mut self, at: &str, problem: impl Into<String>) {
        let warning = (at.to_owned(), problem.into());
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Returns the scope of a schema that is reached in another scope.
    fn scope(&mut self, resource: usize, around: Scope) -> Scope {
        if let Some(known) = self.entered.get(&(resource, around)) {
            return *known;
        }
        let mut names = self.scopes[around].to_vec();
        for (name, target) in &self.index.resources[resource].dynamic {
            if self.index.asked.contains(name) && self.outermost(around, name).is_none() {
                names.push((*name, *target));
            }
        }
        names.sort_unstable_by_key(|(name, _)| *name);
        let (names, next) = (Names::from(names), self.scopes.len());
        let number = *self.numbers.entry(Rc::clone(&names)).or_insert(next);
        if number == next {
            self.scopes.push(names);
        }
        self.entered.insert((resource, around), number);
        number
    }

    /// Returns the target of a dynamic reference to this name.
    fn outermost(&self, scope: Scope, name: &str) -> Option<SchemaRef<'a>> {
        let names = &self.scopes[scope];
        let at = names.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
        Some(names[at].1)
    }

    /// Translates a schema whose place in the result is `out`.
    fn schema(&mut self, schema: SchemaRef<'a>, around: Scope, out: &str) -> Result<Value, String> {
        let place = self.index.places.get(&schema).cloned().ok_or("a schema without a place")?;
        let scope = self.scope(place.resource, around);
        // The validator gets these names in another spelling, so a reference needs a copy.
        if !out.contains("/patternProperties/") {
            self.written.entry((schema, scope)).or_insert_with(|| out.to_owned());
        }
        match schema.0 {
            Value::Bool(_) => Ok(schema.0.clone()),
            Value::Object(keywords) => self.object(schema.0, keywords, scope, out),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.warn(&place.at, "is not a schema: left out");
                self.left_out.lacking.insert(schema);
                Ok(Value::Bool(true))
            }
        }
    }

    fn object(
        &mut self,
        schema: &'a Value,
        keywords: &'a Map<String, Value>,
        scope: Scope,
        out: &str,
    ) -> Result<Value, String> {
        let place = self.index.places[&SchemaRef(schema)].clone();
        let draft = self.index.resources[place.resource].draft;
        let alone = ignores_siblings(draft, schema);
        let has_list = keywords.get("items").is_some_and(Value::is_array);
        let counts_loosely =
            keywords.get("contains").is_some_and(|value| self.loose.has("contains", value));
        let hides_contained = draft == Draft::Draft201909 && self.index.has_unevaluated_items;
        let mut written = Map::new();
        // Subschemas to append to the `allOf`, after the existing ones.
        let mut further: Vec<Value> = Vec::new();
        let existing = keywords.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
        let next = |further: &[Value]| format!("{out}/allOf/{}", existing + further.len());
        for (keyword, value) in keywords {
            let at = inside(&place.at, keyword);
            if alone && keyword != "$ref" && !BESIDE_A_REFERENCE.contains(&&**keyword) {
                continue;
            }
            match (keyword.as_str(), value) {
                ("$schema", Value::String(said))
                    if place.at.is_empty()
                        && Draft::from_schema_uri(said) == Draft::Draft202012 =>
                {
                    written.insert(keyword.clone(), value.clone());
                }
                (
                    "$schema" | "$id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor"
                    | "$vocabulary",
                    _,
                ) => {}
                ("id", Value::String(_)) if draft == Draft::Draft4 => {}
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    let (target, scope) =
                        self.target(keyword, reference, place.resource, scope, &at)?;
                    self.left_out.uses.push((SchemaRef(schema), target));
                    if keyword == "$ref"
                        || !keywords.contains_key("$ref") && !written.contains_key("$ref")
                    {
                        self.links.push(Link { from: format!("{out}/$ref"), target, scope });
                        written.insert("$ref".to_owned(), value.clone());
                    } else {
                        let from = format!("{}/$ref", next(&further));
                        self.links.push(Link { from, target, scope });
                        further.push(json!({"$ref": reference}));
                    }
                }
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(is_exclusive)) => {
                    let bound = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
                    if let Some(limit) =
                        keywords.get(bound).filter(|limit| *is_exclusive && limit.is_number())
                    {
                        written.insert(keyword.clone(), limit.clone());
                    }
                }
                ("minimum", _) if keywords.get("exclusiveMinimum") == Some(&Value::Bool(true)) => {}
                ("maximum", _) if keywords.get("exclusiveMaximum") == Some(&Value::Bool(true)) => {}
                ("additionalItems", _) if !has_list => {}
                ("items", Value::Array(list))
                    if keywords.contains_key("prefixItems") || list.is_empty() => {}
                ("dependencies", Value::Object(map)) => {
                    for (name, needed) in map {
                        let (keyword, needed) = if needed.is_array() {
                            (
                                "dependentRequired",
                                self.plain("dependentRequired", &json!({name: needed}), &at),
                            )
                        } else {
                            let below = inside(&format!("{out}/dependentSchemas"), name);
                            let one = self.schema(SchemaRef(needed), scope, &below)?;
                            ("dependentSchemas", Some(json!({name: one})))
                        };
                        let Some(Value::Object(one)) = needed else {
                            self.left_out.lacking.insert(SchemaRef(schema));
                            continue;
                        };
                        let all = written.entry(keyword).or_insert_with(|| json!({}));
                        all.as_object_mut().into_iter().for_each(|all| all.extend(one.clone()));
                    }
                }
                ("contains", _) if hides_contained => {
                    let hidden = format!("{}/not/not/contains", next(&further));
                    let contained = self.keyword(keyword, value, scope, &hidden, &at)?;
                    let Some(contained) = contained else {
                        self.left_out.lacking.insert(SchemaRef(schema));
                        continue;
                    };
                    let mut inner = Map::from_iter([(keyword.clone(), contained)]);
                    for bound in ["minContains", "maxContains"] {
                        let Some(value) = keywords.get(bound) else { continue };
                        if bound == "maxContains" && counts_loosely {
                            continue;
                        }
                        let value = self.plain(bound, value, &inside(&place.at, bound));
                        inner.extend(value.map(|value| (bound.to_owned(), value)));
                    }
                    further.push(json!({"not": {"not": inner}}));
                }
                // Several of its schemas may fit now.
                ("oneOf", _) if self.loose.has(keyword, value) => {
                    let is_taken = keywords.contains_key("anyOf");
                    let below = if is_taken { next(&further) } else { out.to_owned() };
                    let any =
                        self.keyword(keyword, value, scope, &format!("{below}/anyOf"), &at)?;
                    self.warn(&at, "is enforced as `anyOf`, because a part of it is not enforced");
                    if is_taken {
                        further.push(json!({"anyOf": any}));
                    } else {
                        written.extend(any.map(|any| ("anyOf".to_owned(), any)));
                    }
                }
                ("maxContains", _) if counts_loosely => {
                    self.warn(&at, "is not enforced, because a part of `contains` is not");
                }
                ("minContains" | "maxContains", _) if hides_contained => {}
                ("pattern", Value::String(pattern)) => {
                    if self.pattern(pattern, &at)?.is_some() {
                        written.insert(keyword.clone(), value.clone());
                    } else {
                        self.left_out.lacking.insert(SchemaRef(schema));
                    }
                }
                ("$defs" | "dependentSchemas", Value::Object(_)) => {
                    let below = format!("{out}/{keyword}");
                    if let Some(Value::Object(map)) =
                        self.keyword(keyword, value, scope, &below, &at)?
                    {
                        let all = written.entry(keyword.clone()).or_insert_with(|| json!({}));
                        all.as_object_mut().into_iter().for_each(|all| all.extend(map.clone()));
                    }
                }
                _ => {
                    let renamed = match keyword.as_str() {
                        "items" if has_list => "prefixItems",
                        "additionalItems" => "items",
                        other => other,
                    };
                    let is_reversed = REVERSED.contains(&renamed) && self.loose.has(keyword, value);
                    let is_blind = UNEVALUATED.contains(&renamed)
                        && self.loose.blind.contains(&SchemaRef(schema));
                    let value = self.keyword(keyword, value, scope, &inside(out, renamed), &at)?;
                    // With a part left out, these keywords would refuse more values.
                    if is_reversed {
                        self.warn(&at, "is not enforced, because a part of it is not");
                    } else if is_blind {
                        self.warn(&at, "is not enforced, because a part of the schema is not");
                    } else if let Some(value) = value {
                        written.insert(renamed.to_owned(), value);
                    } else {
                        self.left_out.lacking.insert(SchemaRef(schema));
                    }
                }
            }
        }
        if !alone {
            self.drop_additional_keywords(schema, keywords, &mut written, &place.at);
        }
        if !further.is_empty() {
            let all = written.entry("allOf").or_insert_with(|| json!([]));
            all.as_array_mut().into_iter().for_each(|all| all.append(&mut further));
        }
        Ok(Value::Object(written))
    }

    /// Translates a keyword that keeps its meaning. `None` if its value does not have the required
    /// form.
    fn keyword(
        &mut self,
        keyword: &str,
        value: &'a Value,
        scope: Scope,
        out: &str,
        at: &str,
    ) -> Result<Option<Value>, String> {
        match subschemas(keyword, value) {
            Subschemas::One(one) => self.schema(SchemaRef(one), scope, out).map(Some),
            Subschemas::List(list) if !list.is_empty() => {
                let each = list.iter().enumerate();
                let written = each.map(|(index, one)| {
                    self.schema(SchemaRef(one), scope, &format!("{out}/{index}"))
                });
                written.collect::<Result<Vec<_>, _>>().map(|list| Some(Value::Array(list)))
            }
            Subschemas::Map(map) => {
                let mut written = Map::new();
                for (name, one) in map {
                    if keyword == "patternProperties"
                        && !self.readable_name(name, &inside(at, name))?
                    {
                        continue;
                    }
                    written.insert(
                        name.clone(),
                        self.schema(SchemaRef(one), scope, &inside(out, name))?,
                    );
                }
                Ok(Some(Value::Object(written)))
            }
            Subschemas::List(_) | Subschemas::None => Ok(self.plain(keyword, value, at)),
        }
    }

    /// Translates a keyword without subschemas.
    fn plain(&mut self, keyword: &str, value: &Value, at: &str) -> Option<Value> {
        let Some(form) = expected_form(keyword, value) else { return Some(value.clone()) };
        let value = shorten(&value.to_string(), QUOTE);
        self.warn(at, format!("must be {form}, and is {value}: left out"));
        None
    }

    /// Compiles a pattern. `None` if it cannot be enforced.
    fn pattern(&mut self, pattern: &str, at: &str) -> Result<Option<Pattern>, String> {
        match Pattern::new(pattern) {
            Ok(pattern) => {
                self.pattern_weight += pattern.weight();
                if self.pattern_weight > bound!(Patterns, MAX_PATTERNS) {
                    return Err(format!(
                        "at `{at}`: the patterns up to this one take too much memory: repeat less in them"
                    ));
                }
                Ok(Some(pattern))
            }
            Err(unreadable @ Unusable::Unreadable) => {
                self.warn(at, format!("{}: it is not enforced", unreadable.about(pattern)));
                Ok(None)
            }
            Err(too_large) => Err(format!("at `{at}`: {}", too_large.about(pattern))),
        }
    }

    /// Returns true if a pattern for names can be enforced. The validator matches it outside of the
    /// backtracking budget.
    fn readable_name(&mut self, name: &str, at: &str) -> Result<bool, String> {
        let Some(pattern) = self.pattern(name, at)? else { return Ok(false) };
        if pattern.weight() > 1 {
            // The validator compiles all patterns for names with one limit.
            return Err(format!("at `{at}`: {}", Unusable::TooLarge.about(name)));
        }
        if pattern.power() > 1 {
            self.warn(
                at,
                "looks around again and again, which a pattern for names cannot do: it is not enforced",
            );
        }
        Ok(pattern.power() == 1)
    }

    /// Drops the keywords for additional names if a pattern beside them was left out, because the
    /// schema can no longer tell which names are additional.
    fn drop_additional_keywords(
        &mut self,
        schema: &'a Value,
        keywords: &Map<String, Value>,
        written: &mut Map<String, Value>,
        at: &str,
    ) {
        let count = |keywords: &Map<String, Value>| {
            keywords.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len)
        };
        if count(keywords) == count(written) {
            return;
        }
        self.left_out.lacking.insert(SchemaRef(schema));
        self.left_out.unnamed.insert(SchemaRef(schema));
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            if written.remove(keyword).is_some() {
                self.warn(
                    &inside(at, keyword),
                    "is not enforced, because a pattern beside it is not",
                );
            }
        }
    }

    /// Returns the target of a reference, and the scope there.
    fn target(
        &mut self,
        keyword: &str,
        reference: &'a str,
        resource: usize,
        scope: Scope,
        at: &str,
    ) -> Result<(SchemaRef<'a>, Scope), String> {
        let shown = shorten(reference, QUOTE);
        let known = self.index.places.len();
        let found = self.index.resolve(reference, resource);
        if self.index.places.len() > known {
            // The reference named an unknown keyword, and its schema may have names too.
            self.entered.clear();
        }
        let target = match found {
            Target::Dynamic(found, name) if keyword == "$dynamicRef" => {
                self.outermost(scope, name).unwrap_or(found)
            }
            Target::Schema(found) if keyword == "$recursiveRef" => {
                let place = &self.index.places[&found];
                let is_open = self.index.resources[place.resource].dynamic.contains_key("");
                self.outermost(scope, "").filter(|_| is_open).unwrap_or(found)
            }
            Target::Schema(found) | Target::Dynamic(found, _) => found,
            Target::Unresolved => {
                return Err(format!("at `{at}`: `{shown}` names no part of this schema"));
            }
            Target::OtherDocument => {
                return Err(format!(
                    "at `{at}`: `{shown}` is in another document, and none is fetched: copy it into `$defs` of this schema \
                     and refer to it with `#/$defs/…`"
                ));
            }
        };
        let resource = self.index.places[&target].resource;
        Ok((target, self.scope(resource, scope)))
    }
}

/// Writes a pointer as a local reference.
fn fragment(pointer: &str) -> String {
    let mut text = "#".to_owned();
    for byte in pointer.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}
