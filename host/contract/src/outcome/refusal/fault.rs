//! One fault of a value: its place, a stable code, and the values that a program needs.
//!
//! A check of arguments, of a result or of an answer returns [`Fault`]s. The place is a JSON
//! pointer; the [`FaultKind`] is the code with its data, such as the allowed values of an
//! enumeration; optional are the value found, the nearest allowed one and a correction. Displayed,
//! a fault is a sentence that a model can act on. JSON with an unknown code, from a later version,
//! is read as a rule with its sentence. The check that makes a fault bounds its size.
//!
//! Not here: the sentences, in `text`; the checks, in `schema` and `executor`.

mod text;

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Number, Value};

use super::Refusal;
use crate::json::{JsonFault, is_default};
use crate::names::shorten;

/// Characters of one problem that a handler's own check reports. The rest is cut.
pub(super) const MAX_PROBLEM: usize = 1000;

/// The number of members that are named where one is missing, and the characters of each name.
const MAX_NAMED: usize = 6;
const NAME: usize = 60;

/// One fault of a value.
///
/// # Shape
/// As JSON: `{"path", "code", …, "in_alternative"?, "expected", "actual"?, "nearest"?, "hint"?}`.
/// `code` and the members after it are those of the [`FaultKind`]; `expected` is the sentence that
/// [`expected`](Self::expected) returns. Without a known `code`, a fault is read as
/// [`FaultKind::Rule`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Fault {
    /// The place as a JSON pointer (RFC 6901); empty for the whole value.
    pub path: String,
    /// The kind of the fault.
    #[serde(flatten, deserialize_with = "known_or_rule")]
    pub kind: FaultKind,
    /// True if the value may have several forms and this is a fault against the form that fits
    /// best.
    #[serde(default)]
    pub in_alternative: bool,
    /// The value that was found, shortened: JSON text, or its kind in words.
    pub actual: Option<String>,
    /// The allowed value or member name that is most similar to the one found: the value itself,
    /// without quotes.
    pub nearest: Option<String>,
    /// The correction, if it is known: "send a JSON array, not text".
    pub hint: Option<String>,
}

/// The kinds of faults of a value.
///
/// # Shape
/// As JSON, within the [`Fault`]: `code`, which is the variant's name in snake case, and its
/// fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// A required member is missing. The fault's path names the member's place.
    Required {
        /// Its name, shortened to 60 characters.
        member: String,
    },
    /// A member that the schema does not allow.
    UnknownMember {
        /// Its name, shortened to 60 characters.
        member: String,
    },
    /// The value has another type.
    Type {
        /// The types that are allowed, by their names in JSON Schema.
        types: Vec<String>,
    },
    /// The value is not one of the allowed values.
    Enum {
        /// The allowed values: at most 12, each of at most 60 characters as JSON.
        allowed: Vec<Value>,
        /// The number of allowed values that are not listed.
        #[serde(default, skip_serializing_if = "is_default")]
        more: usize,
    },
    /// The number is too small or too large. At least one bound is given.
    Range {
        /// The smallest number allowed.
        #[serde(skip_serializing_if = "Option::is_none")]
        minimum: Option<Number>,
        /// Every allowed number is larger than this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        exclusive_minimum: Option<Number>,
        /// The largest number allowed.
        #[serde(skip_serializing_if = "Option::is_none")]
        maximum: Option<Number>,
        /// Every allowed number is smaller than this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        exclusive_maximum: Option<Number>,
    },
    /// Too few or too many characters, items or members. At least one bound is given.
    Length {
        /// The unit of the count.
        unit: LengthUnit,
        /// The smallest count allowed.
        #[serde(skip_serializing_if = "Option::is_none")]
        minimum: Option<u64>,
        /// The largest count allowed.
        #[serde(skip_serializing_if = "Option::is_none")]
        maximum: Option<u64>,
    },
    /// The text does not match a regular expression.
    Pattern {
        /// The regular expression (ECMA 262).
        pattern: String,
    },
    /// The number is not a multiple of another.
    MultipleOf {
        /// The other number.
        multiple_of: Number,
    },
    /// Two items of the array are equal.
    UniqueItems,
    /// The value has none of several allowed forms.
    Alternatives {
        /// The first fault against each alternative, in their order: at most 12. Empty for
        /// alternatives within alternatives.
        alternatives: Vec<FaultKind>,
    },
    /// The value matches several forms, but must match exactly one.
    Ambiguous,
    /// The schema allows no value here.
    Forbidden,
    /// Another rule of the schema.
    Schema {
        /// The rule as a sentence, or a note that the value is too large to name the rule.
        message: String,
    },
    /// The text is not JSON.
    Syntax {
        /// The message of the parser.
        message: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// JSON that is nested too deep.
    TooDeep {
        /// The number of levels allowed.
        maximum: usize,
    },
    /// JSON that holds too many values.
    TooManyValues {
        /// The number of values allowed.
        maximum: usize,
    },
    /// The value takes too long to check. A shorter, smaller or flatter value can be checked.
    TooCostly,
    /// A rule outside the schema: of the tool, the application or the host.
    Rule {
        /// The text of the rule. In JSON this is the fault's `expected`.
        #[serde(rename = "expected")]
        message: String,
    },
    /// Not a fault itself: the number of faults that are not listed.
    More {
        /// The number of these faults.
        count: usize,
    },
}

