//! The errors of assembling a tool call from the fragments of a stream.
//!
//! The assembler returns an [`AssembleError`] when a fragment belongs to no open call, a call
//! starts twice, the open calls exceed the limit, arguments are not JSON, or the stream ends too
//! early. Each error is about one call, and has its id (or its index, if the id has not arrived)
//! and a hint for the caller. An untrusted id is shortened and escaped in the text.

use toolcell_contract::json::JsonFault;

/// Longest id in an error's text, in characters.
const MAX_ID_CHARS: usize = 80;

/// The reason why fragments did not become a call. Each error is about one call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// A fragment or an end of a call that has not started, or has ended.
    #[error("the call `{}` was not started, or it has ended", shortened(.id))]
    NotOpen {
        /// The call.
        id: String,
    },
    /// A start of a call that is already open.
    #[error("the call `{}` had not ended when a call with the same id or index started", shortened(.id))]
    StartedTwice {
        /// The call.
        id: String,
    },
    /// The open calls together would exceed the limit.
    #[error("with the call `{}`, the calls that are still streaming in are over the limit of {limit} bytes", shortened(.id))]
    TooLarge {
        /// The call.
        id: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The arguments are not JSON.
    #[error("the arguments of the call `{}` are {fault}", shortened(.id))]
    Malformed {
        /// The call.
        id: String,
        /// The position and kind of the fault.
        fault: JsonFault,
    },
    /// The call ended before its id or its name arrived.
    #[error("the call `{}` ended without its {missing}", shortened(.id))]
    Incomplete {
        /// The call: its id, or its index as `#0`.
        id: String,
        /// The missing part: `id` or `name`.
        missing: &'static str,
    },
    /// The stream ended before the call did.
    #[error("the stream ended inside of the call `{}`", shortened(.id))]
    Unfinished {
        /// The call.
        id: String,
    },
}

impl AssembleError {
    /// The call's id. If the id has not arrived, its index in the model's answer, as `#0`.
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

    /// A hint for the caller, in one line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotOpen { .. } => "send the call's start first, and nothing after its end",
            Self::StartedTwice { .. } => "give each call of a stream its own id and its own index",
            Self::TooLarge { .. } => "have the model write shorter arguments",
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

/// Shortens and escapes an untrusted id for an error's text.
fn shortened(id: &str) -> String {
    id.chars().take(MAX_ID_CHARS).flat_map(char::escape_debug).collect()
}
