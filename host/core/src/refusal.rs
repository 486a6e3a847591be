//! The host's own "no", said before the tool's `execute` ran.
//!
//! In: what a gate found. Out: [`Refusal`], a closed set.
//! Invariants: made by the host only; lists every fault, not the first, in words that a model can act on.
//! Not here: how arguments are judged (`schema`).

use std::fmt;
use std::time::Duration;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::needed;

/// How many faults one refusal spells out; the rest is counted. A model repairs a handful at a time, and a hostile
/// argument could otherwise make the refusal larger than itself.
pub const MAX_FAULTS: usize = 32;
/// The wait that a caller is told who is refused for load: the host does not know when there is room again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Characters of one problem that a handler's own check found.
const MAX_PROBLEM: usize = 1000;

/// Why a call was not made.
///
/// # Shape
/// As JSON: `{"kind", "message", "faults"?, "retry_after_ms"?}`; the kind is that of [`kind`](Self::kind).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The arguments are not what the tool takes. As text, its faults, separated by `; `.
    InvalidArguments(Vec<Fault>),
    /// The tool is not offered in this context, so it cannot be called either.
    NotVisible,
    /// The tool does not take this call, though it is of its name.
    NotAllowed,
    /// The tool failed so often that it is given a rest.
    CircuitOpen {
        /// When the next call may be tried.
        retry_after: Duration,
    },
    /// No cell came free in time.
    Overloaded {
        /// When to try again, a guess from the current load.
        retry_after: Duration,
    },
    /// The process that hosts the tool is not there at the moment: see [`Cordon`](crate::Cordon).
    Restarting {
        /// When to try again.
        retry_after: Duration,
    },
    /// The host panicked so often in calls of the tool's component that it makes none any more, until somebody has looked.
    Quarantined,
    /// The call is made on behalf of no tenant that the host has defined, though it has defined some.
    UnknownTenant,
    /// The call brings an answer to a question that was not asked of it.
    Resume(ResumeFault),
}

/// What is wrong with the sealed state that comes with an answer. Source: contract, section 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResumeFault {
    /// There is none.
    Missing,
    /// It is not what this key has sealed: changed, cut short, made up, or of another host.
    Tampered,
    /// Its time is over.
    Expired,
    /// The question was asked on behalf of another tenant.
    Foreign,
    /// The question was asked by another tool.
    OtherTool,
    /// The tool's code is not the code that asked.
    Upgraded,
    /// The call that asked had other arguments.
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

    /// The fault's name, the same in JSON and in logs.
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
            Self::Missing => "bring back the state that came with the question",
            Self::Tampered => "bring back the state as it came, to a host with the same key",
            Self::Expired | Self::Upgraded => "call the tool without an answer, and it asks anew",
            Self::Foreign => "answer on behalf of the tenant who was asked",
            Self::OtherTool => "call the tool that asked",
            Self::OtherArguments => "repeat the arguments of the call that asked",
        }
    }
}

impl fmt::Display for ResumeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the answer comes without the state that came with the question",
            Self::Tampered => "the state is not as it came with the question, or this host did not seal it",
            Self::Expired => "the question was asked too long ago",
            Self::Foreign => "the question was asked on behalf of another tenant",
            Self::OtherTool => "the question was asked by another tool",
            Self::Upgraded => "the tool has changed since it asked the question",
            Self::OtherArguments => "the arguments are not those of the call that asked the question",
        })
    }
}

/// One thing that is wrong with a value.
///
/// # Shape
/// As JSON: `{"path", "expected", "got"?, "nearest"?}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fault {
    /// Where, as a JSON pointer (RFC 6901); empty for the whole value.
    pub path: String,
    /// What would be right.
    pub expected: String,
    /// What is there, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
    /// The allowed value that is most like it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

impl Fault {
    /// A fault at this JSON pointer, empty for the whole value, with what would be right.
    pub fn new(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { path: path.into(), expected: expected.into(), got: None, nearest: None }
    }

    /// What a handler's own check found, each in its words. Bounded like everything that a stranger says to a model.
    pub(crate) fn of_handler(problems: Vec<String>) -> Vec<Self> {
        let more = problems.len().saturating_sub(MAX_FAULTS);
        let spelled = problems.into_iter().take(MAX_FAULTS).map(|problem| {
            let mut shown: String = problem.chars().take(MAX_PROBLEM).collect();
            if shown.len() < problem.len() {
                shown.push('…');
            }
            Self::new("", shown)
        });
        spelled.chain((more > 0).then(|| Self::new("", format!("{more} more")))).collect()
    }

    /// With what is there instead, shortened by the caller.
    #[must_use]
    pub fn with_got(mut self, got: impl Into<String>) -> Self {
        self.got = Some(got.into());
        self
    }
}

impl Refusal {
    /// Refused for load.
    pub(crate) fn overloaded() -> Self {
        Self::Overloaded { retry_after: RETRY_AFTER }
    }

