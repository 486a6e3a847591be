//! The error type of this crate.
//!
//! Reading, approving and loading a configuration return an [`Error`]. Its message is one sentence,
//! and `hint` suggests how to correct the problem. An error about lines of a file has a `Problem`
//! for each, with file, line and column. The variant tells the kind: an invalid file, a missing
//! signature, another digest, a file that cannot be used, a wrong name, a missing approval, a clash
//! of names, or an error of the library.

use std::io;

use crate::problem::Problem;

/// The underlying error of another library.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a configuration, a component or an approval cannot be used.
///
/// The message describes the problem, [`hint`](Self::hint) suggests a solution, and
/// [`problems`](Self::problems) has the places.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text of a configuration or a lock has errors.
    #[error("{}", invalid(file, problems))]
    Invalid {
        /// The file, as the user named it.
        file: String,
        /// All errors, in the order of the file.
        problems: Vec<Problem>,
    },
    /// A component has no valid signature, and the configuration demands one.
    #[error("{0}")]
    Unsigned(Box<Problem>),
    /// The digest of a component is not the one that the configuration demands.
    #[error("{0}")]
    DigestMismatch(Box<Problem>),
    /// A file cannot be read or written, or is not used because other users can write to it.
    #[error("{message}")]
    File {
        /// The message.
        message: String,
        /// The hint.
        hint: String,
        /// The underlying error.
        #[source]
        source: Option<Cause>,
    },
    /// A name or an option is not valid here.
    #[error("{message}")]
    Usage {
        /// The message.
        message: String,
        /// The hint.
        hint: String,
    },
    /// The user has not approved something.
    #[error("{message}")]
    NotApproved {
        /// The subject of the missing approval.
        what: Unapproved,
        /// The message.
        message: String,
        /// The hint.
        hint: String,
    },
    /// Two components offer tools of the same name, or of names that look alike.
    #[error("{message}")]
    DuplicateTool {
        /// The message.
        message: String,
        /// The hint.
        hint: String,
    },
    /// The library cannot load the component or create the engine.
    #[error(transparent)]
    Toolcell(#[from] toolcell::Error),
}

/// The subject of a missing approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unapproved {
    /// The configuration, which was found, not named.
    Configuration,
    /// A component that was never approved.
    New,
    /// A component that changed since it was approved.
    Changed,
}

fn invalid(file: &str, problems: &[Problem]) -> String {
    match problems {
        [only] => only.to_string(),
        several => format!("`{file}` cannot be used: {} problems", several.len()),
    }
}

impl Error {
    /// Returns the hint: a suggestion on how to resolve the error.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Invalid { problems, .. } => {
                problems.first().map(|problem| problem.hint.clone()).unwrap_or_default()
            }
            Self::Unsigned(problem) | Self::DigestMismatch(problem) => problem.hint.clone(),
            Self::File { hint, .. }
            | Self::Usage { hint, .. }
            | Self::NotApproved { hint, .. }
            | Self::DuplicateTool { hint, .. } => hint.clone(),
            Self::Toolcell(error) => error.hint(),
        }
    }

    /// Returns the places in a configuration or a lock that the error is about, each with file,
    /// line and column. Empty if there are none.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid { problems, .. } => problems,
            Self::Unsigned(problem) | Self::DigestMismatch(problem) => {
                std::slice::from_ref(problem)
            }
            Self::File { .. }
            | Self::Usage { .. }
            | Self::NotApproved { .. }
            | Self::DuplicateTool { .. }
            | Self::Toolcell(_) => &[],
        }
    }

    /// Returns true if the error is a file that does not exist.
    pub(crate) fn is_missing_file(&self) -> bool {
        let Self::File { source: Some(source), .. } = self else { return false };
        source
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn invalid(file: &str, problems: Vec<Problem>) -> Self {
        Self::Invalid { file: file.to_owned(), problems }
    }

    pub(crate) fn file(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::File { message: message.into(), hint: hint.into(), source: None }
    }

    pub(crate) fn caused(
        message: impl Into<String>,
        source: impl Into<Cause>,
        hint: impl Into<String>,
    ) -> Self {
        Self::File { message: message.into(), hint: hint.into(), source: Some(source.into()) }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: hint.into() }
    }

    pub(crate) fn not_approved(
        what: Unapproved,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::NotApproved { what, message: message.into(), hint: hint.into() }
    }
}
