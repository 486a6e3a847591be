//! Indexes the parts of a schema that references can name.
//!
//! The translator (`translate`) builds an [`Index`] of the whole untrusted schema before it writes
//! anything. The index has every subschema with its JSON pointer and its draft, the resources
//! (subschemas with a `$id` of their own), and the anchors. [`Index::resolve`] takes a reference
//! and returns its [`Target`]: a subschema, a dynamic one, nothing, or another document. Each
//! subschema is visited once, and nothing is fetched: a reference to another document is never
//! followed.
//!
//! Source: JSON Schema 2020-12, section 8.2; the earlier drafts' sections on `id` and `$id`.

use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

use jsonschema::{Draft, Uri, uri};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::keywords::{Subschemas, subschemas};
use crate::json::{inside, member_name};

/// A subschema, compared by its address.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaRef<'a>(pub(super) &'a Value);

impl PartialEq for SchemaRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for SchemaRef<'_> {}

impl Hash for SchemaRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

/// A schema with its own identifier, or the whole schema.
pub(super) struct Resource<'a> {
    root: &'a Value,
    at: String,
    uri: Uri<String>,
    pub(super) draft: Draft,
    anchors: HashMap<&'a str, SchemaRef<'a>>,
    /// The targets of `$dynamicAnchor` by name. Under the empty name: the whole resource, if it has
    /// `$recursiveAnchor`.
    pub(super) dynamic: HashMap<&'a str, SchemaRef<'a>>,
}

impl<'a> Resource<'a> {
    fn new(root: &'a Value, at: String, uri: Uri<String>, draft: Draft) -> Self {
        Self { root, at, uri, draft, anchors: HashMap::new(), dynamic: HashMap::new() }
    }
}

/// The place of a subschema: its resource, and its JSON pointer in the whole schema.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) resource: usize,
    pub(super) at: String,
}

/// The index of the subschemas of a schema.
pub(super) struct Index<'a> {
    pub(super) resources: Vec<Resource<'a>>,
    uris: HashMap<String, usize>,
    pub(super) places: HashMap<SchemaRef<'a>, Place>,
    /// Names that dynamic references look up. The empty name is that of `$recursiveRef`.
    pub(super) asked: BTreeSet<&'a str>,
    pub(super) has_unevaluated_items: bool,
}

/// The target of a reference.
pub(super) enum Target<'a> {
    Schema(SchemaRef<'a>),
    /// A schema that a dynamic reference may replace by another one of this name.
    Dynamic(SchemaRef<'a>, &'a str),
    Unresolved,
    OtherDocument,
}

/// Returns true if the keywords beside `$ref` are ignored.
pub(super) fn ignores_siblings(draft: Draft, schema: &Value) -> bool {
    draft <= Draft::Draft7 && schema.get("$ref").is_some_and(Value::is_string)
}

impl<'a> Index<'a> {
    /// Indexes a whole schema of this draft.
    pub(super) fn of(root: &'a Value, draft: Draft) -> Option<Self> {
        let whole = Resource::new(root, String::new(), uri::from_str("").ok()?, draft);
        let uris = HashMap::from([(whole.uri.as_str().to_owned(), 0)]);
        let mut index = Self {
            resources: vec![whole],
            uris,
            places: HashMap::new(),
            asked: BTreeSet::new(),
            has_unevaluated_items: false,
        };
        index.add(root, String::new(), 0);
        Some(index)
    }

