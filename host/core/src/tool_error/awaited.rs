//! Names what a guest waited for when its time was over.

use serde::{Deserialize, Serialize};

/// Names what a guest waited for when its time was over.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Awaited {
    /// A timer of its own.
    Timer,
    /// The response to an HTTP request.
    Http,
    /// A file or a directory.
    File,
    /// The key-value store.
    Keys,
    /// Another tool.
    Tool,
    /// A secret.
    Secret,
}

impl Awaited {
    /// Returns what a call of an interface of our own waits for.
    pub(crate) fn of(interface: &str) -> Option<Self> {
        match interface {
            "http" => Some(Self::Http),
            "kv" => Some(Self::Keys),
            "invoke" => Some(Self::Tool),
            "reveal" | "secrets" => Some(Self::Secret),
            _ => None,
        }
    }

    /// For a message, after `for`.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Timer => "a timer",
            Self::Http => "an HTTP response",
            Self::File => "a file",
            Self::Keys => "the key-value store",
            Self::Tool => "another tool",
            Self::Secret => "a secret",
        }
    }
}
