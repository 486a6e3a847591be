//! Bounds the work that an untrusted schema can cause, before the work is done.
//!
//! A check can take time exponential in the depth of the value: two alternatives that both refer
//! back to the whole schema visit a node at depth `d` 2^d times. So `Schema::compile` calls
//! [`Work::estimate`], which counts the cost of the busiest place at each depth and refuses a
//! schema that is too large or never ends. For each value, [`Work::check_budget`] combines these
//! costs with the value's size at each depth and refuses a value whose check would exceed the
//! budget (about 50 ms). Collecting every fault has a budget of its own; over it, a single fault is
//! reported.
//!
//! Not here: the measure of a value, in [`measure`](super::measure).

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::index::decoded;
use super::keywords::{Subschemas, subschemas};
use super::measure::{Cost, Measure};
use super::pattern::name_weight;
use crate::controls::{bound, enforced};
use crate::json::Json;
use crate::outcome::refusal::{Fault, FaultKind};

/// Bytes of a schema as text. Models get the schema with every request, so a larger one is of no
/// use.
pub(super) const MAX_BYTES: usize = 64 << 10;
/// The maximum number of subschemas of a schema.
const MAX_SUBSCHEMAS: usize = 2_000;
/// The maximum nesting of subschemas, references followed: the count recurses as deep.
const MAX_CHAIN: usize = 400;
/// Steps that one check may cost: about 10 ns each, 50 ms in all.
const BUDGET: u64 = 4_000_000;
/// The maximum cost of `unevaluatedProperties` and `unevaluatedItems` over a whole schema, in
/// steps: the compiler makes a copy for each.
const MAX_MARKS: u64 = 20_000;

/// Keywords whose subschemas visit the same place again.
const IN_PLACE: [&str; 8] =
    ["allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"];
/// Keywords whose subschemas are visited only where a reference names them, or never.
const UNVISITED: [&str; 3] = ["$defs", "contentSchema", "definitions"];
/// Keywords that depend on what all others at a place have evaluated. To find out, those run again.
const MARKING: [&str; 2] = ["unevaluatedItems", "unevaluatedProperties"];

/// The maximum number of patterns in a schema, and of bytes of text that a check may match with
/// patterns: a match may take microseconds per byte.
pub(super) const MAX_PATTERNS: u64 = 200;
const PATTERN_BUDGET: u64 = 1 << 20;
/// The maximum number of steps of collecting every fault: each may leave a few hundred bytes of
/// error behind.
const ERROR_BUDGET: u64 = 50_000;
/// The cost of a division by a fraction, which is exact.
const FRACTION: usize = 512;
/// The number of declared member names that are compared in one step, and the number that are
/// compared at most; more are looked up instead.
const NAMES: usize = 8;
const COMPARED: usize = 40;
/// The cost of writing and hashing a node, to decide if an item is unique.
const HASHED: u64 = 20;

/// Refuses a schema that is too large to be processed.
pub(super) fn admit(schema: &Value) -> Result<(), String> {
    let bytes = schema.to_string().len();
    if bytes > bound!(SchemaBytes, MAX_BYTES) {
        return Err(format!("the schema has {bytes} bytes; at most {MAX_BYTES} are accepted"));
    }
    let patterns = patterns(schema);
    if patterns > bound!(Patterns, MAX_PATTERNS) {
        return Err(format!(
            "the schema has {patterns} patterns; at most {MAX_PATTERNS} are accepted"
        ));
    }
    Ok(())
}

/// The cost of the busiest place at each depth.
#[derive(Debug)]
pub(super) struct Work {
    costs: Vec<Cost>,
}

impl Work {
    /// Counts the cost. Refuses a schema that is too large, refers elsewhere or never ends.
    pub(super) fn estimate(schema: &Value) -> Result<Self, String> {
        let mut count = Count { root: schema, costs: HashMap::new(), checks: 0, open: Vec::new() };
        let costs = (0..=Json::MAX_DEPTH)
            .map(|depth| count.visits(schema, depth, Walk::Check))
            .collect::<Result<_, _>>()?;
        let marks = count
            .costs
            .iter()
            .filter(|((_, depth, walk), _)| (*depth, *walk) == (0, Walk::Mark))
            .map(|(_, cost)| cost.looks);
        if marks.fold(0, u64::saturating_add) > bound!(SchemaWork, MAX_MARKS) {
            return Err(
                "`unevaluatedItems` and `unevaluatedProperties` apply to too many subschemas"
                    .into(),
            );
        }
        Ok(Self { costs })
    }

