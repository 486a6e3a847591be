//! Finds the schemas that accept more values because a part of them is left out of the translation.
//!
//! The translation notes what it leaves out in [`LeftOut`], and [`LeftOut::loosened`] returns the
//! schemas around it. A second translation gets these as [`Loose`], and leaves out the keywords that
//! would refuse more values than before, for example a `not` around them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::schema::index::{Index, SchemaRef};
use crate::schema::keywords::{Subschemas, subschemas};

/// Keywords that refuse more values if their schemas accept more. `oneOf` does too, and becomes
/// `anyOf`.
pub(super) const REVERSED: [&str; 2] = ["if", "not"];
/// Keywords that refuse what the schemas at the same place have not evaluated.
pub(super) const UNEVALUATED: [&str; 2] = ["unevaluatedItems", "unevaluatedProperties"];
/// Keywords whose schemas evaluate for the schema that has the keyword.
const AT_THE_PLACE: [&str; 8] =
    ["allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "oneOf", "then"];

/// Schemas that accept more than they say, because a part of them cannot be enforced.
#[derive(Default)]
pub(super) struct Loose<'a> {
    /// Those that lack a part, in themselves or in a schema that they apply.
    pub(super) schemas: HashSet<SchemaRef<'a>>,
    /// Those that no longer evaluate every member or item that they did.
    pub(super) blind: HashSet<SchemaRef<'a>>,
}

/// The parts that a translation leaves out, and the references around them.
#[derive(Default)]
pub(super) struct LeftOut<'a> {
    /// The schemas that lack a part of their own.
    pub(super) lacking: HashSet<SchemaRef<'a>>,
    /// Those that lack a pattern for names.
    pub(super) unnamed: HashSet<SchemaRef<'a>>,
    /// Each reference: the schema that has it, and its target.
    pub(super) uses: Vec<(SchemaRef<'a>, SchemaRef<'a>)>,
}

impl<'a> Loose<'a> {
    /// Returns true if a schema of a keyword is loose.
    pub(super) fn has(&self, keyword: &str, value: &'a Value) -> bool {
        applied(keyword, value).iter().any(|inner| self.schemas.contains(inner))
    }
}

impl<'a> LeftOut<'a> {
    /// Returns the schemas that lack a part, and all around them.
    pub(super) fn loosened(&self, index: &Index<'a>) -> Loose<'a> {
        if self.lacking.is_empty() {
            return Loose::default();
        }
        let mut users = HashMap::<_, Vec<_>>::new();
        for (user, target) in &self.uses {
            users.entry(*target).or_default().push(*user);
        }
        let mut users_at_the_place = users.clone();
        for schema in index.places.keys() {
            for (keyword, value) in schema.0.as_object().into_iter().flatten() {
                for inner in applied(keyword, value) {
                    users.entry(inner).or_default().push(*schema);
                    if AT_THE_PLACE.contains(&keyword.as_str()) {
                        users_at_the_place.entry(inner).or_default().push(*schema);
                    }
                }
            }
        }
        let schemas = with_users(self.lacking.iter().copied(), &users);
        // An `if` that is left out evaluates nothing.
        let loses_one = |schema: &&SchemaRef<'a>| {
            schema.0.get("if").is_some_and(|condition| schemas.contains(&SchemaRef(condition)))
        };
        let losing = index.places.keys().filter(loses_one);
        let blind = with_users(losing.chain(&self.unnamed).copied(), &users_at_the_place);
        Loose { schemas, blind }
    }
}

/// Returns the schemas that a keyword applies to a value or to a part of it.
fn applied<'a>(keyword: &str, value: &'a Value) -> Vec<SchemaRef<'a>> {
    if ["$defs", "contentSchema", "definitions"].contains(&keyword) {
        return Vec::new();
    }
    match subschemas(keyword, value) {
        Subschemas::None => Vec::new(),
        Subschemas::One(one) => vec![SchemaRef(one)],
        Subschemas::List(list) => list.iter().map(SchemaRef).collect(),
        Subschemas::Map(map) => map.values().map(SchemaRef).collect(),
    }
}

/// Returns these schemas, and all that apply one of them.
fn with_users<'a>(
    from: impl IntoIterator<Item = SchemaRef<'a>>,
    users: &HashMap<SchemaRef<'a>, Vec<SchemaRef<'a>>>,
) -> HashSet<SchemaRef<'a>> {
    let mut open: Vec<_> = from.into_iter().collect();
    let mut found = HashSet::new();
    while let Some(schema) = open.pop() {
        if found.insert(schema) {
            open.extend(users.get(&schema).into_iter().flatten());
        }
    }
    found
}
