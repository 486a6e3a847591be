//! The reasons for which the host refuses a call before the tool's `execute` runs.
//!
//! A check of the host or of the executor returns a [`Refusal`], for example for invalid arguments,
//! an unknown tenant, a busy host or a sealed state (encrypted for the client) that does not belong
//! to the call. Each has a stable kind, a sentence, a hint, and if waiting can help a time after
//! which to try again. Invalid arguments list their faults (up to 32, the rest counted), not only
//! the first, so that a model can correct all of them. Only the host makes refusals, and their set
//! is closed.
//!
//! Not here: the validation of arguments, in `schema`.

mod fault;

use std::time::Duration;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use fault::{Fault, FaultKind, LengthUnit};

use crate::json::needed;

/// The wait that an overloaded host suggests: 250 ms. It is a guess.
#[doc(hidden)]
pub const RETRY_AFTER: Duration = Duration::from_millis(250);

/// The reason for which the host refused a call. The tool's `execute` has not run.
///
/// # Shape
/// As JSON: `{"kind", "message", "faults"?, "secrets"?, "retry_after_ms"?}`; `kind` is what
/// [`kind`](Self::kind) returns.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The arguments do not match the tool's schema, or the tool's own check rejected them.
    /// Displayed as the faults, separated by `; `.
    #[error("{}", joined(.0))]
    InvalidArguments(Vec<Fault>),
    /// The tool is not offered in the context of this call.
    #[error("this tool is not available in this context")]
    NotVisible,
    /// A rule of the application does not allow this call of the tool.
    #[error("this call of the tool is not allowed")]
    NotAllowed,
    /// Too many calls of the tool failed in a row, so its circuit breaker pauses it: see `Breaker`.
    #[error(
        "the tool failed too often and is paused; try again in {} ms",
        .retry_after.as_millis()
    )]
    CircuitOpen {
        /// Time until the next call is tried.
        retry_after: Duration,
    },
    /// No cell became free in time.
    #[error("all cells are busy; try again in {} ms", .retry_after.as_millis())]
    Overloaded {
        /// Time until the next try. It is a guess.
        retry_after: Duration,
    },
    /// The process that runs the tool is being restarted: see `WorkerProcess`.
    #[error(
        "the process that runs this tool is being restarted; try again in {} ms",
        .retry_after.as_millis()
    )]
    Restarting {
        /// Time until the next try.
        retry_after: Duration,
    },
    /// The host panicked too often in calls of the tool's component. The component stays disabled
    /// until the host calls `Component::reinstate` or loads it again.
    #[error("this tool is disabled, because the host failed too often while it ran the tool")]
    Quarantined,
    /// The compiled code of the tool's component was released or not linked yet, and cannot be
    /// linked now: see `LoadOptions::source`. The host's log says why.
    #[error("the code of this tool cannot be loaded at the moment")]
    Unavailable,
    /// These secrets, which the tool may use, have no usable value; the names are in order. The
    /// host's operator has to set them.
    #[error("{} no usable value; calls of this tool are refused", have(.0))]
    UnsetSecret(Vec<String>),
    /// The call names a tenant that the host has not defined, though it has defined others.
    #[error("this host has not defined the tenant of this call")]
    UnknownTenant,
    /// The call names no tenant, and the host serves defined tenants only.
    #[error("the call names no tenant, and this host serves defined tenants only")]
    NoTenant,
    /// The answer does not match the schema that came with the question. The question can be
    /// answered again with the same state.
    #[error("the answer does not fit the question: {}", joined(.0))]
    InvalidAnswer(Vec<Fault>),
    /// The call answers a question, but its state does not belong to this call.
    #[error("{}; {}", .0, .0.hint())]
    Resume(ResumeFault),
}

