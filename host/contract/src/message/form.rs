//! Reads the settled end of a call, and the halt of a run, back from JSON.
//!
//! A client of the server uses it through serde's `Deserialize` for [`SettledCall`] and
//! [`RunHalt`]; the parent module defines and writes these types. A member that the kind requires
//! but that is absent is an error. The members are read one by one instead of as serde's tagged
//! enum, because [`Json`], a value kept as its original text, cannot be read from serde's buffer.

use serde::{Deserialize, Deserializer};

use super::{RunHalt, SettledCall};
use crate::json::{Json, needed, present};

/// The members of all kinds of [`SettledCall`].
#[derive(Deserialize)]
struct WrittenEnd {
    r#type: End,
    id: Option<String>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    question: Option<String>,
    options: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    answer_schema: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    state: Option<Json>,
    reason: Option<String>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Json>,
    content: Option<String>,
}

#[derive(Deserialize)]
enum End {
    #[serde(rename = "tool_result_encoded")]
    Encoded,
    #[serde(rename = "ask_user_requested")]
    AskUser,
    #[serde(rename = "tool_halt")]
    Halt,
}

impl<'de> Deserialize<'de> for SettledCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = WrittenEnd::deserialize(deserializer)?;
        let WrittenEnd {
            r#type,
            id,
            tool_call_id,
            tool_name,
            question,
            reason,
            result,
            content,
            ..
        } = written;
        Ok(match r#type {
            End::Encoded => {
                Self::Encoded { id: needed(id, "id")?, content: needed(content, "content")? }
            }
            End::AskUser => Self::AskUser {
                tool_call_id: needed(tool_call_id, "tool_call_id")?,
                tool_name: needed(tool_name, "tool_name")?,
                question: needed(question, "question")?,
                options: written.options,
                answer_schema: written.answer_schema,
                state: written.state,
            },
            End::Halt => Self::Halt {
                tool_call_id: needed(tool_call_id, "tool_call_id")?,
                reason: needed(reason, "reason")?,
                result: needed(result, "result")?,
                content: needed(content, "content")?,
            },
        })
    }
}

/// The members of all kinds of [`RunHalt`].
#[derive(Deserialize)]
struct WrittenHalt {
    halted_reason: String,
    pending_question: Option<String>,
    pending_tool_call_id: Option<String>,
    ask_user_opts: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    answer_schema: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    state: Option<Json>,
    halt_tool_call_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    halt_result: Option<Json>,
    on_tool_error_exception: Option<String>,
}

impl<'de> Deserialize<'de> for RunHalt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = WrittenHalt::deserialize(deserializer)?;
        Ok(match written.halted_reason.as_str() {
            "ask_user" => Self::AskUser {
                question: needed(written.pending_question, "pending_question")?,
                tool_call_id: needed(written.pending_tool_call_id, "pending_tool_call_id")?,
                options: written.ask_user_opts,
                answer_schema: written.answer_schema,
                state: written.state,
            },
            "tool_error" => Self::ToolError {
                tool_call_id: needed(written.halt_tool_call_id, "halt_tool_call_id")?,
                exception: written.on_tool_error_exception,
            },
            _ => Self::Handler {
                reason: written.halted_reason,
                tool_call_id: needed(written.halt_tool_call_id, "halt_tool_call_id")?,
                result: needed(written.halt_result, "halt_result")?,
            },
        })
    }
}