/// The unit that a [`FaultKind::Length`] counts.
///
/// # Shape
/// As JSON: the variant's name in snake case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthUnit {
    /// Bytes of the text.
    Bytes,
    /// Characters of a string.
    Characters,
    /// Items of an array.
    Items,
    /// Members of an object.
    Members,
}

impl Fault {
    /// Creates a fault against a rule of the caller, at this JSON pointer (empty for the whole
    /// value), with a sentence about what is expected.
    pub fn new(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::of_kind(path, FaultKind::Rule { message: expected.into() })
    }

    /// Creates a fault of this kind at this JSON pointer, empty for the whole value.
    pub fn of_kind(path: impl Into<String>, kind: FaultKind) -> Self {
        Self {
            path: path.into(),
            kind,
            in_alternative: false,
            actual: None,
            nearest: None,
            hint: None,
        }
    }

    /// Creates the faults that a handler's own check reports. Their number and length are bounded,
    /// because the texts are untrusted.
    #[doc(hidden)]
    pub fn of_handler(problems: Vec<String>) -> Vec<Self> {
        let more = problems.len().saturating_sub(Refusal::MAX_FAULTS);
        let listed = problems.iter().take(Refusal::MAX_FAULTS);
        let mut faults: Vec<_> =
            listed.map(|problem| Self::new("", shorten(problem, MAX_PROBLEM))).collect();
        if more > 0 {
            faults.push(Self::of_kind("", FaultKind::More { count: more }));
        }
        faults
    }

    /// Sets the value that was found, which the caller has shortened.
    #[must_use]
    pub fn with_actual(mut self, actual: impl Into<String>) -> Self {
        self.actual = Some(actual.into());
        self
    }

    /// Sets the correction.
    #[must_use]
    #[doc(hidden)]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets `actual` to the names of the members that an object has, for a missing member.
    #[doc(hidden)]
    pub fn with_members(self, members: &Map<String, Value>) -> Self {
        let named = members.keys().take(MAX_NAMED).map(|name| format!("`{}`", shorten(name, NAME)));
        let more = members.len().saturating_sub(MAX_NAMED);
        let more = (more > 0).then(|| format!("{more} more"));
        let names: Vec<_> = named.chain(more).collect();
        self.with_actual(match names.as_slice() {
            [] => "an empty object".to_owned(),
            names => format!("an object with {}", names.join(", ")),
        })
    }

    /// Returns what is expected, as a sentence.
    #[must_use]
    pub fn expected(&self) -> String {
        let prefix = if self.in_alternative { "in the closest alternative: " } else { "" };
        format!("{prefix}{}", self.kind)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at `{}`: ", self.path)?;
        }
        f.write_str(&self.expected())?;
        if let Some(actual) = &self.actual {
            write!(f, ", got {actual}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, " (did you mean `{nearest}`?)")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl FaultKind {
    /// The value must have the type of this name.
    #[doc(hidden)]
    pub fn of_type(name: &str) -> Self {
        Self::Type { types: vec![name.to_owned()] }
    }

    /// The minimum of a length.
    #[doc(hidden)]
    pub fn at_least(minimum: u64, unit: LengthUnit) -> Self {
        Self::Length { unit, minimum: Some(minimum), maximum: None }
    }

    /// The maximum of a length.
    #[doc(hidden)]
    pub fn at_most(maximum: u64, unit: LengthUnit) -> Self {
        Self::Length { unit, minimum: None, maximum: Some(maximum) }
    }
}

impl From<JsonFault> for FaultKind {
    fn from(fault: JsonFault) -> Self {
        match fault {
            JsonFault::Syntax { message, line, column } => Self::Syntax { message, line, column },
            JsonFault::TooDeep(maximum) => Self::TooDeep { maximum },
            JsonFault::TooManyNodes(maximum) => Self::TooManyValues { maximum },
        }
    }
}

#[derive(Serialize)]
struct FaultView<'a> {
    path: &'a str,
    #[serde(flatten)]
    kind: &'a FaultKind,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_alternative: bool,
    /// Absent for a rule, whose message is already written as `expected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { path, kind, in_alternative, actual, nearest, hint } = self;
        let expected = (!matches!(kind, FaultKind::Rule { .. })).then(|| self.expected());
        let in_alternative = *in_alternative;
        let [actual, nearest, hint] = [actual, nearest, hint].map(Option::as_deref);
        FaultView { path, kind, in_alternative, expected, actual, nearest, hint }
            .serialize(serializer)
    }
}

/// Reads the kind of a fault. A code of a later version is read as a rule with its sentence.
fn known_or_rule<'de, D: Deserializer<'de>>(members: D) -> Result<FaultKind, D::Error> {
    let members = Value::deserialize(members)?;
    FaultKind::deserialize(&members).or_else(|_| {
        let sentence = members.get("expected").and_then(Value::as_str);
        let message = sentence.ok_or_else(|| D::Error::missing_field("expected"))?.to_owned();
        Ok(FaultKind::Rule { message })
    })
}
