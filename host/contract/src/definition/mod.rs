//! The definition of a tool: its name, description, JSON schemas, hints, needs.
//!
//! A component describes its tools with one [`Definition`] each when it is loaded; an embedder (the
//! program that uses this library) builds one for a tool that is a Rust closure. Models and clients
//! are shown the name, the description and the schemas; the executor checks arguments and results
//! against the schemas. A need is a declared wish for access, such as an HTTP host; it narrows what
//! an operator grants, and never grants anything. A name must have the form `[A-Za-z0-9_-]{1,64}`.
//! [`Definition::hash`] gives the digest by which an approved definition is recognised later.
//!
//! Hints are claims of the author, for display only: no decision about rights trusts them. Not
//! here: the check of arguments, in `schema`.

pub mod suspicion;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::controls::enforced;
use super::error::Error;
use super::json::is_default;

/// The definition of a tool: its name, what a model reads, its schemas and its needs.
///
/// # Shape
/// As JSON: its fields by name, without those that are absent or empty; `max_execution` in whole
/// milliseconds, as `max_execution_ms`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Definition {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// A description for a model: the tool's purpose, and when to use it.
    pub description: String,
    /// JSON Schema of the arguments. If absent, any object is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// JSON Schema of the value of an `ok`. If absent, the value is not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Free metadata, returned with every result.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
    /// The author's claims about the tool's effects.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hints: Hints,
    /// The optional checks that the handler implements.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks: Checks,
    /// Upper bound of one execution. If absent, only the caller's timeout applies.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "millis",
        rename = "max_execution_ms"
    )]
    pub max_execution: Option<Duration>,
    /// The tool's needs. A tool that declares `needs = []` has an extension `needs` beside the
    /// empty list: see [`declares_needs`](Self::declares_needs).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Fields of later contract versions, passed through.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Value>,
}

impl Definition {
    /// Longest tool name, in characters. All model providers accept names of this length. Source:
    /// docs/contract.md, section 5.
    pub const MAX_NAME: usize = 64;

    /// Creates a definition with a name and a description; every other field is absent or empty.
    ///
    /// # Errors
    /// [`Error::is_definition`] if the name does not have the form `[A-Za-z0-9_-]{1,64}`.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Result<Self, Error> {
        let name = name.into();
        check_name(&name)?;
        Ok(Self::unchecked(name, description.into()))
    }

    /// Creates a definition without checking the name.
    #[doc(hidden)]
    pub fn unchecked(name: String, description: String) -> Self {
        Self {
            name,
            description,
            parameters: None,
            output: None,
            attributes: BTreeMap::new(),
            hints: Hints::default(),
            checks: Checks::default(),
            max_execution: None,
            needs: Vec::new(),
            extensions: BTreeMap::new(),
        }
    }

    /// Sets the JSON Schema of the arguments.
    #[must_use]
    pub fn with_parameters(mut self, schema: Value) -> Self {
        self.parameters = Some(schema);
        self
    }

    /// Sets the JSON Schema of the value of an `ok`.
    #[must_use]
    pub fn with_output(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// Adds a piece of free metadata.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: Value) -> Self {
        self.attributes.insert(name.into(), value);
        self
    }

    /// Sets the upper bound of one execution. Zero makes the definition unusable.
    #[must_use]
    pub fn with_max_execution(mut self, bound: Duration) -> Self {
        self.max_execution = Some(bound);
        self
    }

    /// Returns a digest of the whole definition, to recognise the definition that was approved. It
    /// changes with every part of the definition, also with a description inside a schema.
    ///
    /// # Shape
    /// `sha256:` and, in hex, the digest of the [`canonical`](Self::canonical) form.
    #[must_use]
    pub fn hash(&self) -> String {
        format!("sha256:{}", hex(&Sha256::digest(self.canonical())))
    }

    /// Returns the definition as canonical JSON: no spaces, and members in the order of their
    /// names' bytes. This is RFC 8785 except for numbers, which keep their digits: as doubles, two
    /// different large numbers could be equal.
    #[must_use]
    pub fn canonical(&self) -> String {
        // Cannot fail: a definition contains only strings, numbers and JSON. A program with the
        // feature `preserve_order` of serde_json has objects in another order.
        let mut value = serde_json::to_value(self).unwrap_or_default();
        value.sort_all_objects();
        value.to_string()
    }

    /// Returns true if the tool declares its needs, even if it declares that it has none.
    #[must_use]
    pub fn declares_needs(&self) -> bool {
        !self.needs.is_empty() || self.extensions.contains_key(NEEDS_NOTHING)
    }

    /// Refuses a definition whose calls could never succeed.
    ///
    /// # Errors
    /// [`Error::is_definition`].
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Error> {
        check_name(&self.name)?;
        let types = self.parameters.as_ref().and_then(|schema| schema.get("type"));
        let problem = if self.max_execution.is_some_and(|bound| bound.is_zero()) {
            "its `max_execution` is zero, so every call would time out at once".to_owned()
        } else if let Some(types) = types.filter(|types| !has_object(types)) {
            format!("its `parameters` have the type {types}, but arguments are always an object")
        } else {
            return Ok(());
        };
        Err(Error::definition(&self.name, problem))
    }
}

