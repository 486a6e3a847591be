//! Errors of HTTP requests.

use std::fmt;

/// The reason why a request failed or its response cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The tool does not have the grant. The text says what the operator can grant.
    Denied(String),
    /// The request is malformed.
    Invalid(String),
    /// The name does not resolve, or only to addresses that are not allowed.
    Unreachable(String),
    /// The server did not answer in time.
    Timeout,
    /// The call has used up its number of requests or of bytes.
    OverBudget(String),
    /// The connection broke, or the server violated HTTP/1.1.
    Broken(String),
    /// The server answered with this status, which is not a success.
    Status(u16),
    /// The body does not have the shape of the requested type.
    Unexpected(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(sentence) => f.write_str(sentence),
            Self::Invalid(problem) => write!(f, "the request cannot be sent: {problem}"),
            Self::Unreachable(problem) => write!(f, "the server cannot be reached: {problem}"),
            Self::Timeout => f.write_str("the server did not answer in time"),
            Self::OverBudget(problem) => {
                write!(f, "the limits of the call do not allow the request: {problem}")
            }
            Self::Broken(problem) => write!(f, "the connection broke: {problem}"),
            Self::Status(status) => write!(f, "the server answered with status {status}"),
            Self::Unexpected(problem) => {
                write!(f, "the server's answer has an unexpected shape: {problem}")
            }
        }
    }
}

impl std::error::Error for Error {}
