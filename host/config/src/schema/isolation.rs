//! The setting `isolation` of `toolcell.toml`: the levels at which calls are kept apart.
//!
//! [`Isolation`] has three levels, each stricter than the one before. `pooled`: each call has its
//! own cell (an instance of the component), with memory from a shared pool. `strict`: each cell has
//! memory of its own. `process`: the same, in a process that runs the tools of one tenant. The
//! host, a component, a tenant can each set a level. Reading a configuration combines them by their
//! maximum, so a later layer can only tighten. A component cannot set `process`, because a process
//! belongs to a tenant; [`of_component`] reports that as an error with its line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcell::controls::enforced;

use crate::problem::Problems;
use crate::schema::At;

// Comments on the variants would change the schema from a plain list of words.
/// The isolation of calls from each other. Each value isolates more than the one before.
#[expect(
    missing_docs,
    reason = "with comments the variants would not be a plain list of words in the JSON Schema"
)]
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Isolation {
    #[default]
    Pooled,
    Strict,
    Process,
}

impl Isolation {
    /// Returns true if calls run in a process of their own.
    pub fn has_process(self) -> bool {
        self == Self::Process && enforced!(WorkerProcess)
    }

    /// Returns the word in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pooled => "pooled",
            Self::Strict => "strict",
            Self::Process => "process",
        }
    }
}

/// Returns the isolation that a section sets, or the default.
pub(crate) fn of_section(isolation: &Option<At<Isolation>>) -> Isolation {
    isolation.as_ref().map(|said| said.value).unwrap_or_default()
}

/// As [`of_section`], for a component's section, which cannot set `process`.
pub(crate) fn of_component(
    problems: &mut Problems<'_>,
    isolation: &Option<At<Isolation>>,
) -> Isolation {
    if let Some(process) = isolation.as_ref().filter(|said| said.value == Isolation::Process) {
        let hint =
            "write it in [tenants.NAME] or [host]; a component can have `isolation = \"strict\"`";
        let message = "a component cannot have `isolation = \"process\"`: each process runs the tools of one tenant";
        problems.error(&process.span, message, hint);
    }
    of_section(isolation)
}