/// A fault of the sealed state that comes with an answer.
///
/// # Shape
/// As JSON: the `kind` of the refusal, for example `resume_expired`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ResumeFault {
    /// The answer comes without a state.
    #[error("the answer comes without the state of the question")]
    Missing,
    /// The state was not sealed by this key: it was changed, cut or made up, or another host sealed
    /// it.
    #[error("the state of the question was changed, or this host did not seal it")]
    Tampered,
    /// The state has expired.
    #[error("the question was asked too long ago")]
    Expired,
    /// The question was asked on behalf of another tenant.
    #[error("the question was asked for another tenant")]
    Foreign,
    /// The question was asked by another tool.
    #[error("the question was asked by another tool")]
    OtherTool,
    /// The tool's code has changed since it asked.
    #[error("the tool has changed since it asked the question")]
    Upgraded,
    /// The call that asked had other arguments.
    #[error("the arguments are not those of the call that asked the question")]
    OtherArguments,
}

impl ResumeFault {
    const ALL: [Self; 7] = [
        Self::Missing,
        Self::Tampered,
        Self::Expired,
        Self::Foreign,
        Self::OtherTool,
        Self::Upgraded,
        Self::OtherArguments,
    ];

    /// Returns the name of the fault, the same in JSON and in logs.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Missing => "resume_missing",
            Self::Tampered => "resume_tampered",
            Self::Expired => "resume_expired",
            Self::Foreign => "resume_foreign",
            Self::OtherTool => "resume_other_tool",
            Self::Upgraded => "resume_upgraded",
            Self::OtherArguments => "resume_other_arguments",
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Missing => "send the state of the question with the answer",
            Self::Tampered => {
                "send the state of the question unchanged, to a host with the same key"
            }
            Self::Expired | Self::Upgraded => {
                "call the tool without an answer, so that it asks again"
            }
            Self::Foreign => "send the answer for the tenant that the question was for",
            Self::OtherTool => "call the tool that asked the question",
            Self::OtherArguments => "send the arguments of the call that asked the question",
        }
    }
}

impl Refusal {
    /// The number of faults that one refusal lists; further faults are only counted. A model
    /// corrects a few at a time, and hostile arguments could otherwise make the refusal larger than
    /// themselves.
    pub const MAX_FAULTS: usize = 32;

    /// The refusal of a call for which no cell is free.
    #[doc(hidden)]
    pub fn overloaded() -> Self {
        Self::Overloaded { retry_after: RETRY_AFTER }
    }

    /// Returns the name of the refusal, the same in JSON and in logs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidArguments(_) => "invalid_arguments",
            Self::NotVisible => "not_visible",
            Self::NotAllowed => "not_allowed",
            Self::CircuitOpen { .. } => "circuit_open",
            Self::Overloaded { .. } => "overloaded",
            Self::Restarting { .. } => "restarting",
            Self::Quarantined => "quarantined",
            Self::Unavailable => "unavailable",
            Self::UnsetSecret(_) => "unset_secret",
            Self::UnknownTenant => "unknown_tenant",
            Self::NoTenant => "no_tenant",
            Self::InvalidAnswer(_) => "invalid_answer",
            Self::Resume(fault) => fault.kind(),
        }
    }

    /// Returns what to do about the refusal, in one line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::InvalidArguments(_) => "correct all faults, and call again",
            Self::NotVisible => {
                "call another tool: this one is not offered for the call's tenant, session and metadata"
            }
            Self::NotAllowed => "change the arguments, or call another tool",
            Self::CircuitOpen { .. } => "wait, and find out why the previous calls failed",
            Self::Overloaded { .. } => {
                "wait, make fewer calls at the same time, or configure more cells"
            }
            Self::Restarting { .. } => {
                "wait; the host's log says why the process ended or does not start"
            }
            Self::Quarantined => {
                "tell the operator: the host's log has the error; `Component::reinstate` or a restart of the host enables the tool again"
            }
            Self::Unavailable => {
                "tell the operator: the host's log says why the tool's code cannot be loaded"
            }
            Self::UnsetSecret(_) => {
                "tell the operator, who has to set the value; `toolcell check` says what is wrong with it"
            }
            Self::UnknownTenant => "name a tenant that the host has defined, or define this one",
            Self::NoTenant => {
                "name the tenant that the call is for, in `tenant` of the call's context"
            }
            Self::InvalidAnswer(_) => "correct the answer, and send it again with the same state",
            Self::Resume(fault) => fault.hint(),
        }
    }

    /// Returns the time after which the same call may succeed, if that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::CircuitOpen { retry_after }
            | Self::Overloaded { retry_after }
            | Self::Restarting { retry_after } => Some(*retry_after),
            Self::InvalidArguments(_)
            | Self::NotVisible
            | Self::NotAllowed
            | Self::Quarantined
            | Self::Unavailable
            | Self::UnsetSecret(_)
            | Self::UnknownTenant
            | Self::NoTenant
            | Self::InvalidAnswer(_)
            | Self::Resume(_) => None,
        }
    }
}

