//! The eight kinds of grants, with the words by which people name them.
//!
//! [`GrantKind::of_word`] turns a word into a [`GrantKind`]: `env` and `variable`, for instance,
//! both mean environment variables. It reads the kind in front of a request, in grants on the
//! command line and in needs. This is the only table of these words. [`GrantKind::key`] is the key
//! of the kind in `toolcell.toml`.
//!
//! Not here: the rules of each kind, in the other modules of `grants`.

/// A kind of grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum GrantKind {
    /// Requests to servers.
    Http,
    /// Directories and the files in them.
    Directories,
    /// Environment variables.
    Environment,
    /// Secrets that the host puts into requests.
    Secrets,
    /// The values of secrets.
    Reveal,
    /// Stored keys.
    Kv,
    /// Calls of other tools.
    Invoke,
    /// The directory of a single call.
    Scratch,
}

/// Each word with its kind. The first word of a kind is shown for a single rule.
const WORDS: [(&str, GrantKind); 20] = [
    ("http", GrantKind::Http),
    ("directory", GrantKind::Directories),
    ("directories", GrantKind::Directories),
    ("filesystem", GrantKind::Directories),
    ("file", GrantKind::Directories),
    ("files", GrantKind::Directories),
    ("variable", GrantKind::Environment),
    ("variables", GrantKind::Environment),
    ("environment", GrantKind::Environment),
    ("env", GrantKind::Environment),
    ("secret", GrantKind::Secrets),
    ("secrets", GrantKind::Secrets),
    ("reveal", GrantKind::Reveal),
    ("kv", GrantKind::Kv),
    ("key", GrantKind::Kv),
    ("keys", GrantKind::Kv),
    ("invoke", GrantKind::Invoke),
    ("call", GrantKind::Invoke),
    ("calls", GrantKind::Invoke),
    ("scratch", GrantKind::Scratch),
];

impl GrantKind {
    /// Returns the kind of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }

    /// Returns every word of every kind.
    pub fn words() -> impl Iterator<Item = &'static str> {
        WORDS.iter().map(|(word, _)| *word)
    }

    /// Returns the key below `grants` in `toolcell.toml`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Directories => "directories",
            Self::Environment => "environment",
            Self::Secrets => "secrets",
            Self::Reveal => "reveal",
            Self::Kv => "kv",
            Self::Invoke => "invoke",
            Self::Scratch => "scratch",
        }
    }
}
