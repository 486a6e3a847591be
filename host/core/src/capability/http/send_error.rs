//! Reasons why a tool's request has no usable response, with their texts and hints.
//!
//! Each stage of a request fails with a [`SendError`]. The imports of a guest (the WebAssembly code
//! of a tool) convert it to the error that the tool gets; [`PrivateHost::hint`] adds one line of
//! advice, and [`SendError::denial`] the record for observers of the call if the request was
//! denied.
//! A text contains at most the host's name, shortened to 100 characters. It never contains a
//! header, a query, a body, or an address that a name resolved to, and it never quotes the server.

use std::borrow::Cow;
use std::fmt;

use toolcell_contract::grants::rights::{Denial, Request, Suggestion};
use toolcell_contract::grants::{Host, HttpRule, Method, Target, is_metadata_service};

/// Longest host name in a text, in characters.
const MAX_HOST_CHARS: usize = 100;

/// The reason why a request has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    /// The tool's rights do not allow the request.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// The request cannot be written as one HTTP request, or sets a header that only the host may
    /// set.
    #[error("{0}")]
    Invalid(String),
    /// The host has no address on the public internet, and the rule names no network that contains
    /// its address.
    #[error("`{}` is not on the public internet", .0.name)]
    Private(Box<PrivateHost>),
    /// The host has no address, or no server answers there.
    #[error("{0}")]
    Unreachable(String),
    /// A time limit was exceeded.
    #[error("{0}")]
    Timeout(TimeoutPhase),
    /// A limit of the call or of the connection was exceeded.
    #[error("{1}")]
    OverBudget(Share, String),
    /// The response is not HTTP, or ended too soon.
    #[error("{0}")]
    Broken(String),
}

/// Returns the error for a request that cannot be sent. The text is only the problem: the guest
/// SDKs add that the request cannot be sent.
pub(super) fn invalid(problem: impl Into<String>) -> SendError {
    SendError::Invalid(problem.into())
}

/// A host that a request is not sent to, because it is not on the public internet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrivateHost {
    name: String,
    /// A hint for the caller, in one line.
    pub(crate) hint: String,
    /// The denial that observers of the call get. The tool gets only the fields above.
    denial: Denial,
}

/// The part of a request that exceeded its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimeoutPhase {
    /// Connecting: the wait for a free connection, name lookup, connecting, TLS.
    #[error("no connection was made in time")]
    Connect,
    /// The head of the response.
    #[error("the response did not begin in time")]
    FirstByte,
    /// The next piece of the response's body.
    #[error("the response stalled for too long")]
    BetweenBytes,
    /// The whole request.
    #[error("the response was not complete in time")]
    Whole,
}

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Requests of the call.
    Requests,
    /// Bytes that the call sends.
    Sent,
    /// Bytes that the call receives.
    Received,
    /// Bytes that a server sends around a response.
    Framing,
    /// All requests, because an earlier one of this call contained a secret.
    Closed,
}

impl SendError {
    pub(super) fn unreachable(target: &Target, problem: impl fmt::Display) -> Self {
        Self::Unreachable(format!("`{}` cannot be reached: {problem}", short_host(target)))
    }

    /// Returns the error for a private host. The grant in its hint covers the whole host, because a
    /// path could be text of a peer. The tool does not see the address that a name resolves to.
    pub(super) fn private(method: Method, target: &Target) -> Self {
        let (host, name) = (target.host(), short_host(target));
        let is_known = match &host {
            Host::Address(_) => true,
            Host::Name(name) => name == "localhost",
        };
        let hint = if is_metadata_service(&host) {
            format!(
                "do not grant it unless you have to: `{name}` serves the credentials of this machine in most clouds; \
                 `toolcell explain` prints the rule"
            )
        } else if is_known {
            let rule = HttpRule::smallest(method, target).of_whole_host();
            format!("to allow it, grant: {}", Suggestion::of_rule(&rule).lines().concat())
        } else {
            "to allow it, name the network of the host in the rule that grants the request: \
             `toolcell explain` prints this rule"
                .to_owned()
        };
        let denial = Denial::by_network(&Request::Http { method, target: Cow::Borrowed(target) });
        Self::Private(Box::new(PrivateHost { name, hint, denial }))
    }

    /// Returns the denial that observers of the call get, if something was denied.
    pub(crate) fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Denied(denial) => Some(denial),
            Self::Private(host) => Some(&host.denial),
            Self::Invalid(_)
            | Self::Unreachable(_)
            | Self::Timeout(_)
            | Self::OverBudget(..)
            | Self::Broken(_) => None,
        }
    }

    pub(super) fn broken(problem: impl fmt::Display) -> Self {
        Self::Broken(format!("the response cannot be used: {problem}"))
    }
}

fn short_host(target: &Target) -> String {
    target.host().to_string().chars().take(MAX_HOST_CHARS).collect()
}
