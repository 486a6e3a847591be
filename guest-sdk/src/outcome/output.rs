//! The result of a successful call.

use serde::Serialize;
use serde_json::Value;

use super::Part;
use crate::json::Json;

/// A value, and what goes beside it.
///
/// ```
/// use toolcell_guest::{Output, Part};
/// let output = Output::new(42).message("worked it out").part(Part::text("six times seven")).end_turn();
/// assert_eq!(output.value(), Some(42.into()));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub(crate) value: Json,
    pub(crate) message: Option<String>,
    pub(crate) parts: Vec<Part>,
    pub(crate) end_turn: bool,
}

impl Output {
    /// A value alone. One that cannot be written as JSON makes the outcome an error that says so.
    pub fn new(value: impl Serialize) -> Self {
        Self { value: Json::of(&value), message: None, parts: Vec::new(), end_turn: false }
    }

    /// Adds a line for a person. Where the value is null, a model gets it instead.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Adds a piece of content after the ones already there.
    #[must_use]
    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Says that the model need not speak after this.
    #[must_use]
    pub fn end_turn(mut self) -> Self {
        self.end_turn = true;
        self
    }

    /// The value again. None if it could not be written as JSON.
    pub fn value(&self) -> Option<Value> {
        self.value.parse()
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.value.problem()
    }
}
