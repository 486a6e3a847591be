//! How far calls are kept from each other.
//!
//! Invariants: what a later layer says only tightens what an earlier one said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcell::defence::{Defence, stands};

use super::file::At;
use super::problem::Problems;

/// How far calls are kept from each other, each more than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Isolation {
    #[default]
    Pooled,
    Strict,
    Process,
}

impl Isolation {
    /// Whether calls are made in a process of their own.
    pub(crate) fn has_process(self) -> bool {
        self == Self::Process && stands(Defence::Cordon)
    }

    /// As it is written.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pooled => "pooled",
            Self::Strict => "strict",
            Self::Process => "process",
        }
    }
}

/// As far as a section says.
pub(super) fn said(isolation: &Option<At<Isolation>>) -> Isolation {
    isolation.as_ref().map(|said| said.value).unwrap_or_default()
}

/// As far as a component's section says, which can be no process.
pub(super) fn of_component(problems: &mut Problems<'_>, isolation: &Option<At<Isolation>>) -> Isolation {
    if let Some(process) = isolation.as_ref().filter(|said| said.value == Isolation::Process) {
        let hint = "write `process` in [tenants.NAME] or [host]; a component can be `strict`";
        let message = "a component has no process of its own: the store of keys is open in one at a time";
        problems.error(&process.span, message, hint);
    }
    said(isolation)
}
