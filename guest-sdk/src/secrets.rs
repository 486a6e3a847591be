//! Secrets that the host keeps for a tool.
//!
//! A [`Secret`] is a handle: [`http::Request::secret`](crate::http::Request::secret) has the host put its value into a
//! request, and the tool never sees it. [`reveal`] is for the rare tool that must compute with the value.
//!
//! In an author's own tests there are those that the test gives with [`keep`].

use std::fmt;

use crate::imports;

/// A secret without its value.
#[derive(Debug)]
pub struct Secret(pub(crate) imports::Secret);

impl Secret {
    /// The name under which it was asked for.
    pub fn name(&self) -> String {
        self.0.name()
    }
}

/// Why there is no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The tool was not granted it. The text says what would have to be granted.
    Denied(String),
    /// It was granted, and the host does not have it now.
    Unavailable(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(sentence) => f.write_str(sentence),
            Self::Unavailable(problem) => write!(f, "the secret is not available: {problem}"),
        }
    }
}

impl std::error::Error for Error {}

/// The secret of this name. Needs the grant `secret`.
///
/// # Errors
/// [`Error`].
pub fn get(name: &str) -> Result<Secret, Error> {
    imports::secret(name).map(Secret)
}

/// The value of the secret of this name. Needs the grant `reveal`, which operators give with care: what a tool can read it
/// can send wherever it may send to. For a request use [`get`].
///
/// # Errors
/// [`Error`].
pub fn reveal(name: &str) -> Result<String, Error> {
    imports::reveal(name)
}

/// For an author's own tests: from now on this thread has a secret of this name. In a cell it does nothing.
pub fn keep(name: impl Into<String>, value: impl Into<String>) {
    imports::keep(name.into(), value.into());
}
