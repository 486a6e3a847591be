//! What the executor says when the handler could not say anything.
//!
//! In: how a cell or a native handler ended. Out: [`ToolError`], a closed reason with a typed cause.
//! Invariants: made by the host only; six reasons and no more (contract, section 2); text is for people, decisions go by type.
//! Not here: how an engine's error becomes one of these (`engine::classify`).

mod raised;
mod written;

use std::fmt;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::refusal::Fault;

pub use raised::{LimitHit, LimitKind, Raised, RaisedKind};

/// The closed set of reasons.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The guest trapped, or a native handler or the host panicked.
    HandlerRaised,
    /// The guest called `exit`, or what ran it died.
    HandlerExit,
    /// A budget of instructions or time is spent.
    Timeout,
    /// The handler's return is not one of the four shapes.
    InvalidReturn,
    /// The tool has no handler.
    NotFound,
    /// The result encoder failed. Never produced by the executor itself.
    EncodingFailed,
}

impl Reason {
    /// The reason's name, the same in JSON, in spans and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HandlerRaised => "handler_raised",
            Self::HandlerExit => "handler_exit",
            Self::Timeout => "timeout",
            Self::InvalidReturn => "invalid_return",
            Self::NotFound => "not_found",
            Self::EncodingFailed => "encoding_failed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure that the executor adds.
///
/// # Shape
/// As JSON: `{"reason", "cause"?, "message"}`, and `metadata` where the contract names it.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolError {
    /// See [`Reason::HandlerRaised`].
    HandlerRaised(Raised),
    /// See [`Reason::HandlerExit`].
    HandlerExit(Exit),
    /// See [`Reason::Timeout`].
    Timeout(Timeout),
    /// See [`Reason::InvalidReturn`].
    InvalidReturn(ReturnRule),
    /// See [`Reason::NotFound`].
    NotFound,
    /// See [`Reason::EncodingFailed`]; the encoder's message.
    EncodingFailed(String),
}

impl ToolError {
    /// The reason, without its cause.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::HandlerRaised(_) => Reason::HandlerRaised,
            Self::HandlerExit(_) => Reason::HandlerExit,
            Self::Timeout(_) => Reason::Timeout,
            Self::InvalidReturn(_) => Reason::InvalidReturn,
            Self::NotFound => Reason::NotFound,
            Self::EncodingFailed(_) => Reason::EncodingFailed,
        }
    }
}

/// Why there is nobody left to answer.
///
/// # Shape
/// As JSON: `{"status": "called" | "cancelled" | "died", "code"?}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
#[non_exhaustive]
pub enum Exit {
    /// The guest called `exit` with this code.
    Called {
        /// The code: 0 is success in the guest's eyes, but no answer to the call.
        code: i32,
    },
    /// The caller went away and the cell was dropped.
    Cancelled,
    /// The host task, or the process, that ran the cell died.
    Died,
}

/// Which budget is spent.
///
/// # Shape
/// As JSON: `{"kind": "fuel", "budget", "used"}`; `"deadline"` and `"blocked"` in whole milliseconds, as `budget_ms` and
/// `used_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// Out of fuel, in the engine's instruction units.
    Fuel {
        /// What there was.
        budget: u64,
        /// What was used.
        used: u64,
    },
    /// The deadline passed while the guest was running.
    Deadline {
        /// The time there was.
        budget: Duration,
        /// The time that passed.
        used: Duration,
    },
    /// The deadline passed while the guest, or a native handler, was waiting.
    Blocked {
        /// The time there was.
        budget: Duration,
        /// The time that passed.
        used: Duration,
    },
}

