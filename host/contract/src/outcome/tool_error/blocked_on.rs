//! Names the event that a guest (the WebAssembly code of a tool) was waiting for when its time was
//! over.
//!
//! The cell (a fresh WebAssembly instance for one call) notes what its guest waits for: a timer, an
//! HTTP response, a file, a key, another tool or a secret. If the deadline passes meanwhile, the
//! timeout contains it as [`BlockedOn`], and its message says for example "still waiting for an
//! HTTP response". The table of grant kinds has the event for each host interface that waits.

use serde::{Deserialize, Serialize};

/// The event that a guest waited for when its time was over.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockedOn {
    /// A timer of the guest.
    Timer,
    /// The response to an HTTP request.
    Http,
    /// A file or a directory.
    File,
    /// The key-value store.
    Kv,
    /// Another tool.
    Tool,
    /// A secret.
    Secret,
}

impl BlockedOn {
    /// Returns the words for a message, after `for`.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Timer => "a timer",
            Self::Http => "an HTTP response",
            Self::File => "a file",
            Self::Kv => "the key-value store",
            Self::Tool => "another tool",
            Self::Secret => "a secret",
        }
    }
}
