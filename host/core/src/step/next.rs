//! What a step tells the loop: what to do next, and what an observer may see.
//!
//! Source: docs/contract.md, section 6.

use serde::{Deserialize, Deserializer, Serialize};

use super::entry::HistoryEntry;
use crate::json::needed;

/// What the loop does next.
///
/// # Shape
/// As JSON: `{"kind": "restart" | "abort" | "history", …}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    /// Ask the model again: the result went into its context, and nothing of this call goes into the history.
    Restart,
    /// End the turn.
    Abort {
        /// Why.
        status: AbortStatus,
    },
    /// Put the entry into the history and go on.
    History {
        /// The tool, as the model called it.
        name: String,
        /// Whether it succeeded. A question and a halt count as success; a result that could not be encoded does not, nor
        /// does a failure that a policy put something else in the place of.
        success: bool,
        /// The model need not speak after this: the tool said so, or a person is asked, or a handler or the policy halts the
        /// loop. The entry's `halted` tells all but the first.
        end_turn: bool,
        /// The call and its response.
        entry: Box<HistoryEntry>,
    },
}

/// Why a turn ends.
///
/// # Shape
/// As JSON: `"error"` or `"stopped_by_user"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortStatus {
    /// A call had no name, or wrong arguments and no id to answer; or too many calls failed in a row.
    Error,
    /// A person stopped it.
    StoppedByUser,
}

/// What an observer of steps sees, and the person in front does not.
///
/// # Shape
/// As JSON: `{"type": "trigger_notice", "id", "tool", "trigger"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepEvent {
    /// A tool was dispatched that a trigger had brought up.
    TriggerNotice {
        /// The call's id, if it had one.
        id: Option<String>,
        /// The tool.
        tool: String,
        /// What matched.
        trigger: String,
    },
}

/// The members of every kind of step. Read as they are, since text that is kept (`Json`) cannot be read from a buffer.
#[derive(Deserialize)]
struct Written {
    kind: Kind,
    status: Option<AbortStatus>,
    name: Option<String>,
    success: Option<bool>,
    end_turn: Option<bool>,
    entry: Option<Box<HistoryEntry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Restart,
    Abort,
    History,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        Ok(match written.kind {
            Kind::Restart => Self::Restart,
            Kind::Abort => Self::Abort { status: needed(written.status, "status")? },
            Kind::History => Self::History {
                name: needed(written.name, "name")?,
                success: needed(written.success, "success")?,
                end_turn: needed(written.end_turn, "end_turn")?,
                entry: needed(written.entry, "entry")?,
            },
        })
    }
}
