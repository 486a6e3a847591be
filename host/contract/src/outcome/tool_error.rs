//! The error of a call whose handler gave no valid answer: it trapped, exited, timed out, or broke
//! a rule.
//!
//! The engine, the executor and a run make a [`ToolError`] when a handler (the code of a tool) ends
//! without an answer or with one that is not allowed. There are exactly six reasons ([`Reason`]),
//! each with a typed cause, such as the [`Timeout`] that says which budget was used up. Programs
//! decide by these types; the texts are for people. A handler cannot make one: an error that the
//! handler itself reports is an `Outcome`.
//!
//! Not here: the translation of the WebAssembly engine's errors into these, in
//! `engine/cell/classify`.
//!
//! Source: docs/contract.md, section 2.

mod blocked_on;
mod raised;

use std::fmt;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::refusal::{Fault, joined};

pub use blocked_on::BlockedOn;
pub use raised::{Crash, CrashKind, Frame, LimitHit, LimitKind};

/// The reason why a handler gave no valid answer: a closed set.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The guest trapped, or a native handler or the host panicked.
    HandlerRaised,
    /// The guest called `exit`, the call was cancelled, or the task or process that ran it died.
    HandlerExit,
    /// The budget of instructions or of time is used up.
    Timeout,
    /// The handler's answer violates a rule: see [`ReturnRule`].
    InvalidReturn,
    /// The tool has no handler.
    NotFound,
    /// The encoder of a run failed. The executor itself never reports this.
    EncodingFailed,
}

impl Reason {
    /// Returns the reason's name, the same in JSON, in spans and in messages.
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

/// The error of a call whose handler gave no valid answer. The executor makes it; a handler cannot.
///
/// # Shape
/// As JSON: `{"reason", "cause"?, "message"}`. A `reserved_halt` also has `metadata`.
#[derive(Debug, Clone, PartialEq, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "reason", content = "cause")]
pub enum ToolError {
    /// See [`Reason::HandlerRaised`].
    #[error("{0}")]
    HandlerRaised(Crash),
    /// See [`Reason::HandlerExit`].
    #[error("{0}")]
    HandlerExit(Exit),
    /// See [`Reason::Timeout`].
    #[error("{0}")]
    Timeout(Timeout),
    /// See [`Reason::InvalidReturn`].
    #[error("{0}")]
    InvalidReturn(ReturnRule),
    /// See [`Reason::NotFound`].
    #[error("the host has no handler for a tool of this name")]
    NotFound,
    /// See [`Reason::EncodingFailed`]. Holds the encoder's message.
    #[error("the result could not be encoded: {0}")]
    EncodingFailed(String),
}

impl ToolError {
    /// Returns the reason, without its cause.
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

    /// Returns the standard output of a command that was ended.
    #[doc(hidden)]
    pub fn stdout(&self) -> Option<&str> {
        match self {
            Self::HandlerRaised(raised) => raised.stdout.as_deref(),
            Self::Timeout(timeout) => timeout.stdout(),
            Self::HandlerExit(_)
            | Self::InvalidReturn(_)
            | Self::NotFound
            | Self::EncodingFailed(_) => None,
        }
    }
}

/// The end of a handler before it answered.
///
/// # Shape
/// As JSON: `{"status": "exited" | "cancelled" | "process_ended", "code"?}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "status")]
#[non_exhaustive]
pub enum Exit {
    /// The guest called `exit`.
    #[error(
        "the tool called `exit` with {} instead of returning an answer",
        if *.code == 0 { "success" } else { "a failure" }
    )]
    Exited {
        /// 0 if the guest exited with success, 1 otherwise. WASI 0.2 tells the host no more than
        /// that: a tool's `exit(3)` arrives as 1.
        code: i32,
    },
    /// The caller cancelled the call or dropped its future.
    #[error("the call was cancelled")]
    Cancelled,
    /// The task or the process that ran the call died.
    #[error("the task or process that ran the tool died")]
    ProcessEnded,
}

