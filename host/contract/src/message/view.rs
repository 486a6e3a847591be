//! Flattens the completion of a call (its result and usage) into one object, for hosts that need
//! neither events nor a policy.
//!
//! An embedder (the program that uses this library) that makes single calls passes a [`Completion`]
//! and the tool's definition to [`ResultView::of`]. The [`ResultView`] has `success`, the value, a
//! line for a person, and every fault in words. A question and a halt count as success.
//! [`ResultView::to_text`] gives the text for a model.
//!
//! Source: docs/contract.md, sections 4 (`{success, result?, message?}`), 5 (`{success, result,
//! errors[], attributes}`) and 9.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Message;
use super::encode::{failure_text, plain};
use super::failure::Failure;
use crate::call::{CallResult, Completion};
use crate::definition::Definition;
use crate::json::Json;
use crate::outcome::Outcome;

/// The result of a call.
///
/// # Shape
/// As JSON: `{"tool_call_id", "tool", "success", "result", "message"?, "data"?, "errors",
/// "attributes"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResultView {
    /// The call's id.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool: String,
    /// True if the handler answered ok, with a question or with a halt.
    pub success: bool,
    /// The value, or the result of a halt. In JSON, `null` for a failure and for a question.
    #[serde(default)]
    pub result: Option<Json>,
    /// A text for a person: the handler's own, its question, or the failure's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The data that a failed handler returned with its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    /// All faults, in words for a model. Joined by `; ` they are `message`.
    pub errors: Vec<String>,
    /// Free metadata of the tool's definition.
    pub attributes: BTreeMap<String, Value>,
}

impl ResultView {
    /// Creates the view of a completion of a call of this tool.
    #[must_use]
    pub fn of(completion: &Completion, definition: &Definition) -> Self {
        let failure = completion.failure();
        let (result, message) = match &completion.result {
            CallResult::Outcome(Outcome::Ok(output)) => {
                (Some(output.value.clone()), output.message.clone())
            }
            CallResult::Outcome(Outcome::AskUser(ask)) => (None, Some(ask.question.clone())),
            CallResult::Outcome(Outcome::Halt(halt)) => (Some(halt.result.clone()), None),
            CallResult::Outcome(Outcome::Error(_))
            | CallResult::ToolError(_)
            | CallResult::Refusal(_) => (None, failure.as_ref().map(ToString::to_string)),
        };
        Self {
            tool_call_id: completion.id.clone(),
            tool: completion.tool.clone(),
            success: failure.is_none(),
            result,
            message,
            data: failure.as_ref().and_then(Failure::data).map(Cow::into_owned),
            errors: failure.map(|failure| failure.errors()).unwrap_or_default(),
            attributes: definition.attributes.clone(),
        }
    }

    /// Returns the view as text for a model: a failure as `{"error": "a; b", "data"?}`, a string as
    /// it is, a message without a value as it is, anything else as JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        match (&self.result, &self.message) {
            _ if !self.success => failure_text(&self.errors.join("; "), self.data.as_ref()),
            (Some(value), Some(message)) if value.as_str() == "null" && !message.is_empty() => {
                message.clone()
            }
            (Some(value), _) => plain(value),
            (None, _) => Message::AWAITING_USER.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::call::usage::Usage;
    use crate::cases::rows;

    #[test]
    fn every_outcome_has_a_result_view() {
        let definition = Definition::new("t", "").unwrap().with_attribute("team", json!("a"));
        for (result, shown, text) in
            rows::<(CallResult, Value, &str)>("message/view", "every_outcome_has_a_result_view")
        {
            let (usage, attributes) = (Usage::default(), definition.attributes.clone());
            let completion =
                Completion { id: "1".into(), tool: "t".into(), result, usage, attributes };
            let view = ResultView::of(&completion, &definition);
            let mut expected = shown;
            expected["tool_call_id"] = json!("1");
            expected["tool"] = json!("t");
            expected["attributes"] = json!({"team": "a"});
            assert_eq!(serde_json::to_value(&view).unwrap(), expected);
            assert_eq!(view.to_text(), text);
        }
    }
}
