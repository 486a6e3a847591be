//! Collects the problems of a configuration or a lock file (approvals), each with its line and
//! column.
//!
//! The functions that read a file share a [`Problems`]. They add an error or a warning with a byte
//! range of the text, a message and a hint; it computes the line and the column, which counts
//! characters. All problems are collected, not only the first, so that a user can correct them at
//! once. A [`Problem`] is one of them, as it is shown and serialised. [`in_order`] sorts them by
//! place and keeps at most 100.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A problem at one place.
///
/// # Shape
/// As JSON: its fields by name; line and column count from 1. Both are 0 if the problem is in an
/// option of a command; `file` is then the option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1; 0 in an option.
    pub line: usize,
    /// The character of the line, from 1; 0 in an option.
    pub column: usize,
    /// The description of the problem.
    pub message: String,
    /// A suggestion on how to resolve it.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, hint: _ } = self;
        match line {
            0 => write!(f, "{file}: {message}"),
            _ => write!(f, "{file}:{line}:{column}: {message}"),
        }
    }
}

/// A file and the problems that are known so far.
#[derive(Debug)]
pub(crate) struct Problems<'a> {
    file: &'a str,
    pub(crate) text: &'a str,
    /// The first byte of each line, to find the line of a place without reading the text before it.
    lines: Vec<usize>,
    /// Problems that prevent the file from being used.
    pub(crate) errors: Vec<Problem>,
    /// Problems that do not.
    pub(crate) warnings: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Self { file, text, lines, errors: Vec::new(), warnings: Vec::new() }
    }

    /// Adds an error.
    pub(crate) fn error(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.errors.push(self.at(span, message, hint));
    }

    /// Adds a warning about a probable mistake.
    pub(crate) fn warning(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.warnings.push(self.at(span, message, hint));
    }

    /// Returns a problem at a place without adding it.
    pub(crate) fn at(
        &self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Problem {
        let before = self.before(span);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Problem {
            file: self.file.to_owned(),
            line: self.line(span),
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Returns the line number of a place.
    pub(crate) fn line(&self, span: &Range<usize>) -> usize {
        let end = self.before(span).len();
        self.lines.partition_point(|start| *start <= end)
    }

    fn before(&self, span: &Range<usize>) -> &'a str {
        self.text.get(..span.start).unwrap_or(self.text)
    }
}

/// Maximum number of problems that are shown. The rest is shown after these are corrected.
const MAX_PROBLEMS: usize = 100;

/// Sorts problems by their place in the file, and removes repeated ones.
pub(crate) fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems.dedup();
    problems.truncate(MAX_PROBLEMS);
    problems
}
