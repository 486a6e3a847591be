//! What is wrong with a configuration, each thing with its place.
//!
//! In: byte offsets and words. Out: [`Problem`]s with line and column.
//! Invariants: everything is collected, nothing stops at the first; columns count characters.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use toolcell::{BadRule, PLACEHOLDER};

use crate::file::At;

/// One thing that is wrong.
///
/// # Shape
/// As JSON: its fields by name; line and column count from 1. Both are 0 where the problem is in an
/// option of a command, which then is the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1; 0 in an option.
    pub line: usize,
    /// The character of the line, from 1; 0 in an option.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
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

/// A file and everything that is known to be wrong with it.
#[derive(Debug)]
pub(crate) struct Problems<'a> {
    file: &'a str,
    text: &'a str,
    /// What keeps it from being used.
    pub(crate) errors: Vec<Problem>,
    /// What it can be used with.
    pub(crate) warnings: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, errors: Vec::new(), warnings: Vec::new() }
    }

    /// The file's text.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Notes an error.
    pub(crate) fn error(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let problem = self.at(span, message, hint);
        self.errors.push(problem);
    }

    /// Notes something that is probably not meant.
    pub(crate) fn warning(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let problem = self.at(span, message, hint);
        self.warnings.push(problem);
    }

    /// A problem at a place, for later.
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

    /// The line of a place.
    pub(crate) fn line(&self, span: &Range<usize>) -> usize {
        self.before(span).matches('\n').count() + 1
    }

    fn before(&self, span: &Range<usize>) -> &'a str {
        self.text.get(..span.start).unwrap_or(self.text)
    }

    /// A rule in its notation, unless it cannot be read.
    pub(crate) fn rule<T: FromStr<Err = BadRule>>(&mut self, text: &At<String>) -> Option<T> {
        match text.value.parse() {
            Ok(rule) => Some(rule),
            Err(bad) if text.value == PLACEHOLDER => {
                let hint = format!("in its place, {}", bad.hint);
                self.error(
                    &text.span,
                    format!("the rule is still the placeholder `{PLACEHOLDER}`"),
                    hint,
                );
                None
            }
            Err(bad) => {
                self.error(&text.span, bad.to_string(), bad.hint);
                None
            }
        }
    }
}

/// The most problems that are shown. The rest is shown once these are corrected.
const MAX_PROBLEMS: usize = 100;

/// Sorts problems by their place in the file, and leaves out repeated ones.
pub(crate) fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems.dedup();
    problems.truncate(MAX_PROBLEMS);
    problems
}
