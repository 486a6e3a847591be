//! How far calls are kept from each other.
//!
//! Invariants: what a later layer says only tightens what an earlier one said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcell::defence::{Defence, stands};

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
