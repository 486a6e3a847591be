//! The result of a successful call.

use serde::Serialize;
use serde_json::Value;

use super::Part;
use crate::json::Json;

/// The value of a successful call, with an optional message and further content.
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
    /// An output with only a value. If it cannot be written as JSON, the outcome becomes an error
    /// that says so.
    pub fn new(value: impl Serialize) -> Self {
        Self { value: Json::of(&value), message: None, parts: Vec::new(), end_turn: false }
    }

    /// Adds a line for a person. If the value is null, the model gets this line instead.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Appends a piece of content.
    #[must_use]
    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Tells the loop that the model does not have to continue after this result.
    #[must_use]
    pub fn end_turn(mut self) -> Self {
        self.end_turn = true;
        self
    }

    /// The value. `None` if it cannot be written as JSON.
    pub fn value(&self) -> Option<Value> {
        self.value.parse()
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.value.problem()
    }
}
