//! Why fragments did not become a call.

use crate::json::JsonFault;

/// Characters of an id that an error shows.
const SHOWN: usize = 80;

/// Why fragments did not become a call. Each names the one call that it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// A piece or an end of a call that has not started, or has ended.
    #[error("the call `{}` was not started, or it has ended", shown(.id))]
    NotOpen {
        /// The call.
        id: String,
    },
    /// A start of a call that is open.
    #[error("the call `{}` had not ended when a call with the same id or index started", shown(.id))]
    StartedTwice {
        /// The call.
        id: String,
    },
    /// All open calls together would be over the bound.
    #[error("with the call `{}`, the calls that are still streaming in are over the limit of {limit} bytes", shown(.id))]
    TooLarge {
        /// The call.
        id: String,
        /// The bound in bytes.
        limit: u64,
    },
    /// The arguments are not JSON.
    #[error("the arguments of the call `{}` are {fault}", shown(.id))]
    Malformed {
        /// The call.
        id: String,
        /// Where they break.
        fault: JsonFault,
    },
    /// The call ended, and its id or its name has not come.
    #[error("the call `{}` ended without its {missing}", shown(.id))]
    Incomplete {
        /// The call: its id, or its place as `#0`.
        id: String,
        /// What is missing: `id` or `name`.
        missing: &'static str,
    },
    /// The stream ended before the call did.
    #[error("the stream ended inside of the call `{}`", shown(.id))]
    Unfinished {
        /// The call.
        id: String,
    },
}

impl AssembleError {
    /// The call: its id. Where that has not come, its place in the model's answer, as `#0`.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::NotOpen { id }
            | Self::StartedTwice { id }
            | Self::TooLarge { id, .. }
            | Self::Malformed { id, .. }
            | Self::Incomplete { id, .. }
            | Self::Unfinished { id } => id,
        }
    }

    /// What to do about it, in one line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotOpen { .. } => "send the call's start first, and nothing after its end",
            Self::StartedTwice { .. } => "give each call of a stream its own id and its own index",
            Self::TooLarge { .. } => {
                "have the model write shorter arguments, or raise the assembler's limit"
            }
            Self::Malformed { .. } => {
                "tell the model what is wrong with its JSON and let it call again"
            }
            Self::Incomplete { .. } => {
                "pass on every piece of the stream; the provider sends id and name at the start"
            }
            Self::Unfinished { .. } => {
                "the stream was cut off, by a token limit perhaps: ask the model again"
            }
        }
    }
}

/// An id of a stranger, fit to be shown.
fn shown(id: &str) -> String {
    id.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}
