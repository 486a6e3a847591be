//! What is known of a tool before its first call.

use serde_json::Value;

use crate::convert::Described;
use crate::schema;

/// What is known of a tool before its first call. `#[tool]` writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: &'static str,
    /// In words for a model.
    pub description: &'static str,
    /// JSON Schema of the arguments. None accepts any object.
    pub parameters: Option<Value>,
    /// JSON Schema of the value.
    pub output: Option<Value>,
    /// Free metadata.
    pub attributes: Vec<(String, Value)>,
    /// On its effects.
    pub hints: Hints,
    /// Whether it looks at arguments beyond their schema.
    pub validates: bool,
    /// Whether it is offered only sometimes.
    pub hides: bool,
    /// In milliseconds.
    pub max_execution_ms: Option<u64>,
    /// What it needs in order to work.
    pub needs: Vec<Need>,
    /// What the contract has no field for.
    pub extensions: Vec<(&'static str, Value)>,
}

/// The author's words on effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing outside of the cell.
    pub read_only: bool,
    /// A second call with the same arguments changes nothing further.
    pub idempotent: bool,
    /// May destroy something for good.
    pub destructive: bool,
    /// Reaches an open set of others.
    pub open_world: bool,
}

/// One thing that a tool needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// `http`, `filesystem`, `secret`, `kv`, …
    pub kind: &'static str,
    /// Which ones.
    pub pattern: &'static str,
    /// Why, in one sentence.
    pub reason: &'static str,
}

/// The schema of the value.
pub fn output<T: Described>() -> Option<Value> {
    Some(schema::of_output::<T>())
}

/// The members of a JSON object.
pub fn pairs(object: Value) -> Vec<(String, Value)> {
    match object {
        Value::Object(members) => members.into_iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Vec::new()
        }
    }
}
