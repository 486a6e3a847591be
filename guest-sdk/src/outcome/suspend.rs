//! The two shapes that end or suspend the loop around a tool.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::json::Json;
use crate::schema;

/// A question to a person.
///
/// The tool ends with it. Once the person has answered, the tool is called again with the same arguments, and
/// [`Context::answer`](crate::Context::answer) and [`Context::state`](crate::Context::state) have the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub(crate) question: String,
    pub(crate) options: Option<Json>,
    pub(crate) answer_schema: Option<Json>,
    pub(crate) state: Option<Json>,
}

impl Question {
    /// A question in words.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), options: None, answer_schema: None, state: None }
    }

    /// Adds what to offer, in any JSON that the person's side understands: a list of choices for instance.
    #[must_use]
    pub fn options(mut self, options: impl Serialize) -> Self {
        self.options = Some(Json::of(&options));
        self
    }

    /// Adds the JSON Schema of the answer.
    #[must_use]
    pub fn answer_schema<T: JsonSchema>(mut self) -> Self {
        self.answer_schema = Some(Json::of(&schema::of_input::<T>()));
        self
    }

    /// Adds what the tool wants to find again when it is called with the answer: 64 KiB at most. It travels through the
    /// caller. Not every host seals it, so no secrets; and the same answer may come twice, as nobody keeps a list.
    #[must_use]
    pub fn state(mut self, state: impl Serialize) -> Self {
        self.state = Some(Json::of(&state));
        self
    }

    /// The question in words.
    pub fn text(&self) -> &str {
        &self.question
    }

    /// What is offered, if anything.
    pub fn offered(&self) -> Option<Value> {
        self.options.as_ref()?.parse()
    }

    /// The state that was left, if any.
    pub fn left_state(&self) -> Option<Value> {
        self.state.as_ref()?.parse()
    }
}

impl From<&str> for Question {
    fn from(question: &str) -> Self {
        Self::new(question)
    }
}

impl From<String> for Question {
    fn from(question: String) -> Self {
        Self::new(question)
    }
}

/// The end of the loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Halt {
    pub(crate) reason: String,
    pub(crate) result: Json,
}

impl Halt {
    /// Ends the loop with this result.
    ///
    /// `reason` is any word but the host's own, which the host answers with an error: `ask_user`, `max_turns`,
    /// `halt_when`, `tool_error`, `cancelled`, `completed`.
    pub fn new(reason: impl Into<String>, result: impl Serialize) -> Self {
        Self { reason: reason.into(), result: Json::of(&result) }
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The result again. None if it could not be written as JSON.
    pub fn result(&self) -> Option<Value> {
        self.result.parse()
    }
}