    /// Checks that this value can be checked within the budget.
    pub(super) fn check_budget(&self, value: &Value) -> Result<(), Vec<Fault>> {
        let measure = Measure::of(value);
        let is_long = measure.matched(&self.costs) > bound!(PatternWork, PATTERN_BUDGET);
        let is_large = measure.steps(&self.costs) > bound!(SchemaWork, BUDGET);
        if is_long || is_large {
            return Err(vec![
                Fault::of_kind("", FaultKind::TooCostly).with_actual(measure.to_string()),
            ]);
        }
        Ok(())
    }

    /// Returns true if collecting every fault of this value is affordable. If not, a single fault
    /// is reported.
    pub(super) fn affords_all_faults(&self, value: &Value) -> bool {
        Measure::of(value).copied(&self.costs) <= ERROR_BUDGET
    }
}

/// Returns the number of patterns in a schema, at any depth.
fn patterns(schema: &Value) -> u64 {
    match schema {
        Value::Array(items) => items.iter().map(patterns).sum(),
        Value::Object(keywords) => keywords
            .iter()
            .map(|(keyword, value)| {
                let own = match (keyword.as_str(), value) {
                    ("pattern", _) => 1,
                    ("patternProperties", Value::Object(map)) => map.len() as u64,
                    _ => 0,
                };
                own + patterns(value)
            })
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The kinds of visits of a subschema to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Walk {
    /// Checks the value.
    Check,
    /// Finds out which parts it evaluates, for a keyword of [`MARKING`].
    Mark,
}

/// The state of the count. Subschemas are compared by address: the schema does not move meanwhile.
struct Count<'a> {
    root: &'a Value,
    /// The costs that are known, by subschema, depth and kind of visit.
    costs: HashMap<(*const Value, usize, Walk), Cost>,
    /// The number of these that are costs of checks.
    checks: usize,
    open: Vec<(*const Value, usize, Walk)>,
}

impl<'a> Count<'a> {
    /// Returns the cost of the busiest place that is `depth` levels below the place of the
    /// subschema.
    fn visits(&mut self, schema: &'a Value, depth: usize, walk: Walk) -> Result<Cost, String> {
        let key = (std::ptr::from_ref(schema), depth, walk);
        if let Some(known) = self.costs.get(&key) {
            return Ok(*known);
        }
        if self.open.contains(&key) {
            return Err(
                "the schema refers to itself for the same value: its check would never end".into(),
            );
        }
        if self.open.len() > bound!(SchemaDepth, MAX_CHAIN) {
            return Err(format!("more than {MAX_CHAIN} subschemas stand inside each other"));
        }
        if self.checks > bound!(Subschemas, MAX_SUBSCHEMAS * (Json::MAX_DEPTH + 1)) {
            return Err(format!("the schema has more than {MAX_SUBSCHEMAS} subschemas"));
        }
        self.open.push(key);
        let cost = match walk {
            Walk::Check => self.checked(schema, depth)?,
            Walk::Mark => self.marked(schema, depth)?,
        };
        self.open.pop();
        self.checks += usize::from(walk == Walk::Check);
        self.costs.insert(key, cost);
        Ok(cost)
    }

    fn checked(&mut self, schema: &'a Value, depth: usize) -> Result<Cost, String> {
        let Value::Object(keywords) = schema else {
            return Ok(if depth == 0 { Cost::LOOK } else { Cost::default() });
        };
        let mut total = if depth == 0 { own(keywords) } else { Cost::default() };
        if let Some(reference) = reference(keywords) {
            total = total + self.visits(self.target(reference)?, depth, Walk::Check)?;
        }
        for (keyword, value) in keywords {
            let keyword = keyword.as_str();
            let Some((children, in_place)) = visited(keyword, value) else { continue };
            let depth = match (in_place, depth.checked_sub(1)) {
                (true, _) => depth,
                (false, Some(inside)) => inside,
                (false, None) => continue,
            };
            // A place inside is one property or one item: the busiest counts. All other costs add
            // up.
            let busiest_only = keyword == "properties" || keyword == "prefixItems";
            let mut sum = Cost::default();
            for child in children {
                let cost = self.visits(child, depth, Walk::Check)?;
                sum = if busiest_only { sum.max(cost) } else { sum + cost };
            }
            total = total + sum;
        }
        if MARKING.iter().any(|keyword| keywords.contains_key(*keyword)) {
            total = total + self.visits(schema, depth, Walk::Mark)?;
        }
        Ok(total)
    }

    /// Returns the cost of finding out what a subschema evaluates: each subschema in place checks
    /// again, and then reports what it evaluates.
    fn marked(&mut self, schema: &'a Value, depth: usize) -> Result<Cost, String> {
        let Value::Object(keywords) = schema else { return Ok(Cost::default()) };
        // Each of the places inside is recorded.
        let mut total = if depth <= 1 { own(keywords) } else { Cost::default() };
        if let Some(reference) = reference(keywords) {
            total = total + self.visits(self.target(reference)?, depth, Walk::Mark)?;
        }
        for (keyword, value) in keywords {
            let keyword = keyword.as_str();
            let Some((children, in_place)) = visited(keyword, value) else { continue };
            for child in children {
                if in_place {
                    total = total
                        + self.visits(child, depth, Walk::Check)?
                        + self.visits(child, depth, Walk::Mark)?;
                } else if let Some(inside) = depth.checked_sub(1)
                    && (keyword == "contains" || MARKING.contains(&keyword))
                {
                    total = total + self.visits(child, inside, Walk::Check)?;
                }
            }
        }
        Ok(total)
    }

    /// Returns the subschema that a reference names. A mixture of valid and invalid escapes names
    /// nothing, because not all readers decode it alike.
    fn target(&self, reference: &Value) -> Result<&'a Value, String> {
        let text = reference.as_str().ok_or("`$ref` must be a string")?;
        let pointer = decoded(text).filter(|_| !mixes_escapes(text));
        pointer.and_then(|pointer| self.root.pointer(&pointer)).ok_or_else(|| {
            format!(
                "`$ref` may only point into this schema (`#/…`), and `{text}` names no part of it"
            )
        })
    }
}

