//! The languages that a tool can be written in, with their short names.
//!
//! [`Language`] is parsed from `toolcell new --lang`, which accepts `js` as well as `javascript`
//! and so on, and is part of the report of a build. An unknown name is an error that lists the
//! known ones.
//!
//! Not here: how a language is built, in `languages`, and how it is detected, in `project`.

use std::str::FromStr;

use crate::{Error, Result};

/// A language that a tool can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// JavaScript, in the runtime that is part of this crate.
    JavaScript,
    /// TypeScript. Its types are stripped, not checked.
    TypeScript,
    /// Python, with componentize-py.
    Python,
    /// Rust, with cargo and the target `wasm32-wasip2`.
    Rust,
    /// C, with Zig or with clang.
    C,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 5] =
        [Self::JavaScript, Self::TypeScript, Self::Python, Self::Rust, Self::C];

    /// The short name: `js`, `ts`, `python`, `rust` or `c`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::JavaScript => "js",
            Self::TypeScript => "ts",
            Self::Python => "python",
            Self::Rust => "rust",
            Self::C => "c",
        }
    }
}

impl FromStr for Language {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let short = match name {
            "javascript" => "js",
            "typescript" => "ts",
            "py" => "python",
            "rs" => "rust",
            other => other,
        };
        let known = Self::ALL.into_iter().find(|language| language.name() == short);
        known.ok_or_else(|| {
            let message = format!("there is no language `{}`", name.escape_debug());
            Error::usage(message, "use one of: js, ts, python, rust, c")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_parsed_from_its_usual_names() {
        for (name, expected) in [
            ("js", "js"),
            ("javascript", "js"),
            ("typescript", "ts"),
            ("py", "python"),
            ("rs", "rust"),
        ] {
            assert_eq!(name.parse::<Language>().map(Language::name).ok(), Some(expected));
        }
        assert!("cobol".parse::<Language>().is_err());
    }
}
