//! The detail of `handler_raised`: a handler (the code of a tool) ended by a trap, panic or limit.
//!
//! The engine makes a [`Crash`] from the trap of a guest (the WebAssembly code of a tool), the
//! executor from a panic of a native handler. It says the kind of the end, the limit that the cell
//! (a fresh WebAssembly instance for one call) had reached before (usually the cause), the guest's
//! functions on the stack, and the panic's message. Traces and texts come from the guest, so they
//! are bounded. A panic of the host itself carries no details; those are in the host's log only.
//!
//! Not here: the limits of time and fuel, whose end is a `Timeout`.

use std::any::Any;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::panic_guard;

/// The end of a handler by a trap, a panic or a limit.
///
/// # Shape
/// As JSON: `{"kind", "limit"?, "backtrace"?, "frames"?, "panic_message"?, "stdout"?}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Crash {
    /// The cause of the end.
    pub kind: CrashKind,
    /// The limit that the cell had reached before, if any: usually the cause of the trap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitHit>,
    /// The tool's functions, innermost first: at most 24, with at most 120 plain characters each.
    /// Rust names are demangled. Functions of the Rust standard library and of the guest SDK are
    /// left out. A function without a name is `func[INDEX]`: in Rust, `strip = "debuginfo"` in the
    /// profile keeps the names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<String>,
    /// The positions of all functions on the stack, innermost first: at most 24. Functions of
    /// adapters are left out. If the component has debug information, the source lines can be found
    /// from these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
    /// The text of the panic: of a Rust guest from `panicked at` on, of another guest the last
    /// lines on its standard error, of a native handler the panic's message. At most 2 KiB of a
    /// guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic_message: Option<String>,
    /// The standard output of a command until then. Bytes that are not UTF-8 are shown as U+FFFD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Box<str>>,
}

impl Crash {
    #[doc(hidden)]
    pub fn new(kind: CrashKind) -> Self {
        Self {
            kind,
            limit: None,
            backtrace: Vec::new(),
            frames: Vec::new(),
            panic_message: None,
            stdout: None,
        }
    }

    /// Creates the end by a panic of the host.
    #[doc(hidden)]
    pub fn by_the_host() -> Self {
        Self::new(CrashKind::HostPanic)
    }

    /// Creates the end by a panic of a native handler.
    #[doc(hidden)]
    pub fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self { panic_message: Some(panic_guard::text(panic)), ..Self::new(CrashKind::NativePanic) }
    }
}

/// A position in the code of a component.
///
/// # Shape
/// As JSON: `{"function", "offset"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Frame {
    /// The index of the function in its core module.
    pub function: u32,
    /// The position of the instruction, in bytes from the start of the function's code.
    pub offset: u64,
}

impl Frame {
    /// Creates the position of an instruction of a function.
    #[must_use]
    pub const fn new(function: u32, offset: u64) -> Self {
        Self { function, offset }
    }
}

/// Kinds of [`Crash`].
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CrashKind {
    /// An `unreachable` instruction: a panic, an abort or a failed assertion.
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
    /// Another kind of trap.
    OtherTrap,
    /// The cell could not be set up within its limits.
    LimitAtStart,
    /// A host function rejected the guest's request: it exceeds a limit (see `limit`), or it is
    /// invalid, for example with an unknown handle.
    HostCall,
    /// A native handler panicked.
    NativePanic,
    /// The host panicked while it ran the tool, or its engine found a bug in itself. Details are in
    /// the host's log only.
    HostPanic,
}

impl CrashKind {
    /// Returns true if native code of this process panicked, as opposed to the guest.
    #[must_use]
    pub const fn is_panic(self) -> bool {
        matches!(self, Self::NativePanic | Self::HostPanic)
    }
}

/// A limit that was reached.
///
/// # Shape
/// As JSON: `{"kind", "limit", "requested"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitHit {
    /// The kind of the limit.
    pub kind: LimitKind,
    /// The limit, in the unit of its kind.
    pub limit: u64,
    /// The amount that was requested, in the same unit.
    pub requested: u64,
}

impl LimitHit {
    #[doc(hidden)]
    pub fn new(kind: LimitKind, limit: u64, requested: u64) -> Self {
        Self { kind, limit, requested }
    }
}

/// Limits that a cell can reach without being ended at once.
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
    /// Bytes that the host holds for the cell between calls into the host: requests, streams,
    /// listings.
    HostBytes,
    /// Files and directories that cells have open.
    OpenFiles,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            CrashKind::Unreachable => "the tool aborted",
            CrashKind::StackOverflow => "the tool exhausted its stack",
            CrashKind::MemoryOutOfBounds => "the tool accessed memory out of bounds",
            CrashKind::TableOutOfBounds => "the tool accessed a table out of bounds",
            CrashKind::BadIndirectCall => "the tool called through a bad function reference",
            CrashKind::DivisionByZero => "the tool divided by zero",
            CrashKind::ArithmeticOverflow => "an integer overflowed in the tool",
            CrashKind::BrokenAbi => "the tool violated the rules of the component model",
            CrashKind::OtherTrap => "the tool trapped",
            CrashKind::LimitAtStart => "the tool cannot start within its limits",
            CrashKind::HostCall => "the host rejected a request of the tool",
            CrashKind::NativePanic => "the handler panicked",
            CrashKind::HostPanic => "the host failed while it ran the tool",
        })?;
        if let Some(LimitHit { kind, limit, requested }) = self.limit {
            match kind {
                LimitKind::Memory if self.kind == CrashKind::LimitAtStart => {
                    write!(f, ": it needs {requested} bytes of memory, and")
                }
                LimitKind::Memory => write!(f, " after it asked for {requested} bytes of memory;"),
                LimitKind::TableElements => {
                    write!(f, " after it asked for a table of {requested} elements;")
                }
                LimitKind::HostCalls => write!(f, " after {requested} calls into the host;"),
                LimitKind::HostBytes => {
                    write!(f, " after it made the host hold {requested} bytes for it;")
                }
                LimitKind::OpenFiles => f.write_str(": too many files are open;"),
            }?;
            write!(f, " the limit is {limit}")?;
        }
        self.panic_message.iter().try_for_each(|message| write!(f, ": {message}"))
    }
}
