//! Why a request has no response.
//!
//! Invariants: a text names a host at most, in part where it is long: no header, query, body, and
//! no address that a name led to; nothing of it is the peer's own words.

use std::borrow::Cow;
use std::fmt;

use crate::grants::{Host, HttpRule, Method, Target, is_metadata_service};
use crate::rights::{Denial, Request, Suggestion};

/// Characters of a host's name in a text.
const NAMED: usize = 100;

/// Why a request has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    /// It is not within the tool's rights.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// It cannot be written as one request of HTTP, or says what only the host may say.
    #[error("{0}")]
    Invalid(String),
    /// Its host has no address on the public internet, and its rule names no network that has one.
    #[error("`{0}` is not on the public internet")]
    Private(Box<PrivateHost>),
    /// Its host has no address, or no server answers there.
    #[error("{0}")]
    Unreachable(String),
    /// The time was up.
    #[error("{}", .0.problem())]
    Timeout(Stage),
    /// Too much of something that is counted.
    #[error("{1}")]
    OverBudget(Share, String),
    /// The response is not one of HTTP, or ended too soon.
    #[error("{0}")]
    Broken(String),
}

/// A host that a request is not sent to, because it is not on the public internet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrivateHost {
    name: String,
    /// The line of configuration that allows it, where no name has to be resolved for that.
    grant: Option<String>,
    is_metadata: bool,
    /// For observers of the call: the tool is told no more than the above.
    denial: Denial,
}

impl PrivateHost {
    fn hint(&self) -> String {
        let Self { name, grant, is_metadata, .. } = self;
        if *is_metadata {
            return format!(
                "do not grant it unless you have to: `{name}` serves the credentials of this machine in most clouds; \
                 `toolcell explain` prints the rule"
            );
        }
        match grant {
            Some(grant) => format!("to allow it, grant: {grant}"),
            None => {
                "to allow it, name the network of the host in the rule that grants the request: `toolcell explain` \
                     prints this rule"
                    .to_owned()
            }
        }
    }
}

impl fmt::Display for PrivateHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What of a request was over its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The connection: a free one, the name, the address, TLS.
    Connect,
    /// The head of the response.
    FirstByte,
    /// The next piece of the response's body.
    BetweenBytes,
    /// All of it.
    Whole,
}

impl Stage {
    fn problem(self) -> &'static str {
        match self {
            Self::Connect => "no connection was made in time",
            Self::FirstByte => "the response did not begin in time",
            Self::BetweenBytes => "the response stalled for too long",
            Self::Whole => "the response was not complete in time",
        }
    }
}

/// What there was too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Requests of the call.
    Requests,
    /// Bytes that the call sends.
    Sent,
    /// Bytes that the call receives.
    Received,
    /// What a server sends around a response.
    Framing,
    /// Any request: one of this call carried a secret.
    Closed,
}

impl SendError {
    /// What to do about it, in one line.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Denied(denial) => denial.hint(),
            Self::Invalid(_) => "correct the request; the host sets `host`, `content-length` and the like".into(),
            Self::Private(host) => host.hint(),
            Self::Unreachable(_) => "check that the host is up and its name, port and certificate are right".into(),
            Self::Timeout(_) => "check that the host is up, or give the call more time".into(),
            Self::OverBudget(Share::Closed, _) => {
                "change the tool so that its requests carry no secret of their own; this call can continue without further requests".into()
            }
            Self::OverBudget(Share::Framing, _) => "see what the server answers to another client".into(),
            Self::OverBudget(Share::Requests | Share::Sent | Share::Received, _) => "ask for less in one call".into(),
            Self::Broken(_) => "ask for a smaller answer, or for one without compression; see what the server answers to another client".into(),
        }
    }

    pub(super) fn unreachable(target: &Target, problem: impl fmt::Display) -> Self {
        Self::Unreachable(format!("`{}` cannot be reached: {problem}", named(target)))
    }

    /// The line names the whole host: a path could be a peer's text. The address that a name has is
    /// not for the tool to see.
    pub(super) fn private(method: Method, target: &Target) -> Self {
        let host = target.host();
        let is_known = matches!(&host, Host::Address(_))
            || matches!(&host, Host::Name(name) if name == "localhost");
        let rule = HttpRule::smallest(method, target).of_whole_host();
        let grant = is_known.then(|| Suggestion::of_rule(&rule).lines().concat());
        let denial = Denial::by_network(&Request::Http { method, target: Cow::Borrowed(target) });
        let is_metadata = is_metadata_service(&host);
        Self::Private(Box::new(PrivateHost { name: named(target), grant, is_metadata, denial }))
    }

    /// What observers of the call are told was denied, if anything was.
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

fn named(target: &Target) -> String {
    target.host().to_string().chars().take(NAMED).collect()
}