/// Returns true if the `type` of a JSON Schema allows an object. Also returns true for a `type` of
/// the wrong form, which the schema compiler handles.
fn has_object(types: &Value) -> bool {
    match types {
        Value::String(only) => only == "object",
        Value::Array(several) => several.iter().any(|one| one == "object"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

/// The extension with which a tool declares that it needs nothing; its value is `[]`. An empty
/// `needs` alone could also mean that the tool declares nothing.
const NEEDS_NOTHING: &str = "needs";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hex digits of the digest at the end of a shortened name.
const DIGEST: usize = 10;

/// Shortens a name that is too long to its beginning and a digest of the whole name, so that the
/// result is stable and unique. Returns `None` for a name that is short enough.
#[doc(hidden)]
pub fn shortened(name: &str) -> Option<String> {
    let beginning: String = name.chars().take(Definition::MAX_NAME - DIGEST - 1).collect();
    let digest = hex(&Sha256::digest(name)[..DIGEST / 2]);
    (name.len() > Definition::MAX_NAME).then(|| format!("{beginning}_{digest}"))
}

/// Refuses a name that model providers would refuse.
#[doc(hidden)]
pub fn check_name(name: &str) -> Result<(), Error> {
    let fits = (1..=Definition::MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if fits || !enforced!(Names) { Ok(()) } else { Err(Error::bad_name(name)) }
}

/// The author's claims about a tool's effects, for planning and display only.
///
/// # Defaults
/// All false: nothing is claimed.
///
/// # Shape
/// As JSON: `{"read_only", "idempotent", "destructive", "open_world"}`; what is absent is false.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Hints {
    /// Changes nothing outside its cell.
    pub read_only: bool,
    /// A second call with the same arguments changes nothing further.
    pub idempotent: bool,
    /// May destroy something for good.
    pub destructive: bool,
    /// Interacts with an open set of external systems.
    pub open_world: bool,
}

/// The optional checks that a handler implements. The host calls no others.
///
/// # Defaults
/// All false.
///
/// # Shape
/// As JSON: `{"validate", "visible"}`; what is absent is false.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Checks {
    /// The handler checks arguments beyond their schema.
    pub validate: bool,
    /// The handler decides whether the tool is offered.
    pub visible: bool,
}

/// One thing that a tool needs.
///
/// A need grants nothing: the tool gets what it declares only if the component's
/// [`Grants`](crate::grants::Grants) allow it.
/// [`Suggestion::add_need`](crate::grants::rights::Suggestion::add_need) finds the grant for it. A
/// tool with a need of another kind, or with a pattern that cannot be read, is not usable.
/// [`Grants`](crate::grants::Grants#needs) lists the kinds and the form of their patterns.
///
/// # Shape
/// As JSON: `{"kind", "pattern", "reason"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Need {
    /// The kind, such as `http` or `kv`.
    pub kind: String,
    /// A pattern for the things of this kind that the tool needs, in the form for this kind.
    pub pattern: String,
    /// The reason, in one sentence.
    pub reason: String,
}

impl Need {
    /// Creates a need.
    pub fn new(
        kind: impl Into<String>,
        pattern: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self { kind: kind.into(), pattern: pattern.into(), reason: reason.into() }
    }
}

/// Serializes durations as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests;
