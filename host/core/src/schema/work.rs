//! How much work a schema can cause.
//!
//! A schema comes from a stranger, and checking a value can be exponential in the value's depth: two alternatives that
//! both refer back to the whole visit a node at depth `d` 2^d times. So the visits are counted before, per depth.

use std::collections::HashMap;

use serde_json::Value;

use crate::defence::{Defence, stands};
use crate::json::MAX_DEPTH;
use crate::refusal::Fault;

/// Size of a schema as text, in bytes. Models get the schema with every request: a larger one is no use to anybody.
const MAX_BYTES: usize = 64 << 10;
/// Subschemas of a schema.
const MAX_SUBSCHEMAS: usize = 2_000;
/// Subschemas that may stand inside each other, references followed: the count recurses as deep.
const MAX_CHAIN: usize = 400;
/// Visits that one check may cost: about half a second.
const BUDGET: u64 = 10_000_000;

/// Keywords that lead elsewhere than the count follows: of older drafts, or resolved while a value is checked.
const UNSUPPORTED: [&str; 5] = ["$dynamicRef", "$recursiveRef", "dependencies", "additionalItems", "contentSchema"];
/// Keywords whose subschemas look at the same place again.
const IN_PLACE_ONE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE_MAP: [&str; 1] = ["dependentSchemas"];
/// Keywords whose subschemas look at the places inside.
const INSIDE_ONE: [&str; 6] =
    ["additionalProperties", "items", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"];
const INSIDE_LIST: [&str; 1] = ["prefixItems"];
const INSIDE_MAP: [&str; 2] = ["properties", "patternProperties"];

/// Patterns of a schema, and bytes of a value for each of them: one may take microseconds a byte.
const MAX_PATTERNS: u64 = 200;
const PATTERN_BUDGET: u64 = 1 << 20;
/// Visits up to which every fault is looked for: each may leave a few hundred bytes of error behind.
const ERROR_BUDGET: u64 = 50_000;

/// Visits of the busiest place at each depth, and patterns in all.
#[derive(Debug)]
pub(super) struct Work {
    visits: Vec<u64>,
    patterns: u64,
}

impl Work {
    /// Counts, and refuses what is too large, points elsewhere or never ends.
    pub(super) fn estimate(schema: &Value) -> Result<Self, String> {
        let bytes = schema.to_string().len();
        if bytes > MAX_BYTES && stands(Defence::SchemaBytes) {
            return Err(format!("the schema has {bytes} bytes; at most {MAX_BYTES} are accepted"));
        }
        let mut count = Count { root: schema, known: HashMap::new(), open: Vec::new() };
        let visits = (0..=MAX_DEPTH).map(|depth| count.visits(schema, depth)).collect::<Result<_, _>>()?;
        let patterns = patterns(schema);
        if patterns > MAX_PATTERNS && stands(Defence::Patterns) {
            return Err(format!("the schema has {patterns} patterns; at most {MAX_PATTERNS} are accepted"));
        }
        Ok(Self { visits, patterns })
    }

    /// Whether this value can be checked within the budget.
    pub(super) fn afford(&self, value: &Value, bytes: usize) -> Result<(), Vec<Fault>> {
        if self.patterns.saturating_mul(bytes as u64) > PATTERN_BUDGET && stands(Defence::PatternWork) {
            let expected = "expected a shorter value: this one is too costly to check against the schema's patterns";
            return Err(vec![Fault::new("", expected).got(format!("{bytes} bytes"))]);
        }
        // Most schemas are so cheap that even a value of nothing but `0,0,0…` is affordable: no need to look at it.
        if self.cost(MAX_DEPTH, bytes as u64 / 2 + 1) <= BUDGET || !stands(Defence::SchemaWork) {
            return Ok(());
        }
        let (depth, nodes) = measure(value);
        if self.cost(depth, nodes) <= BUDGET {
            return Ok(());
        }
        Err(vec![
            Fault::new("", "expected a smaller or flatter value: this one is too costly to check against the schema")
                .got(format!("{nodes} nodes in {depth} levels")),
        ])
    }

    /// Whether looking for every fault of this value is affordable; if not, the first has to do.
    pub(super) fn affords_all_faults(&self, value: &Value) -> bool {
        let (depth, nodes) = measure(value);
        self.cost(depth, nodes) <= ERROR_BUDGET
    }

    fn cost(&self, depth: usize, nodes: u64) -> u64 {
        self.visits.get(depth.min(MAX_DEPTH)).copied().unwrap_or(u64::MAX).saturating_mul(nodes)
    }
}

/// Patterns in a schema, wherever they stand.
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

/// Depth and number of nodes of a value.
fn measure(value: &Value) -> (usize, u64) {
    let mut nodes = 0_u64;
    let mut deepest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        nodes += 1;
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    (deepest, nodes)
}

/// The count at work. Subschemas are told apart by address: the schema does not move meanwhile.
struct Count<'a> {
    root: &'a Value,
    known: HashMap<(*const Value, usize), u64>,
    open: Vec<(*const Value, usize)>,
}

