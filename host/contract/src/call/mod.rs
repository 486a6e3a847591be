//! A tool call as data: the call, its context, its options, its result.
//!
//! An embedder (the program that uses this library) or a provider's format (the JSON of one model
//! vendor) builds a [`ToolCall`] from the answer of a model: an id, a tool's name, and arguments as
//! unchecked JSON text. [`CallContext`] says where the call comes from (session, tenant, metadata);
//! the handler (the code of the tool) gets it unchanged, and a field that the caller left out stays
//! absent. `CallOptions` add limits, an abort signal and an overlay, which is a set of rules that
//! can only narrow the tool's rights. The executor takes all of these and always returns a
//! [`Completion`]: a [`CallResult`] and the usage, which counts the resources that the call took.
//!
//! Not here: the steps of a call, in `executor`.
//!
//! Source: docs/contract.md, section 2.

mod abort;
#[doc(hidden)]
pub mod forms;
pub mod usage;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

pub use abort::{AbortSignal, CallCanceller};

use super::json::{Json, present};
use super::outcome::refusal::Refusal;
use super::outcome::tool_error::ToolError;
use super::outcome::{Halt, HandlerError, Outcome, Output, Question};
use usage::Usage;

/// One call as a model provider sent it, not checked yet.
///
/// # Shape
/// As JSON: `{"id", "name", "arguments"}`, the arguments as a string of JSON text. Read from
/// JSON they may also be an object, which must name no member twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text, not checked yet.
    #[serde(deserialize_with = "text_or_tree")]
    pub arguments: String,
}

/// Reads arguments as text. A JSON string is the text, unchecked. Any other value must be a valid
/// [`Json`], and its text is kept as it is.
fn text_or_tree<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let json = Json::deserialize(deserializer)?;
    if json.as_str().starts_with('"') {
        serde_json::from_str(json.as_str()).map_err(de::Error::custom)
    } else {
        Ok(json.into_string())
    }
}

impl ToolCall {
    /// Creates a call with arguments as JSON text.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }

    /// Creates a call with arguments as a value.
    pub fn with_value(id: impl Into<String>, name: impl Into<String>, arguments: &Value) -> Self {
        Self::new(id, name, arguments.to_string())
    }
}

/// The context of a call: where it comes from. The handler gets it unchanged.
///
/// # Defaults
/// Every field is absent; the host adds none.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct CallContext {
    /// The caller's session.
    pub session_id: Option<String>,
    /// The provider's request.
    pub request_id: Option<String>,
    /// The conversation.
    pub thread_id: Option<String>,
    /// The run of calls that this one belongs to.
    pub run_id: Option<String>,
    /// The tenant that the call is for. Once an executor defines a tenant
    /// (`Executor::with_tenant`), it refuses a call without one ([`Refusal::NoTenant`]), unless
    /// `Executor::with_anonymous` allows it.
    pub tenant: Option<String>,
    /// Free JSON of the caller.
    pub metadata: Option<Json>,
    /// The number of this attempt, counted from 1; absent if the tool is not retried.
    pub attempt: Option<u32>,
    /// The answer to the question of an earlier call.
    pub resume: Option<Resume>,
    /// Fields of later contract versions, passed through.
    pub extensions: BTreeMap<String, Json>,
}

/// A person's answer to the question of an earlier call. The new call has the same tool and
/// arguments as the earlier one, and a different id.
///
/// # Shape
/// As JSON: `{"answer", "state"?}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// The answer.
    pub answer: Json,
    /// The state that came with the question, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub state: Option<Json>,
}

/// The result of a call: the handler's answer, the executor's error, or the host's refusal.
///
/// # Shape
/// As JSON: an object with one member, `ok`, `error`, `ask_user` or `halt` ([`Outcome`]),
/// `tool_error` ([`ToolError`]) or `refusal` ([`Refusal`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", from = "WrittenResult")]
pub enum CallResult {
    /// The handler gave no valid answer.
    ToolError(ToolError),
    /// The host refused the call; the handler did not run.
    Refusal(Refusal),
    /// The handler answered.
    #[serde(untagged)]
    Outcome(Outcome),
}

impl CallResult {
    /// Returns the handler's value, if it answered `ok`.
    #[must_use]
    pub fn value(&self) -> Option<&Json> {
        self.output().map(|output| &output.value)
    }

    /// Returns the handler's output, if it answered `ok`: the value and what comes with it.
    ///
    /// ```
    /// use serde_json::json;
    /// # use toolcell_contract::call::CallResult;
    /// # use toolcell_contract::outcome::refusal::Refusal;
    /// # use toolcell_contract::outcome::{Outcome, Output};
    ///
    /// let output = Output::new(json!(42));
    /// let result = CallResult::Outcome(Outcome::Ok(output.clone()));
    /// assert_eq!(result.output(), Some(&output));
    /// assert_eq!(CallResult::Refusal(Refusal::NotVisible).output(), None);
    /// ```
    #[must_use]
    pub fn output(&self) -> Option<&Output> {
        if let Self::Outcome(Outcome::Ok(output)) = self { Some(output) } else { None }
    }

    /// Returns its name in JSON and in traces: `ok`, `error`, `ask_user`, `halt`, `tool_error` or
    /// `refusal`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Outcome(Outcome::Ok(_)) => "ok",
            Self::Outcome(Outcome::Error(_)) => "error",
            Self::Outcome(Outcome::AskUser(_)) => "ask_user",
            Self::Outcome(Outcome::Halt(_)) => "halt",
            Self::ToolError(_) => "tool_error",
            Self::Refusal(_) => "refusal",
        }
    }
}

/// A result in its JSON form: an object with one member, which names the kind.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenResult {
    Ok(Output),
    Error(HandlerError),
    AskUser(Question),
    Halt(Halt),
    ToolError(ToolError),
    Refusal(Refusal),
}

impl From<WrittenResult> for CallResult {
    fn from(written: WrittenResult) -> Self {
        match written {
            WrittenResult::Ok(output) => Self::Outcome(Outcome::Ok(output)),
            WrittenResult::Error(error) => Self::Outcome(Outcome::Error(error)),
            WrittenResult::AskUser(question) => Self::Outcome(Outcome::AskUser(question)),
            WrittenResult::Halt(halt) => Self::Outcome(Outcome::Halt(halt)),
            WrittenResult::ToolError(error) => Self::ToolError(error),
            WrittenResult::Refusal(refusal) => Self::Refusal(refusal),
        }
    }
}

/// The end of a call: its result and its usage. `Executor::call` always returns one.
///
/// # Shape
/// As JSON: `{"id", "tool", "outcome": {"ok" | "error" | "ask_user" | "halt" | "tool_error" |
/// "refusal": …}, "usage": {…}, "attributes"?}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Completion {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The result of the call.
    #[serde(rename = "outcome")]
    pub result: CallResult,
    /// The usage: the resources that the call took.
    pub usage: Usage,
    /// Free metadata of the tool's definition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
}

impl Completion {
    #[doc(hidden)]
    #[must_use]
    pub fn new(
        id: String,
        tool: String,
        result: CallResult,
        usage: Usage,
        attributes: BTreeMap<String, Value>,
    ) -> Self {
        Self { id, tool, result, usage, attributes }
    }

    /// Returns the handler's output, if it answered `ok`. A question and a halt have none, and are
    /// no [`failure`](Self::failure) either.
    #[must_use]
    pub fn output(&self) -> Option<&Output> {
        self.result.output()
    }
}
