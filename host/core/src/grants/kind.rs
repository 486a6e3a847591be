//! The kinds of things that are granted, and every word for each of them.
//!
//! In: a word that a person typed. Out: [`GrantKind`].
//! Invariants: the only table of these words; requests, grants on the command line and needs are
//! read with it.
//! Not here: the rules of a kind (its own module in `grants`).

/// A kind of thing that is granted.
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
    Keys,
    /// Calls of other tools.
    Invoke,
    /// A directory of each call's own.
    Scratch,
}

/// Each word, and its kind. A kind's first word is the one to show for a single rule.
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
    ("kv", GrantKind::Keys),
    ("key", GrantKind::Keys),
    ("keys", GrantKind::Keys),
    ("invoke", GrantKind::Invoke),
    ("call", GrantKind::Invoke),
    ("calls", GrantKind::Invoke),
    ("scratch", GrantKind::Scratch),
];

impl GrantKind {
    /// The kind that this word is for.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }

    /// Every word for a kind.
    pub fn words() -> impl Iterator<Item = &'static str> {
        WORDS.iter().map(|(word, _)| *word)
    }

    /// The key below `grants` in `toolcell.toml`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Directories => "directories",
            Self::Environment => "environment",
            Self::Secrets => "secrets",
            Self::Reveal => "reveal",
            Self::Keys => "kv",
            Self::Invoke => "invoke",
            Self::Scratch => "scratch",
        }
    }
}
