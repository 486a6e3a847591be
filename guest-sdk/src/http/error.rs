//! Why there is no response, or not the one that was wanted.

use std::fmt;

/// Why there is no response, or not the one that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The tool was not granted it. The text says what would have to be granted.
    Denied(String),
    /// The request is none that can be sent.
    Invalid(String),
    /// The name does not resolve, or to no address that may be spoken to.
    Unreachable(String),
    /// Its time was over.
    Timeout,
    /// More bytes or more requests than the call may use.
    OverBudget(String),
    /// The connection broke, or the server does not speak HTTP/1.1 well.
    Broken(String),
    /// The server answered with this status, and only success was wanted.
    Status(u16),
    /// The body is not what it was read as.
    Unexpected(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(sentence) => f.write_str(sentence),
            Self::Invalid(problem) => write!(f, "the request cannot be sent: {problem}"),
            Self::Unreachable(problem) => write!(f, "the server cannot be reached: {problem}"),
            Self::Timeout => f.write_str("the server did not answer in time"),
            Self::OverBudget(problem) => write!(f, "the call may not request more: {problem}"),
            Self::Broken(problem) => write!(f, "the connection broke: {problem}"),
            Self::Status(status) => write!(f, "the server answered with status {status}"),
            Self::Unexpected(problem) => write!(f, "the server's answer has an unexpected shape: {problem}"),
        }
    }
}

impl std::error::Error for Error {}
