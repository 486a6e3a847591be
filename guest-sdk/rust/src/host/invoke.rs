//! Calls other tools of the host by name.
//!
//! ```
//! use serde_json::{Value, json};
//! use toolcell_guest::{Failure, invoke};
//!
//! /// The weather of a place that is known by its name.
//! fn weather(place: &str) -> Result<Value, Failure> {
//!     let found: Value = invoke::call("find_place", json!({"name": place}))?;
//!     Ok(invoke::call("weather_at", json!({"at": found["at"]}))?)
//! }
//!
//! invoke::answer_with(|tool, arguments| match tool {
//!     "find_place" => Ok(json!({"at": [52.5, 13.4]})),
//!     _ => Ok(json!(format!("sunny at {}", arguments["at"]))),
//! });
//! assert_eq!(weather("Berlin"), Ok(json!("sunny at [52.5,13.4]")));
//! ```
//!
//! Needs the grant `invoke`: `NAME` or `PREFIX*`. The other tool runs in its own cell, within the
//! remaining limits of this call, and with no rights that this tool does not have, unless the grant
//! says `own NAME`. In native tests, [`answer_with`] sets the function that answers.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::imports;

/// The reason why a call of another tool has no value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The tool does not have the grant. The text says what the operator can grant.
    Denied(String),
    /// The chain of calls would be too long, or contain too many calls.
    Limit(String),
    /// The host has no tools to call.
    Unavailable(String),
    /// The arguments cannot be written as JSON, or the value does not have the shape of the
    /// requested type.
    Unexpected(String),
    /// The other tool reports a failure: `{"message", "data"?, "retryable"?, "retry_after_ms"?}`.
    Failed(Value),
    /// The other tool asks a person: `{"question", "options"?, "answer_schema"?}`. To pass the
    /// question on, return it as a question of this tool.
    AskUser(Value),
    /// The other tool stops the agent loop: `{"reason", "result"}`.
    Halt(Value),
    /// The other tool gave no valid answer: `{"reason", "message", …}`. With `not_found`, no such
    /// tool exists.
    ToolError(Value),
    /// The host refused the call: `{"kind", "message", …}`. With `invalid_arguments`, they do not
    /// fit the tool's schema.
    Refused(Value),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            |value: &Value, member: &str| value[member].as_str().unwrap_or_default().to_owned();
        match self {
            Self::Denied(sentence)
            | Self::Limit(sentence)
            | Self::Unavailable(sentence)
            | Self::Unexpected(sentence) => f.write_str(sentence),
            Self::Failed(error) => f.write_str(&text(error, "message")),
            Self::AskUser(question) => {
                write!(f, "the other tool asks a person: {}", text(question, "question"))
            }
            Self::Halt(halt) => {
                write!(f, "the other tool stops the loop: {}", text(halt, "reason"))
            }
            Self::ToolError(error) => {
                write!(f, "the other tool failed: {}", text(error, "message"))
            }
            Self::Refused(refusal) => {
                write!(f, "the host refused the call: {}", text(refusal, "message"))
            }
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(crate) fn unexpected_value(error: &serde_json::Error) -> Self {
        Self::Unexpected(format!("the value of the other tool has an unexpected shape: {error}"))
    }
}

/// Calls a tool with `arguments` as a JSON object and returns its value.
///
/// # Errors
/// [`Error`].
pub fn call<T: DeserializeOwned>(name: &str, arguments: impl Serialize) -> Result<T, Error> {
    let arguments = serde_json::to_value(arguments).map_err(|error| {
        Error::Unexpected(format!("the arguments cannot be written as JSON: {error}"))
    })?;
    let value = imports::invoke(name, arguments)?["value"].take();
    // Written as text only if it does not fit: without `exact-numbers` that can change a number.
    T::deserialize(&value)
        .or_else(|error| crate::json::read(&value.to_string()).map_err(|_| error))
        .map_err(|error| Error::unexpected_value(&error))
}

/// For native tests: sets the function that answers the calls of this thread, from the tool's name
/// and its arguments. In a cell it does nothing.
pub fn answer_with(answer: impl Fn(&str, &Value) -> Result<Value, Error> + 'static) {
    imports::answer_calls_with(answer);
}
