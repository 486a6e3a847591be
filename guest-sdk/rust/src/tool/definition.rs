//! The definition of a tool, which a host reads before the first call.

use serde_json::Value;

use super::convert::Described;
use crate::schema;

/// The definition of a tool. `#[tool]` generates it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// Matches `[A-Za-z0-9_-]{1,64}`.
    pub name: &'static str,
    /// A description for the model.
    pub description: &'static str,
    /// JSON Schema of the arguments. `None` accepts any object.
    pub parameters: Option<Value>,
    /// JSON Schema of the value. `None` promises nothing.
    pub output: Option<Value>,
    /// Free metadata.
    pub attributes: Vec<(String, Value)>,
    /// Hints about the effects of the tool.
    pub hints: Hints,
    /// True if the tool checks arguments beyond their schema.
    pub validates: bool,
    /// True if the tool decides whether it is visible.
    pub hides: bool,
    /// Upper limit of one execution, in milliseconds.
    pub max_execution_ms: Option<u64>,
    /// The grants that the tool needs.
    pub needs: Vec<Need>,
    /// Fields that the contract does not define.
    pub extensions: Vec<(&'static str, Value)>,
}

/// The author's hints about the effects of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing outside of the cell.
    pub read_only: bool,
    /// A second call with the same arguments changes nothing further.
    pub idempotent: bool,
    /// May destroy something irrecoverably.
    pub destructive: bool,
    /// Reaches an open set of other systems, the web for instance.
    pub open_world: bool,
}

/// A grant that a tool needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// `http`, `filesystem`, `secret`, `kv`, …
    pub kind: &'static str,
    /// The hosts, paths, keys or names, in the notation of the kind.
    pub pattern: &'static str,
    /// The reason, in one sentence.
    pub reason: &'static str,
}

/// Returns the schema of the value.
pub fn output<T: Described>() -> Option<Value> {
    Some(schema::of_output::<T>())
}

/// Returns the members of a JSON object, or nothing for another value.
pub fn pairs(object: Value) -> Vec<(String, Value)> {
    match object {
        Value::Object(members) => members.into_iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Vec::new()
        }
    }
}