/// Which rule of a return was broken.
///
/// # Shape
/// As JSON: `{"rule": NAME, …}` with the fields by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "rule")]
#[non_exhaustive]
pub enum ReturnRule {
    /// A field that should be JSON is not, or nests too deep.
    NotJson {
        /// Which field.
        field: String,
        /// Where it breaks.
        detail: String,
    },
    /// All text and bytes of the return together are over the cap.
    TooLarge {
        /// The cap in bytes.
        limit: u64,
        /// The size in bytes.
        got: u64,
    },
    /// There are more parts beside the value than the cap.
    TooManyParts {
        /// The cap.
        limit: u64,
        /// How many there are.
        got: u64,
    },
    /// The state that is left with a question is over the cap of what can be sealed.
    StateTooLarge {
        /// The cap in bytes.
        limit: u64,
        /// The size in bytes.
        got: u64,
    },
    /// The value violates the tool's output schema.
    Schema {
        /// Everything that is wrong with it.
        faults: Vec<Fault>,
    },
    /// `halt` with an empty or blank reason.
    EmptyHalt,
    /// `halt` with a reason that belongs to the loop.
    ReservedHalt {
        /// The reason.
        reason: String,
    },
    /// A run's policy function, asked about a failure of the tool, panicked or gave no answer.
    Policy {
        /// What became of it.
        detail: String,
    },
    /// The return cannot be read at all: not of the declared type, or far over every cap.
    Unreadable {
        /// The engine's words.
        detail: String,
    },
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandlerRaised(raised) => raised.fmt(f),
            Self::HandlerExit(Exit::Called { code }) => {
                write!(f, "the tool called exit({code}) instead of answering")
            }
            Self::HandlerExit(Exit::Cancelled) => f.write_str("the call was cancelled"),
            Self::HandlerExit(Exit::Died) => f.write_str("what ran the tool died"),
            Self::Timeout(Timeout::Fuel { budget, .. }) => write!(f, "the tool used up its {budget} units of fuel"),
            Self::Timeout(Timeout::Deadline { budget, .. }) => {
                write!(f, "the tool was still running after {budget:?}")
            }
            Self::Timeout(Timeout::Blocked { budget, .. }) => {
                write!(f, "the tool was still waiting for the host after {budget:?}")
            }
            Self::InvalidReturn(rule) => rule.fmt(f),
            Self::NotFound => f.write_str("the tool has no handler"),
            Self::EncodingFailed(message) => write!(f, "the result could not be encoded: {message}"),
        }
    }
}

impl std::error::Error for ToolError {}

impl fmt::Display for ReturnRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson { field, detail } => write!(f, "the tool's `{field}` is {detail}"),
            Self::TooLarge { limit, got } => write!(f, "the tool returned {got} bytes; its limit is {limit}"),
            Self::TooManyParts { limit, got } => write!(f, "the tool returned {got} parts; the limit is {limit}"),
            Self::StateTooLarge { limit, got } => {
                write!(f, "the tool left {got} bytes of state with its question; the limit is {limit}")
            }
            Self::Schema { faults } => {
                f.write_str("the tool's value breaks its own output schema: ")?;
                crate::refusal::write_faults(f, faults)
            }
            Self::EmptyHalt => f.write_str("the tool halted without a reason"),
            Self::ReservedHalt { reason } => {
                write!(f, "the tool halted with `{reason}`, a reason that belongs to the loop")
            }
            Self::Policy { detail } => write!(f, "the run's policy for failures {detail}"),
            Self::Unreadable { detail } => write!(f, "the tool's return cannot be read: {detail}"),
        }
    }
}

impl Serialize for ToolError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("reason", &self.reason())?;
        match self {
            Self::HandlerRaised(raised) => map.serialize_entry("cause", raised)?,
            Self::HandlerExit(exit) => map.serialize_entry("cause", exit)?,
            Self::Timeout(timeout) => map.serialize_entry("cause", timeout)?,
            Self::InvalidReturn(rule) => map.serialize_entry("cause", rule)?,
            Self::EncodingFailed(cause) => map.serialize_entry("cause", cause)?,
            Self::NotFound => {}
        }
        map.serialize_entry("message", &self.to_string())?;
        if let Self::InvalidReturn(ReturnRule::ReservedHalt { reason }) = self {
            map.serialize_entry("metadata", &std::collections::BTreeMap::from([("reserved_halt_atom", reason)]))?;
        }
        map.end()
    }
}

impl Serialize for Timeout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let millis = |duration: &Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let mut map = serializer.serialize_map(Some(3))?;
        let (kind, unit, budget, used) = match self {
            Self::Fuel { budget, used } => ("fuel", "", *budget, *used),
            Self::Deadline { budget, used } => ("deadline", "_ms", millis(budget), millis(used)),
            Self::Blocked { budget, used } => ("blocked", "_ms", millis(budget), millis(used)),
        };
        map.serialize_entry("kind", kind)?;
        map.serialize_entry(&format!("budget{unit}"), &budget)?;
        map.serialize_entry(&format!("used{unit}"), &used)?;
        map.end()
    }
}