    /// The refusal's name, the same in JSON and in logs.
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
            Self::UnknownTenant => "unknown_tenant",
            Self::Resume(fault) => fault.kind(),
        }
    }

    /// What to do about it, in one line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::InvalidArguments(_) => "correct every fault that is listed, and call again",
            Self::NotVisible => "call a tool that is offered here: tenant, session and metadata of the call decide",
            Self::NotAllowed => "change the call: whoever offers the tool has a rule for what it takes",
            Self::CircuitOpen { .. } => "wait that long, and look at why the calls before failed",
            Self::Overloaded { .. } => "wait that long, make fewer calls at once, or allow more cells",
            Self::Restarting { .. } => {
                "wait that long; the host's log says how the process ended, or why it does not start"
            }
            Self::Quarantined => {
                "tell the operator: the host's log says what went wrong, and the component can be let in again"
            }
            Self::UnknownTenant => "call on behalf of a tenant that the host has defined, or have it define this one",
            Self::Resume(fault) => fault.hint(),
        }
    }

    /// When the same call may fare better, where that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::CircuitOpen { retry_after } | Self::Overloaded { retry_after } | Self::Restarting { retry_after } => {
                Some(*retry_after)
            }
            Self::InvalidArguments(_)
            | Self::NotVisible
            | Self::NotAllowed
            | Self::Quarantined
            | Self::UnknownTenant
            | Self::Resume(_) => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArguments(faults) => write_faults(f, faults),
            Self::NotVisible => f.write_str("this tool is not available in this context"),
            Self::NotAllowed => f.write_str("the tool does not take this call"),
            Self::CircuitOpen { retry_after } => {
                write!(f, "the tool failed too often and rests; try again in {} ms", retry_after.as_millis())
            }
            Self::Overloaded { retry_after } => {
                write!(f, "all cells are busy; try again in {} ms", retry_after.as_millis())
            }
            Self::Restarting { retry_after } => {
                write!(
                    f,
                    "the process that hosts this tool is being started again; try in {} ms",
                    retry_after.as_millis()
                )
            }
            Self::Quarantined => {
                f.write_str("the host failed too often as it served this tool, and does not run it any more")
            }
            Self::UnknownTenant => f.write_str("this host knows no such tenant"),
            Self::Resume(fault) => write!(f, "{fault}; call the tool without an answer, and it asks anew"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Faults in one line, separated by `; `.
pub(crate) fn write_faults(f: &mut fmt::Formatter<'_>, faults: &[Fault]) -> fmt::Result {
    for (index, fault) in faults.iter().enumerate() {
        if index > 0 {
            f.write_str("; ")?;
        }
        write!(f, "{fault}")?;
    }
    Ok(())
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at `{}`: ", self.path)?;
        }
        f.write_str(&self.expected)?;
        if let Some(got) = &self.got {
            write!(f, ", got {got}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, " (did you mean {nearest}?)")?;
        }
        Ok(())
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind())?;
        map.serialize_entry("message", &self.to_string())?;
        if let Self::InvalidArguments(faults) = self {
            map.serialize_entry("faults", faults)?;
        }
        if let Some(retry_after) = self.retry_after() {
            map.serialize_entry("retry_after_ms", &u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX))?;
        }
        map.end()
    }
}

/// A refusal as it is written, but for its message, which the kind says.
#[derive(Deserialize)]
struct Written {
    kind: String,
    faults: Option<Vec<Fault>>,
    retry_after_ms: Option<u64>,
}

impl<'de> Deserialize<'de> for Refusal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { kind, faults, retry_after_ms } = Written::deserialize(deserializer)?;
        let retry_after = || needed(retry_after_ms, "retry_after_ms").map(Duration::from_millis);
        Ok(match kind.as_str() {
            "invalid_arguments" => Self::InvalidArguments(needed(faults, "faults")?),
            "not_visible" => Self::NotVisible,
            "not_allowed" => Self::NotAllowed,
            "circuit_open" => Self::CircuitOpen { retry_after: retry_after()? },
            "overloaded" => Self::Overloaded { retry_after: retry_after()? },
            "restarting" => Self::Restarting { retry_after: retry_after()? },
            "quarantined" => Self::Quarantined,
            "unknown_tenant" => Self::UnknownTenant,
            kind => match ResumeFault::ALL.into_iter().find(|fault| fault.kind() == kind) {
                Some(fault) => Self::Resume(fault),
                None => return Err(D::Error::custom(format_args!("unknown refusal kind `{kind}`"))),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do() {
        let wait = Duration::from_secs(1);
        let others = [
            Refusal::InvalidArguments(Vec::new()),
            Refusal::NotVisible,
            Refusal::NotAllowed,
            Refusal::CircuitOpen { retry_after: wait },
            Refusal::Overloaded { retry_after: wait },
            Refusal::Restarting { retry_after: wait },
            Refusal::Quarantined,
            Refusal::UnknownTenant,
        ];
        for refusal in others.into_iter().chain(ResumeFault::ALL.map(Refusal::Resume)) {
            let hint = refusal.hint();
            assert!(!hint.is_empty() && !hint.ends_with('.') && !hint.contains('\n'), "{refusal}: {hint}");
            assert!(!refusal.to_string().contains(hint) || matches!(refusal, Refusal::Resume(_)), "{refusal}: {hint}");
        }
    }

    #[test]
    fn a_handlers_problems_are_bounded_and_the_rest_counted() {
        let faults = Fault::of_handler(vec!["é".repeat(MAX_PROBLEM + 1); MAX_FAULTS + 2]);
        assert_eq!(faults.len(), MAX_FAULTS + 1);
        assert_eq!(faults[0].expected, "é".repeat(MAX_PROBLEM) + "…");
        assert_eq!(faults[MAX_FAULTS].expected, "2 more");
        assert_eq!(Fault::of_handler(vec!["no".into()]), [Fault::new("", "no")]);
    }
}