/// Returns the text of faults in one line, separated by `; `.
pub(crate) fn joined(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; ")
}

/// Names the secrets: ``the secrets `a`, `b` have``.
fn have(secrets: &[String]) -> String {
    let names: Vec<_> = secrets.iter().map(|name| format!("`{name}`")).collect();
    let (word, verb) = if names.len() == 1 { ("secret", "has") } else { ("secrets", "have") };
    format!("the {word} {} {verb}", names.join(", "))
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind())?;
        map.serialize_entry("message", &self.to_string())?;
        if let Self::InvalidArguments(faults) | Self::InvalidAnswer(faults) = self {
            map.serialize_entry("faults", faults)?;
        }
        if let Self::UnsetSecret(names) = self {
            map.serialize_entry("secrets", names)?;
        }
        if let Some(retry_after) = self.retry_after() {
            map.serialize_entry(
                "retry_after_ms",
                &u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX),
            )?;
        }
        map.end()
    }
}

/// The JSON form of a refusal, without its message, which follows from the kind.
#[derive(Deserialize)]
struct RefusalForm {
    kind: String,
    faults: Option<Vec<Fault>>,
    secrets: Option<Vec<String>>,
    retry_after_ms: Option<u64>,
}

/// The kinds of all refusals.
const KINDS: [&str; 19] = [
    "invalid_arguments",
    "not_visible",
    "not_allowed",
    "circuit_open",
    "overloaded",
    "restarting",
    "quarantined",
    "unavailable",
    "unset_secret",
    "unknown_tenant",
    "no_tenant",
    "invalid_answer",
    "resume_missing",
    "resume_tampered",
    "resume_expired",
    "resume_foreign",
    "resume_other_tool",
    "resume_upgraded",
    "resume_other_arguments",
];

impl<'de> Deserialize<'de> for Refusal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RefusalForm { kind, faults, secrets, retry_after_ms } =
            RefusalForm::deserialize(deserializer)?;
        let retry_after = || needed(retry_after_ms, "retry_after_ms").map(Duration::from_millis);
        Ok(match kind.as_str() {
            "invalid_arguments" => Self::InvalidArguments(needed(faults, "faults")?),
            "not_visible" => Self::NotVisible,
            "not_allowed" => Self::NotAllowed,
            "circuit_open" => Self::CircuitOpen { retry_after: retry_after()? },
            "overloaded" => Self::Overloaded { retry_after: retry_after()? },
            "restarting" => Self::Restarting { retry_after: retry_after()? },
            "quarantined" => Self::Quarantined,
            "unavailable" => Self::Unavailable,
            "unset_secret" => Self::UnsetSecret(needed(secrets, "secrets")?),
            "unknown_tenant" => Self::UnknownTenant,
            "no_tenant" => Self::NoTenant,
            "invalid_answer" => Self::InvalidAnswer(needed(faults, "faults")?),
            kind => match ResumeFault::ALL.into_iter().find(|fault| fault.kind() == kind) {
                Some(fault) => Self::Resume(fault),
                None => return Err(D::Error::unknown_variant(kind, &KINDS)),
            },
        })
    }
}

#[cfg(test)]
mod tests;