fn reference(keywords: &Map<String, Value>) -> Option<&Value> {
    keywords.get("$ref").filter(|_| enforced!(SchemaReferences))
}

/// Returns true if some `%` of a reference begin an escape, and others do not.
fn mixes_escapes(reference: &str) -> bool {
    let is_escape = |part: &str| {
        part.get(..2).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    let mut escapes = reference.split('%').skip(1).map(is_escape);
    escapes.next().is_some_and(|first| escapes.any(|other| other != first))
}

/// Returns the subschemas of a keyword that a check visits, and true if they visit the same place
/// again. The schema is translated, so the keywords of earlier drafts alone are not in it.
fn visited<'a>(keyword: &str, value: &'a Value) -> Option<(Vec<&'a Value>, bool)> {
    if UNVISITED.contains(&keyword) {
        return None;
    }
    let children = match subschemas(keyword, value) {
        Subschemas::None => return None,
        Subschemas::One(one) => vec![one],
        Subschemas::List(list) => list.iter().collect(),
        Subschemas::Map(map) => map.values().collect(),
    };
    Some((children, IN_PLACE.contains(&keyword)))
}

/// Returns the cost of a subschema's own keywords at its place.
fn own(keywords: &Map<String, Value>) -> Cost {
    let mut cost = Cost::LOOK;
    for (keyword, value) in keywords {
        let looks = |number: usize| Cost { looks: number as u64, ..Cost::default() };
        let whole = |number: u64| Cost { whole: number, ..Cost::default() };
        let patterns = |number: u64| Cost { patterns: number, ..Cost::default() };
        let is_composite = |value: &Value| value.is_array() || value.is_object();
        cost = cost
            + match (keyword.as_str(), value) {
                // Lists that are read at every visit, member by member.
                ("required", Value::Array(list)) => looks(list.len()),
                ("dependentRequired", Value::Object(map)) => {
                    looks(map.values().map(|list| 1 + list.as_array().map_or(0, Vec::len)).sum())
                }
                ("properties", Value::Object(map)) => looks(map.len().min(COMPARED) / NAMES),
                // Texts are looked up, all other values are compared.
                ("enum", Value::Array(list)) => {
                    let deep = list.iter().filter(|one| is_composite(one)).count();
                    looks(list.iter().filter(|one| !one.is_string()).count()) + whole(deep as u64)
                }
                ("const", value) => whole(u64::from(is_composite(value))),
                ("multipleOf", Value::Number(number)) if number.is_f64() => looks(FRACTION),
                ("uniqueItems", Value::Bool(true)) => whole(HASHED),
                ("pattern", _) => patterns(1),
                ("patternProperties", Value::Object(map)) => {
                    patterns(map.keys().map(|name| name_weight(name)).sum())
                }
                _ => Cost::default(),
            };
    }
    cost
}
