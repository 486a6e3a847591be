//! Reads an [`Event`] back from its JSON.
//!
//! A consumer of the event stream uses it through serde's `Deserialize`; the writing half is
//! derived in the parent module. The member `type` selects the kind of event, and a member that
//! this kind requires but that is absent is an error.

use serde::{Deserialize, Deserializer};

use super::Event;
use crate::json::Members;

#[expect(clippy::enum_variant_names, reason = "the names that the JSON has")]
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    ToolExecutionStarted,
    ToolProgress,
    ToolLog,
    ToolDenied,
    ToolExecutionCompleted,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut of = <Members>::deserialize(deserializer)?;
        let id = of.needed("id")?;
        Ok(match of.needed("type")? {
            Kind::ToolExecutionStarted => {
                Self::Started { id, name: of.needed("name")?, arguments: of.needed("arguments")? }
            }
            Kind::ToolProgress => Self::Progress {
                id,
                done: of.needed("done")?,
                total: of.optional("total")?,
                message: of.optional("message")?,
            },
            Kind::ToolLog => Self::Log {
                id,
                source: of.needed("source")?,
                level: of.needed("level")?,
                message: of.needed("message")?,
            },
            Kind::ToolDenied => Self::Denied { id, denial: of.needed("denial")? },
            Kind::ToolExecutionCompleted => Self::Completed {
                id,
                name: of.needed("name")?,
                result: of.needed("result")?,
                usage: of.needed("usage")?,
                parent: of.optional("parent")?,
            },
        })
    }
}