impl<'a> Count<'a> {
    fn visits(&mut self, schema: &'a Value, depth: usize) -> Result<u64, String> {
        let key = (std::ptr::from_ref(schema), depth);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        if self.open.contains(&key) {
            return Err("the schema refers to itself without going into the value: its check would never end".into());
        }
        if self.open.len() > MAX_CHAIN && stands(Defence::SchemaDepth) {
            return Err(format!("more than {MAX_CHAIN} subschemas stand inside each other"));
        }
        if self.known.len() > MAX_SUBSCHEMAS * (MAX_DEPTH + 1) && stands(Defence::Subschemas) {
            return Err(format!("the schema has more than {MAX_SUBSCHEMAS} subschemas"));
        }
        self.open.push(key);
        let visits = self.count(schema, depth)?;
        self.open.pop();
        self.known.insert(key, visits);
        Ok(visits)
    }

    fn count(&mut self, schema: &'a Value, depth: usize) -> Result<u64, String> {
        let Value::Object(keywords) = schema else { return Ok(1) };
        let mut total = 1_u64;
        for keyword in UNSUPPORTED {
            if keywords.contains_key(keyword) {
                return Err(format!("`{keyword}` is not supported"));
            }
        }
        let is_root = std::ptr::eq(schema, self.root);
        if let Some(keyword) =
            ["$id", "id", "$schema"].into_iter().find(|word| !is_root && keywords.contains_key(*word))
        {
            return Err(format!("`{keyword}` is not supported inside of a schema"));
        }
        if keywords.get("items").is_some_and(Value::is_array) {
            return Err("a list as `items` is not supported: use `prefixItems`".into());
        }
        if let Some(reference) = keywords.get("$ref").filter(|_| stands(Defence::SchemaReferences)) {
            total = total.saturating_add(self.visits(self.target(reference)?, depth)?);
        }
        for (keyword, value) in keywords {
            let keyword = keyword.as_str();
            // Lists that are gone through at every visit, member by member.
            let listed = match (keyword, value) {
                ("required" | "enum", Value::Array(list)) => list.len(),
                ("dependentRequired", Value::Object(map)) => {
                    map.values().map(|list| 1 + list.as_array().map_or(0, Vec::len)).sum()
                }
                _ => 0,
            };
            total = total.saturating_add(listed as u64);
            let children: Vec<&'a Value> = match value {
                Value::Array(list) if IN_PLACE_LIST.contains(&keyword) || INSIDE_LIST.contains(&keyword) => {
                    list.iter().collect()
                }
                Value::Object(map) if IN_PLACE_MAP.contains(&keyword) || INSIDE_MAP.contains(&keyword) => {
                    map.values().collect()
                }
                Value::Object(_) | Value::Bool(_)
                    if IN_PLACE_ONE.contains(&keyword) || INSIDE_ONE.contains(&keyword) =>
                {
                    vec![value]
                }
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => {
                    continue;
                }
            };
            let in_place =
                IN_PLACE_ONE.contains(&keyword) || IN_PLACE_LIST.contains(&keyword) || IN_PLACE_MAP.contains(&keyword);
            let depth = match (in_place, depth.checked_sub(1)) {
                (true, _) => depth,
                (false, Some(inside)) => inside,
                (false, None) => continue,
            };
            // A place inside is one property or one item: the busiest counts. All else adds up.
            let busiest_only = keyword == "properties" || keyword == "prefixItems";
            let mut sum = 0_u64;
            for child in children {
                let visits = self.visits(child, depth)?;
                sum = if busiest_only { sum.max(visits) } else { sum.saturating_add(visits) };
            }
            total = total.saturating_add(sum);
        }
        Ok(total)
    }

    /// The subschema that a reference names.
    fn target(&self, reference: &Value) -> Result<&'a Value, String> {
        let text = reference.as_str().ok_or("`$ref` must be a string")?;
        text.strip_prefix('#')
            .and_then(|pointer| self.root.pointer(&percent_decoded(pointer)))
            .ok_or_else(|| format!("`$ref` may only point into the schema itself (`#/…`), and `{text}` does not"))
    }
}

/// The three escapes that occur in pointers of generated schemas.
fn percent_decoded(pointer: &str) -> String {
    pointer.replace("%3C", "<").replace("%3E", ">").replace("%25", "%")
}
