//! How a handler was torn from its work: a trap, a panic, a limit.

use std::any::Any;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fence;

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

    /// A panic of the host's.
    pub(crate) fn by_the_host() -> Self {
        Self::new(RaisedKind::HostPanic)
    }

    /// A native handler's panic.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self { panic_message: Some(fence::text(panic)), ..Self::new(RaisedKind::NativePanic) }
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
    /// The host panicked in the tool's cell, or its engine found a mistake of its own. The host's log says where: what went
    /// wrong in it is not for the tool.
    HostPanic,
}

impl RaisedKind {
    /// Whether code of this process panicked, and not the guest.
    #[must_use]
    pub const fn is_panic(self) -> bool {
        matches!(self, Self::NativePanic | Self::HostPanic)
    }
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
            RaisedKind::HostPanic => "the host failed as it served the tool",
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
