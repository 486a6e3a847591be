//! What the executor says when the handler could not say anything.
//!
//! In: how a cell or a native handler ended. Out: [`ToolError`], a closed reason with a typed cause.
//! Invariants: made by the host only; six reasons and no more (contract, section 2); text is for people, decisions go by type.
//! Not here: how an engine's error becomes one of these (`engine::classify`).

use std::any::Any;
use std::fmt;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::refusal::Fault;

/// Characters of a panic's message that are kept.
const MESSAGE_CHARS: usize = 2048;

/// The closed set of reasons.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The guest trapped, or a native handler panicked.
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

/// How a handler was torn from its work.
///
/// # Shape
/// As JSON: `{"kind", "limit"?, "backtrace"?, "panic_message"?}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Raised {
    /// What kind of end it was.
    pub kind: RaisedKind,
    /// The limit that the cell had run into before, if any: usually why it trapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitHit>,
    /// Guest functions, innermost first; bounded, names reduced to plain characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<String>,
    /// What the guest's language runtime wrote before it died, or the native panic's message; bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic_message: Option<String>,
}

impl Raised {
    pub(crate) fn new(kind: RaisedKind) -> Self {
        Self { kind, limit: None, backtrace: Vec::new(), panic_message: None }
    }

    /// A native handler's panic.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("a panic without a message").chars().take(MESSAGE_CHARS).collect();
        Self { panic_message: Some(text), ..Self::new(RaisedKind::NativePanic) }
    }
}

/// Kinds of [`Raised`].
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RaisedKind {
    /// An `unreachable` instruction: what an abort or a failed assertion compiles to.
    Unreachable,
    /// The guest's stack is exhausted.
    StackOverflow,
    /// A memory access out of bounds.
    MemoryOutOfBounds,
    /// A table access out of bounds.
    TableOutOfBounds,
    /// A call through a null or wrongly typed function reference.
    BadIndirectCall,
    /// Division by zero.
    DivisionByZero,
    /// An integer operation or a conversion whose result does not fit.
    ArithmeticOverflow,
    /// The guest broke the rules of the component model.
    BrokenAbi,
    /// A trap of a kind that guests of this engine configuration do not usually reach.
    OtherTrap,
    /// The cell could not be set up within its limits.
    LimitAtStart,
    /// A host function refused what the guest asked: over a limit (see `limit`), or impossible, as a handle that it never
    /// got.
    HostCall,
    /// A native handler panicked.
    NativePanic,
}

/// A limit that was run into.
///
/// # Shape
/// As JSON: `{"kind", "limit", "asked"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitHit {
    /// Which one.
    pub kind: LimitKind,
    /// The limit, in the unit of its kind.
    pub limit: u64,
    /// What was asked for, in the same unit.
    pub asked: u64,
}

impl LimitHit {
    pub(crate) fn new(kind: LimitKind, limit: u64, asked: u64) -> Self {
        Self { kind, limit, asked }
    }
}

/// Limits that a cell can run into without ending at once.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitKind {
    /// Bytes over all memories and tables of the cell.
    Memory,
    /// Elements of one table.
    TableElements,
    /// Calls from the guest into the host.
    HostCalls,
    /// Bytes that the host keeps for the cell between two calls: requests, streams, listings.
    HostBytes,
    /// Files and directories that cells have open.
    OpenFiles,
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
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "rule")]
#[non_exhaustive]
pub enum ReturnRule {
    /// A field that should be JSON is not, or nests too deep.
    NotJson {
        /// Which field.
        field: &'static str,
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

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            RaisedKind::Unreachable => "the tool aborted",
            RaisedKind::StackOverflow => "the tool exhausted its stack",
            RaisedKind::MemoryOutOfBounds => "the tool accessed memory out of bounds",
            RaisedKind::TableOutOfBounds => "the tool accessed a table out of bounds",
            RaisedKind::BadIndirectCall => "the tool called through a bad function reference",
            RaisedKind::DivisionByZero => "the tool divided by zero",
            RaisedKind::ArithmeticOverflow => "an integer of the tool overflowed",
            RaisedKind::BrokenAbi => "the tool broke the component model's rules",
            RaisedKind::OtherTrap => "the tool trapped",
            RaisedKind::LimitAtStart => "the tool does not fit its limits",
            RaisedKind::HostCall => "the host refused a call of the tool",
            RaisedKind::NativePanic => "the handler panicked",
        })?;
        if let Some(LimitHit { kind, limit, asked }) = self.limit {
            match kind {
                LimitKind::Memory => write!(f, " after it asked for {asked} bytes of memory; its limit is {limit}")?,
                LimitKind::TableElements => {
                    write!(f, " after it asked for a table of {asked} elements; the limit is {limit}")?;
                }
                LimitKind::HostCalls => write!(f, " after {asked} calls into the host; its limit is {limit}")?,
                LimitKind::HostBytes => write!(f, " after the host kept {asked} bytes for it; the limit is {limit}")?,
                LimitKind::OpenFiles => write!(f, ": too many files are open, and there may be {limit}")?,
            }
        }
        match &self.panic_message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ReturnRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson { field, detail } => write!(f, "the tool's `{field}` is {detail}"),
            Self::TooLarge { limit, got } => write!(f, "the tool returned {got} bytes; its limit is {limit}"),
            Self::StateTooLarge { limit, got } => {
                write!(f, "the tool left {got} bytes of state with its question; the limit is {limit}")
            }
            Self::Schema { faults } => {
                f.write_str("the tool's value breaks its own output schema: ")?;
                crate::refusal::write_faults(f, faults)
            }
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