    /// Adds a subschema of a resource, and all below it.
    fn add(&mut self, schema: &'a Value, at: String, mut resource: usize) {
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        let draft = self.resources[resource].draft;
        let id = text(draft.id_keyword()).filter(|_| !ignores_siblings(draft, schema));
        if let Some(id) = id {
            let (uri, anchor) = id.split_once('#').unwrap_or((id, ""));
            if !uri.is_empty() {
                resource = self.begin(schema, &at, uri, resource);
            }
            if !anchor.is_empty() {
                self.resources[resource].anchors.insert(anchor, SchemaRef(schema));
            }
        }
        let named = |keyword: &str| text(keyword).map(|name| (name, SchemaRef(schema)));
        let around = &mut self.resources[resource];
        around.anchors.extend(named("$anchor").into_iter().chain(named("$dynamicAnchor")));
        around.dynamic.extend(named("$dynamicAnchor"));
        if schema.get("$recursiveAnchor") == Some(&Value::Bool(true)) && at == around.at {
            around.dynamic.insert("", SchemaRef(schema));
        }
        if let Some(reference) = text("$dynamicRef") {
            self.asked.extend(reference.split_once('#').map(|(_, name)| name));
        }
        self.asked.extend(text("$recursiveRef").map(|_| ""));
        self.has_unevaluated_items |= schema.get("unevaluatedItems").is_some();
        if self.places.insert(SchemaRef(schema), Place { resource, at: at.clone() }).is_some() {
            return;
        }
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            match subschemas(keyword, value) {
                Subschemas::None => {}
                Subschemas::One(one) => self.add(one, inside(&at, keyword), resource),
                Subschemas::List(list) => {
                    for (index, one) in list.iter().enumerate() {
                        self.add(one, format!("{}/{index}", inside(&at, keyword)), resource);
                    }
                }
                Subschemas::Map(map) => {
                    for (name, one) in map {
                        self.add(one, inside(&inside(&at, keyword), name), resource);
                    }
                }
            }
        }
    }

    /// Returns the index of the resource that begins at a subschema with an identifier. An
    /// identifier that is not a URI begins no resource.
    fn begin(&mut self, schema: &'a Value, at: &str, id: &str, around: usize) -> usize {
        let Ok(uri) = uri::resolve_against(&self.resources[around].uri.borrow(), id) else {
            return around;
        };
        if at.is_empty() {
            self.uris.insert(uri.as_str().to_owned(), 0);
            self.resources[0].uri = uri;
            return 0;
        }
        let own = schema.get("$schema").and_then(Value::as_str).map(Draft::from_schema_uri);
        let draft =
            own.filter(|draft| *draft != Draft::Unknown).unwrap_or(self.resources[around].draft);
        let number = self.resources.len();
        self.uris.entry(uri.as_str().to_owned()).or_insert(number);
        self.resources.push(Resource::new(schema, at.to_owned(), uri, draft));
        number
    }

    /// Resolves a reference from within a resource.
    pub(super) fn resolve(&mut self, reference: &'a str, from: usize) -> Target<'a> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let mut resource = from;
        if !uri.is_empty() {
            let absolute = uri::resolve_against(&self.resources[from].uri.borrow(), uri).ok();
            let Some(known) = absolute.and_then(|absolute| self.uris.get(absolute.as_str())) else {
                return Target::OtherDocument;
            };
            resource = *known;
        }
        let Ok(decoded) = percent_decode_str(fragment).decode_utf8() else {
            return Target::Unresolved;
        };
        if !decoded.is_empty() && !decoded.starts_with('/') {
            let here = &self.resources[resource];
            return match (here.dynamic.get(&*decoded), here.anchors.get(&*decoded)) {
                (Some(found), _) => Target::Dynamic(*found, fragment),
                (None, Some(found)) => Target::Schema(*found),
                (None, None) => Target::Unresolved,
            };
        }
        let (mut at, mut schema) =
            (self.resources[resource].at.clone(), self.resources[resource].root);
        for step in decoded.split('/').skip(1) {
            at = format!("{at}/{step}");
            let step = member_name(step);
            let next = match schema {
                Value::Object(members) => members.get(&step),
                Value::Array(items) => {
                    step.parse::<usize>().ok().and_then(|index| items.get(index))
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            };
            let Some(next) = next else { return Target::Unresolved };
            schema = next;
            resource = self.places.get(&SchemaRef(schema)).map_or(resource, |place| place.resource);
        }
        if !schema.is_object() && !schema.is_boolean() {
            return Target::Unresolved;
        }
        if !self.places.contains_key(&SchemaRef(schema)) {
            self.add(schema, at, resource);
        }
        Target::Schema(SchemaRef(schema))
    }
}

/// Returns the pointer of a local reference, without percent-encoding.
pub fn decoded(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    Some(percent_decode_str(fragment).decode_utf8().ok()?.into_owned())
}
