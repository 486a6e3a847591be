//! The error type for creating, building and testing projects.
//!
//! The fallible public functions of this crate return an [`Error`]: a message, an [`ErrorKind`],
//! and a hint that says how to correct the problem. An error in the author's source can have a
//! [`Fault`] for each place, with file, line and column, which a command prints. If the place is in
//! a package of `node_modules`, the hint names that package, because its file is not the author's
//! to correct.

use std::fmt;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// An error from creating, building or testing a project, with a hint.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: String,
    faults: Vec<Fault>,
}

/// The result of what this crate does.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Kinds of [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is invalid: an unknown language, or a name that is not allowed.
    Usage,
    /// A file or a folder cannot be read or written.
    File,
    /// The author's source has a fault.
    Source,
    /// A program that builds this language is missing or has the wrong version, or a target of the
    /// compiler is missing.
    Toolchain,
    /// A file of cases is invalid.
    Cases,
    /// A bug in this crate.
    Internal,
}

/// A fault at one place in the author's source.
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
    /// The description of the fault.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl Error {
    pub(crate) fn new(
        kind: ErrorKind,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), faults: Vec::new() }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message, hint)
    }

    pub(crate) fn source(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Source, message, hint)
    }

    pub(crate) fn toolchain(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Toolchain, message, hint)
    }

    pub(crate) fn cases(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cases, message, hint)
    }

    /// Returns a function that makes the error for a file that cannot be used, with the reason.
    pub(crate) fn file(doing: &str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |error| {
            let message = format!("cannot {doing} `{}`: {error}", path.display());
            Self::new(ErrorKind::File, message, "check the path and its permissions")
        }
    }

    /// The error for a module of the author, or one that it imports, whose evaluation runs for too
    /// long.
    pub(crate) fn evaluation_timeout(entry: &str) -> Self {
        let message = format!(
            "the module `{entry}` does not end: what is at the top level of it, or of a module that it imports, runs for too long"
        );
        Self::source(message, "move the work into the handler, which runs at each call")
    }

    /// The error for faults in the author's source.
    pub(crate) fn faults(faults: Vec<Fault>) -> Self {
        let message = match faults.as_slice() {
            [only] => only.to_string(),
            [first, ..] => format!("{first} (and {} more)", faults.len() - 1),
            [] => "the source cannot be parsed".to_owned(),
        };
        let hint = place_hint(faults.first().map_or("", |fault| fault.file.as_str()));
        Self { faults, ..Self::source(message, hint) }
    }

    /// The error for an exception in the author's source, with the places on its stack.
    pub(crate) fn exception(message: String) -> Self {
        let first = message.lines().find(|line| line.starts_with("    at ")).unwrap_or_default();
        let hint = place_hint(first);
        Self::source(message, hint)
    }

    pub(crate) fn with_faults(self, faults: Vec<Fault>) -> Self {
        Self { faults, ..self }
    }

    /// The error for a bug. The alternate form of some errors has their causes.
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        let hint = "this is a bug in toolcell: please report it";
        Self::new(ErrorKind::Internal, format!("{message:#}"), hint)
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns a hint on how to resolve the error.
    #[must_use]
    pub fn hint(&self) -> String {
        self.hint.clone()
    }

    /// Returns the faults in the author's source. Empty for other errors.
    #[must_use]
    pub fn source_faults(&self) -> &[Fault] {
        &self.faults
    }
}

/// Returns the hint for a fault at this place. A package's file is not the author's to correct.
fn place_hint(place: &str) -> String {
    const PACKAGES: &str = "node_modules/";
    let Some((_, path)) = place.rsplit_once(PACKAGES) else {
        return "correct the source at this place".to_owned();
    };
    let parts = if path.starts_with('@') { 2 } else { 1 };
    let name = path.split('/').take(parts).collect::<Vec<_>>().join("/");
    format!(
        "the fault is in the package `{name}`: install another version of it, or use another package"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_in_a_package_names_the_package() {
        for (file, hint) in [
            ("src/tool.js", "correct the source at this place"),
            ("node_modules/left-pad/index.js", "the fault is in the package `left-pad`: "),
            ("node_modules/a/node_modules/@b/c/d/e.js", "the fault is in the package `@b/c`: "),
        ] {
            let fault =
                Fault { file: file.to_owned(), line: 1, column: 1, message: "no".to_owned() };
            let raised = Error::exception(format!(
                "Error: no\n    at f ({file}:1:1)\n    at g (src/tool.js:2:2)"
            ));
            for error in [Error::faults(vec![fault]), raised] {
                assert!(error.hint().starts_with(hint), "{}", error.hint());
            }
        }
    }
}
