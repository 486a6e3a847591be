//! The result of a step: the next action of the agent loop, and the events for an observer.
//!
//! The stepper returns a [`Step`] for each call: restart (ask the model again), abort (end the
//! turn), or a history entry with flags for success and for the end of the turn. An [`AbortStatus`]
//! says why a turn was aborted. A [`StepEvent`] goes to the observer of the embedder (the program
//! that uses this library), for example when a tool ran that a trigger in the user's text had
//! allowed. Steps are read back from JSON here, too.
//!
//! Source: docs/contract.md, section 6.

use serde::{Deserialize, Deserializer, Serialize};
use toolcell_contract::json::Members;

use super::entry::HistoryEntry;

/// The next action of the loop.
///
/// # Shape
/// As JSON: `{"kind": "restart" | "abort" | "history", …}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    /// Ask the model again: the result was put into its context, and this call gets no history
    /// entry.
    Restart,
    /// End the turn.
    Abort {
        /// The reason.
        status: AbortStatus,
    },
    /// Put the entry into the history and go on.
    History {
        /// The tool, as the model called it.
        name: String,
        /// True if the call succeeded. A question and a halt count as success. A result that could
        /// not be encoded does not, and neither does a failure that a policy replaced by a value.
        success: bool,
        /// True if the turn can end without another answer of the model: the tool said so, a person
        /// is asked, or the handler or the policy halts the loop. The entry's `halted` tells which,
        /// except for the first.
        end_turn: bool,
        /// The call and its response.
        entry: Box<HistoryEntry>,
    },
}

/// The reason why a turn was aborted.
///
/// # Shape
/// As JSON: `"error"` or `"stopped_by_user"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortStatus {
    /// A call had no name, or had wrong arguments and no id; or too many calls failed in a row.
    Error,
    /// A person stopped the turn.
    StoppedByUser,
}

/// An event for the observer of steps. It is not meant for the user.
///
/// # Shape
/// As JSON: `{"type": "trigger_notice", "id", "tool", "trigger"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepEvent {
    /// A dispatched tool had been allowed because a trigger matched.
    TriggerNotice {
        /// The call's id, if it had one.
        id: Option<String>,
        /// The tool.
        tool: String,
        /// The trigger.
        trigger: String,
    },
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
        let mut of = <Members>::deserialize(deserializer)?;
        Ok(match of.needed("kind")? {
            Kind::Restart => Self::Restart,
            Kind::Abort => Self::Abort { status: of.needed("status")? },
            Kind::History => Self::History {
                name: of.needed("name")?,
                success: of.needed("success")?,
                end_turn: of.needed("end_turn")?,
                entry: of.needed("entry")?,
            },
        })
    }
}
