//! Reads an [`Event`] back from its JSON.
//!
//! A consumer of the event stream uses it through serde's `Deserialize`; the writing half is
//! derived in the parent module. The member `type` selects the kind of event, and a member that
//! this kind requires but that is absent is an error. The members are read one by one instead of as
//! serde's tagged enum, because `Json`, a value kept as its original text, cannot be read from
//! serde's buffer.

use serde::{Deserialize, Deserializer};

use super::{Event, LogLevel, LogSource};
use crate::call::CallResult;
use crate::call::usage::Usage;
use crate::grants::rights::Denial;
use crate::json::needed;

/// The members of all kinds of events.
#[derive(Deserialize)]
struct EventForm {
    r#type: Kind,
    id: String,
    name: Option<String>,
    arguments: Option<String>,
    done: Option<u64>,
    total: Option<u64>,
    message: Option<String>,
    source: Option<LogSource>,
    level: Option<LogLevel>,
    denial: Option<Denial>,
    result: Option<CallResult>,
    usage: Option<Usage>,
    parent: Option<String>,
}

#[derive(Deserialize)]
enum Kind {
    #[serde(rename = "tool_execution_started")]
    Started,
    #[serde(rename = "tool_progress")]
    Progress,
    #[serde(rename = "tool_log")]
    Log,
    #[serde(rename = "tool_denied")]
    Denied,
    #[serde(rename = "tool_execution_completed")]
    Completed,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = EventForm::deserialize(deserializer)?;
        let EventForm { r#type, id, name, arguments, done, total, message, .. } = written;
        let EventForm { source, level, denial, result, usage, parent, .. } = written;
        Ok(match r#type {
            Kind::Started => Self::Started {
                id,
                name: needed(name, "name")?,
                arguments: needed(arguments, "arguments")?,
            },
            Kind::Progress => Self::Progress { id, done: needed(done, "done")?, total, message },
            Kind::Log => Self::Log {
                id,
                source: needed(source, "source")?,
                level: needed(level, "level")?,
                message: needed(message, "message")?,
            },
            Kind::Denied => Self::Denied { id, denial: needed(denial, "denial")? },
            Kind::Completed => Self::Completed {
                id,
                name: needed(name, "name")?,
                result: needed(result, "result")?,
                usage: needed(usage, "usage")?,
                parent,
            },
        })
    }
}
