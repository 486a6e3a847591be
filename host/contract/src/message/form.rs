//! Reads the settled end of a call, and the halt of a run, back from JSON.
//!
//! A client of the server uses it through serde's `Deserialize` for [`SettledCall`] and
//! [`RunHalt`]; the parent module defines and writes these types. A member that the kind requires
//! but that is absent is an error.

use serde::{Deserialize, Deserializer};

use super::{RunHalt, SettledCall};
use crate::json::Members;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    ToolResultEncoded,
    AskUserRequested,
    ToolHalt,
}

impl<'de> Deserialize<'de> for SettledCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut of = <Members>::deserialize(deserializer)?;
        Ok(match of.needed("type")? {
            End::ToolResultEncoded => {
                Self::Encoded { id: of.needed("id")?, content: of.needed("content")? }
            }
            End::AskUserRequested => Self::AskUser {
                tool_call_id: of.needed("tool_call_id")?,
                tool_name: of.needed("tool_name")?,
                question: of.needed("question")?,
                options: of.optional("options")?,
                answer_schema: of.present("answer_schema")?,
                state: of.present("state")?,
            },
            End::ToolHalt => Self::Halt {
                tool_call_id: of.needed("tool_call_id")?,
                reason: of.needed("reason")?,
                result: of.needed("result")?,
                content: of.needed("content")?,
            },
        })
    }
}

impl<'de> Deserialize<'de> for RunHalt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut of = <Members>::deserialize(deserializer)?;
        let reason: String = of.needed("halted_reason")?;
        Ok(match reason.as_str() {
            "ask_user" => Self::AskUser {
                question: of.needed("pending_question")?,
                tool_call_id: of.needed("pending_tool_call_id")?,
                options: of.optional("ask_user_opts")?,
                answer_schema: of.present("answer_schema")?,
                state: of.present("state")?,
            },
            "tool_error" => Self::ToolError {
                tool_call_id: of.needed("halt_tool_call_id")?,
                exception: of.optional("on_tool_error_exception")?,
            },
            _ => Self::Handler {
                tool_call_id: of.needed("halt_tool_call_id")?,
                result: of.needed("halt_result")?,
                reason,
            },
        })
    }
}
