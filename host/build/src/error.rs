//! Why a project cannot be made, built or tested.

use std::fmt;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Why a project cannot be made, built or tested, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: String,
    faults: Vec<Fault>,
}

/// Kinds of [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for makes no sense: an unknown language, a name that is not allowed.
    Usage,
    /// A file or a folder cannot be read or written.
    File,
    /// The author's source is at fault.
    Source,
    /// A program that builds this language is missing.
    Toolchain,
    /// A file of cases is at fault.
    Cases,
    /// A bug in this crate.
    Internal,
}

/// One place in the author's source that is at fault.
///
/// # Shape
/// As JSON: `{"file", "line", "column", "message"}`. Lines and columns begin with 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The file, relative to the project.
    #[serde(default)]
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), faults: Vec::new() }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message, hint)
    }

    /// A file that cannot be used, and why.
    pub(crate) fn file(doing: &str, path: &Path, error: &io::Error) -> Self {
        let hint = "check the path and its permissions";
        Self::new(ErrorKind::File, format!("cannot {doing} `{}`: {error}", path.display()), hint)
    }

    /// The evaluation of this module of the author's, and of those that it imports, takes longer than it may.
    pub(crate) fn endless(entry: &str) -> Self {
        let message = format!(
            "the module `{entry}` does not end: what is at the top level of it, or of a module that it imports, runs for too long"
        );
        Self::new(ErrorKind::Source, message, "move the work into the handler, which runs at each call")
    }

    /// Faults of the author's source.
    pub(crate) fn faults(faults: Vec<Fault>) -> Self {
        let message = match faults.as_slice() {
            [only] => only.to_string(),
            [first, ..] => format!("{first} (and {} more)", faults.len() - 1),
            [] => "the source cannot be parsed".to_owned(),
        };
        Self { faults, ..Self::new(ErrorKind::Source, message, "correct the source at this place") }
    }

    pub(crate) fn with_faults(self, faults: Vec<Fault>) -> Self {
        Self { faults, ..self }
    }

    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        let hint = "this is a bug in toolcell: please report it";
        Self::new(ErrorKind::Internal, message.to_string(), hint)
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        self.hint.clone()
    }

    /// The places of the author's source that are at fault, if it is that.
    #[must_use]
    pub fn source_faults(&self) -> &[Fault] {
        &self.faults
    }
}
