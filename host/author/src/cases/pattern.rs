//! The regular expressions in files of test cases, as in `ok_matches: "^[0-9]+$"`.
//!
//! A [`Pattern`] is compiled when the file is read, so an invalid expression is an error of the
//! file. The comparison of a result calls [`Pattern::matches`], which is true if the expression
//! matches any part of the text. The syntax is that of the crate `regex`. A pattern is serialised
//! as its text.

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Serialize};

/// A regular expression, in the syntax of the crate `regex`. It matches a text if it matches a part
/// of it.
///
/// # Shape
/// As JSON: a string.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// Returns true if it matches the text or a part of it.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Regex::new(&text).map(Self).map_err(|error| {
            // Lines before the last one only draw the position under the expression.
            let message = error.to_string();
            let problem = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("`{text}` is not a regular expression: {problem}")
        })
    }
}