/// The budget that is used up.
///
/// # Shape
/// As JSON: `{"kind": "fuel", "budget", "used"}`; `"deadline"` and `"blocked"` in whole
/// milliseconds, as `budget_ms` and `used_ms`. A `"blocked"` can have `blocked_on`, a
/// [`BlockedOn`]. Each can have `stdout`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Timeout {
    /// Out of fuel, in the engine's instruction units.
    #[error("the tool used up its {budget} units of fuel")]
    Fuel {
        /// The budget.
        budget: u64,
        /// The amount that was used.
        used: u64,
        /// The standard output of a command until then.
        #[serde(skip_serializing_if = "Option::is_none")]
        stdout: Option<String>,
    },
    /// The deadline passed while the guest, or a plain closure, was running.
    #[error("the tool was still running after {budget:?}")]
    Deadline {
        /// The time limit.
        #[serde(rename = "budget_ms", with = "millis")]
        budget: Duration,
        /// The time that passed.
        #[serde(rename = "used_ms", with = "millis")]
        used: Duration,
        /// The standard output of a command until then.
        #[serde(skip_serializing_if = "Option::is_none")]
        stdout: Option<String>,
    },
    /// The deadline passed while the guest was waiting for the host, or in a native handler.
    #[error("the tool was still waiting {}after {budget:?}", for_event(*.blocked_on))]
    Blocked {
        /// The time limit.
        #[serde(rename = "budget_ms", with = "millis")]
        budget: Duration,
        /// The time that passed.
        #[serde(rename = "used_ms", with = "millis")]
        used: Duration,
        /// The event that the guest waited for, if the host knows it.
        #[serde(skip_serializing_if = "Option::is_none")]
        blocked_on: Option<BlockedOn>,
        /// The standard output of a command until then.
        #[serde(skip_serializing_if = "Option::is_none")]
        stdout: Option<String>,
    },
}

impl Timeout {
    /// Returns the standard output of a command until then. Bytes that are not UTF-8 are shown as
    /// U+FFFD.
    #[must_use]
    pub fn stdout(&self) -> Option<&str> {
        let (Self::Fuel { stdout, .. }
        | Self::Deadline { stdout, .. }
        | Self::Blocked { stdout, .. }) = self;
        stdout.as_deref()
    }

    /// Returns the timeout with these durations in place of its own. A timeout of fuel is not
    /// changed.
    #[doc(hidden)]
    pub fn with_durations(self, budget: Duration, used: Duration) -> Self {
        match self {
            Self::Fuel { .. } => self,
            Self::Deadline { stdout, .. } => Self::Deadline { budget, used, stdout },
            Self::Blocked { blocked_on, stdout, .. } => {
                Self::Blocked { budget, used, blocked_on, stdout }
            }
        }
    }

    /// Returns the standard output for writing.
    #[doc(hidden)]
    pub fn stdout_mut(&mut self) -> &mut Option<String> {
        let (Self::Fuel { stdout, .. }
        | Self::Deadline { stdout, .. }
        | Self::Blocked { stdout, .. }) = self;
        stdout
    }
}

/// The rule that an answer violates.
///
/// # Shape
/// As JSON: `{"rule": NAME, …}` with the fields by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "rule")]
#[non_exhaustive]
pub enum ReturnRule {
    /// A field is not valid JSON, is nested too deep, or does not have the form that the contract
    /// gives it.
    #[error("the tool's `{field}` is {detail}")]
    NotJson {
        /// The field.
        field: String,
        /// The problem of the field.
        detail: String,
    },
    /// All texts and bytes of the answer together exceed the limit.
    #[error("the tool returned {actual} bytes or more; the limit is {limit}")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
        /// The size in bytes. For a return so large that the host does not copy it: the bytes that
        /// the host would have copied, which are more.
        actual: u64,
    },
    /// The answer has more parts than the limit.
    #[error("the tool returned {actual} parts; the limit is {limit}")]
    TooManyParts {
        /// The limit.
        limit: u64,
        /// The number of parts.
        actual: u64,
    },
    /// The state of a question is larger than can be sealed.
    #[error("the state of the tool's question has {actual} bytes; the limit is {limit}")]
    StateTooLarge {
        /// The limit in bytes.
        limit: u64,
        /// The size in bytes.
        actual: u64,
    },
    /// The value does not match the tool's output schema.
    #[error("the tool's value does not match its output schema: {}", joined(.faults))]
    Schema {
        /// All faults.
        faults: Vec<Fault>,
    },
    /// `halt` with an empty or blank reason.
    #[error("the tool halted without a reason")]
    EmptyHalt,
    /// `halt` with a reserved reason: see
    /// [`Halt::RESERVED_REASONS`](crate::outcome::Halt::RESERVED_REASONS).
    #[error("the tool halted with the reserved reason `{reason}`")]
    ReservedHalt {
        /// The reason.
        reason: String,
    },
    /// The policy function of a run panicked or gave no answer when it was asked about a failure of
    /// the tool.
    #[error("the policy function of the run {detail}")]
    Policy {
        /// The failure of the function, for example `panicked: …`.
        detail: String,
    },
    /// The answer cannot be read at all: it is not of the declared type, or much too large.
    #[error("the tool's answer cannot be read: {detail}")]
    Unreadable {
        /// The engine's message.
        detail: String,
    },
}

/// Names the event that a guest waited for, if it is known, before `after`.
fn for_event(blocked_on: Option<BlockedOn>) -> String {
    blocked_on.map(|event| format!("for {} ", event.words())).unwrap_or_default()
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
            map.serialize_entry("metadata", &serde_json::json!({"reserved_halt_atom": reason}))?;
        }
        map.end()
    }
}

/// Whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
