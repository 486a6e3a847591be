//! A call as a model sent it, and its check before a step makes it.
//!
//! A loop passes a provider's payload or a [`ToolCall`] to the stepper as a [`RawCall`]. Parsing
//! returns the call and, if its arguments are not a JSON object, the problem; the executor then
//! refuses the call in words for the model. A call that could not be answered is [`Malformed`] and
//! ends the turn: one without a name, or with wrong arguments and no id. Missing or blank arguments
//! count as `{}`, and a missing id stays missing. Arguments over the limit are not parsed.
//!
//! Source: docs/contract.md, section 6, stage 1.

use serde_json::{Map, Value};
use toolcell_contract::call::{Resume, ToolCall};
use toolcell_contract::json::{Json, JsonFault, check, or_empty_object};

/// A call as a model sent it, before it is checked.
///
/// # Shape
/// From JSON: `{"id"?, "name", "args" | "arguments"}`. The arguments are an object or the JSON text
/// of one. Missing arguments, `null` and blank text count as `{}`, which is what providers send for
/// a tool without parameters. Other arguments are refused in a message to the model; without an id,
/// they end the turn ([`AbortStatus::Error`](crate::step::AbortStatus::Error)).
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct RawCall {
    /// The provider's id of the call.
    pub id: Option<String>,
    /// The tool's name.
    pub name: Option<String>,
    /// The arguments, in any form.
    pub arguments: Option<Value>,
    /// The answer to the question of an earlier call.
    pub resume: Option<Resume>,
}

impl RawCall {
    /// Adds the answer to the question of an earlier call.
    #[must_use]
    pub fn with_resume(mut self, resume: Resume) -> Self {
        self.resume = Some(resume);
        self
    }

    /// Reads the call. Text that is longer than `limit` bytes is not parsed. The executor refuses
    /// such text, and arguments that are not an object, in words for the model; the history then
    /// shows empty arguments.
    ///
    /// Fails for a call without a name, or with wrong arguments and without an id, because the
    /// model could not relate an answer to its call.
    pub(super) fn parse(self, limit: u64) -> Result<ParsedCall, Malformed> {
        let Some(name) = self.name.filter(|name| !name.trim().is_empty()) else {
            return Err(Malformed::NoName);
        };
        let text = match self.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(
                value @ (Value::Object(_) | Value::Bool(_) | Value::Number(_) | Value::Array(_)),
            ) => value.to_string(),
        };
        let text = or_empty_object(text);
        let is_short = text.len() as u64 <= limit;
        let problem = if is_short { object(&text).err() } else { None };
        match problem {
            Some(problem) if self.id.as_ref().is_none_or(String::is_empty) => Err(problem),
            problem => {
                let call = ToolCall::new(self.id.clone().unwrap_or_default(), name, text);
                Ok(ParsedCall {
                    call,
                    id: self.id,
                    is_read: is_short && problem.is_none(),
                    problem,
                    resume: self.resume,
                })
            }
        }
    }
}

/// Checks that a text is one JSON object.
fn object(text: &str) -> Result<(), Malformed> {
    check(text)?;
    if text.trim_start().starts_with('{') { Ok(()) } else { Err(Malformed::NoObject) }
}

impl From<Value> for RawCall {
    fn from(payload: Value) -> Self {
        let Value::Object(mut payload) = payload else { return Self::default() };
        let mut text = |key| {
            if let Some(Value::String(text)) = payload.remove(key) { Some(text) } else { None }
        };
        let (id, name) = (text("id"), text("name"));
        let arguments = payload.remove("args").or_else(|| payload.remove("arguments"));
        Self { id, name, arguments, resume: None }
    }
}

impl From<&Value> for RawCall {
    fn from(payload: &Value) -> Self {
        payload.clone().into()
    }
}

impl From<ToolCall> for RawCall {
    fn from(call: ToolCall) -> Self {
        let ToolCall { id, name, arguments } = call;
        let id = Some(id).filter(|id| !id.is_empty());
        Self { id, name: Some(name), arguments: Some(Value::String(arguments)), resume: None }
    }
}

/// A call with a name.
#[derive(Debug)]
pub(super) struct ParsedCall {
    pub(super) call: ToolCall,
    pub(super) id: Option<String>,
    /// True if the arguments were parsed and are an object.
    is_read: bool,
    /// The reason why they are not an object. Absent for arguments that are too long to be parsed.
    pub(super) problem: Option<Malformed>,
    pub(super) resume: Option<Resume>,
}

impl ParsedCall {
    /// Returns the arguments as the model wrote them: as text, because a tree takes many times its
    /// memory.
    pub(super) fn arguments(&self) -> Json {
        let text = if self.is_read { self.call.arguments.as_str() } else { "{}" };
        Json::parse(text.to_owned()).unwrap_or_else(|_| Json::from(Value::Object(Map::new())))
    }
}

/// The reason why a payload is not a call that can be answered.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("it names no tool")]
    NoName,
    #[error("its arguments are not an object")]
    NoObject,
    #[error("its arguments are {0}")]
    NotJson(#[from] JsonFault),
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn call_needs_a_name_and_object_arguments() {
        for (payload, expected) in rows::<(Value, Result<Value, &str>)>("step/raw_call", "calls") {
            match (RawCall::from(&payload).parse(100), expected) {
                (Ok(judged), Ok(expected)) => {
                    assert_eq!(judged.arguments().to_value(), expected, "{payload}")
                }
                (Err(malformed), Err(needle)) => {
                    assert!(malformed.to_string().contains(needle), "{malformed}")
                }
                (other, _) => panic!("{payload}: {other:?}"),
            }
        }
    }

    #[test]
    fn ids_are_not_invented() {
        for (call, expected) in [
            (RawCall::from(json!({"name": "t", "id": "a"})), Some("a")),
            (RawCall::from(json!({"name": "t"})), None),
            (ToolCall::new("a", "t", "").into(), Some("a")),
            (ToolCall::new("", "t", "").into(), None),
        ] {
            let judged = call.parse(100).unwrap();
            assert_eq!(judged.id.as_deref(), expected);
            assert_eq!(judged.call.id, expected.unwrap_or(""));
        }
    }
}
