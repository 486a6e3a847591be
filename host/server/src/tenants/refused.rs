//! The reasons why the server did not make a call.
//!
//! [`Service`](crate::Service) returns a [`RequestError`] when a request is turned away: no access,
//! unknown tool, quota, overload, shutdown and others. Each has a stable code, a hint and, if
//! waiting helps, the time to wait. HTTP writes it as a problem, MCP as an error or a result. A
//! call that was made and failed is not refused; its failure is in its completion.
//!
//! Unknown tools, tools that the tenant may not see, and tools without a handler have the same
//! text.

use std::time::Duration;

use toolcell::{Error, Refusal};

use super::quota::QuotaKind;

/// The reason why the server did not make a call. No tool ran, except for
/// [`UnknownTool`](Self::UnknownTool), whose tool may have decided in a cell of its own that it is
/// not visible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server does not serve the principal's tenant.
    #[error("this server does not serve this principal")]
    NoAccess,
    /// No tool that the principal can see has this name.
    #[error("there is no tool `{}`", shown(name))]
    UnknownTool {
        /// The requested name.
        name: String,
        /// The nearest name of a tool that the principal can see.
        nearest: Option<String>,
    },
    /// The cursor is not one of this server.
    #[error("the cursor is not valid")]
    InvalidCursor,
    /// The tenant has used up its quota.
    #[error("the quota of the tenant is used up: {kind}")]
    Quota {
        /// The part of the quota.
        kind: QuotaKind,
        /// The time after which the same request can succeed.
        retry_after: Duration,
    },
    /// The run has more calls than the server or the tenant's quota ever allows.
    #[error("the request has {actual} calls; at most {limit} are allowed")]
    TooManyCalls {
        /// Calls in the request.
        actual: usize,
        /// The most that are allowed.
        limit: usize,
    },
    /// All cells are busy, or the server's limit of calls is reached.
    #[error("the server is busy")]
    Overloaded {
        /// The time after which to retry.
        retry_after: Duration,
    },
    /// The server shuts down and takes no new calls.
    #[error("the server is shutting down")]
    Draining,
    /// The principal has a running request with this id.
    #[error("a request with this id is running")]
    DuplicateRequest,
    /// The principal has no running request with this id.
    #[error("no request with this id is running")]
    NotRunning,
    /// The answer does not fit the tool's question. The question can be answered again, with the
    /// same state.
    #[error("{0}")]
    InvalidAnswer(Refusal),
    /// The run could not start.
    #[error("{0}")]
    Run(Error),
}

impl RequestError {
    /// Returns a stable code for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoAccess => "forbidden",
            Self::UnknownTool { .. } => "unknown_tool",
            Self::InvalidCursor => "invalid_cursor",
            Self::Quota { .. } => "quota_exceeded",
            Self::TooManyCalls { .. } => "too_many_calls",
            Self::Overloaded { .. } => "overloaded",
            Self::Draining => "shutting_down",
            Self::DuplicateRequest => "duplicate_request",
            Self::NotRunning => "not_running",
            Self::InvalidAnswer(refusal) => refusal.kind(),
            Self::Run(error) => error.reason(),
        }
    }

    /// Returns the time after which the same request can succeed, if waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Quota { retry_after, .. } | Self::Overloaded { retry_after } => {
                Some(*retry_after)
            }
            Self::Run(error) => error.retry_after(),
            Self::NoAccess
            | Self::UnknownTool { .. }
            | Self::InvalidCursor
            | Self::TooManyCalls { .. }
            | Self::Draining
            | Self::DuplicateRequest
            | Self::NotRunning
            | Self::InvalidAnswer(_) => None,
        }
    }

    /// Returns advice for the client: one line without a period.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoAccess => {
                "ask the operator for a key of a tenant that this server serves; a tenant that was \
                 added is served once `toolcell approve` has approved the configuration"
                    .into()
            }
            Self::UnknownTool { nearest: Some(nearest), .. } => {
                format!("did you mean `{nearest}`?")
            }
            Self::UnknownTool { nearest: None, .. } => "list the tools".into(),
            Self::InvalidCursor => "list the tools from the start, without a cursor".into(),
            Self::Quota { .. } | Self::Overloaded { .. } => "try again after the given time".into(),
            Self::TooManyCalls { .. } => "split the request".into(),
            Self::Draining => "send the request to another server, or try again later".into(),
            Self::DuplicateRequest => "give each request its own id".into(),
            Self::NotRunning => "check the id; the request may have ended already".into(),
            Self::InvalidAnswer(refusal) => refusal.hint().into(),
            Self::Run(error) => error.hint(),
        }
    }
}

/// Returns a client's name of a tool or a method, truncated and without control characters.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(80).collect::<String>().escape_debug().to_string()
}
