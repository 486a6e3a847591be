//! Converts an error of wasmtime to the [`ToolError`] with which a call ends.
//!
//! A guest is the WebAssembly code of a tool. The code that runs a call passes each error to
//! [`classify`], with the phase (start of the instance, or a call of an export) and the fuel used
//! (executed instructions). The result is a timeout, an exit, a trap with the guest's panic message
//! and backtrace, a value that cannot be read, or a fault of the host.
//! It decides by type alone: the code of a trap, a host function's own error, the record of the
//! memory limiter, and whether guest frames were on the stack. One error type is private to
//! wasmtime, so its name is compared. Text that a guest could write decides nothing; where it is
//! shown, control characters are replaced.

mod frames;

use std::borrow::Cow;

use toolcell_contract::controls::enforced;
use toolcell_contract::outcome::tool_error::{
    Crash, CrashKind, Exit, ReturnRule, Timeout, ToolError,
};
use wasmtime::{Store, Trap, WasmBacktrace, WasmtimeBug};
use wasmtime_wasi::I32Exit;

use super::{COPY_SLACK, Cell};
use crate::tenant::limit_reached::LimitReached;

/// Characters of wasmtime's message that are kept.
const DETAIL_CHARS: usize = 300;

/// Prefix of a line of a stack trace that a guest prints.
const FRAME_PREFIX: &str = "    at ";

/// wasmtime's own error for a copy across the boundary that is larger than [`COPY_SLACK`] plus the
/// result's limit.
const TOO_MUCH_COPIED: &str = "HostcallFuelExhausted";

/// The phase in which a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The cell was being set up: memories, start functions.
    Start,
    /// An export was being called.
    Call,
}

/// Returns the error with which the cell ended.
pub(crate) fn classify(
    error: &wasmtime::Error,
    phase: Phase,
    store: &Store<Cell>,
    fuel_used: u64,
) -> ToolError {
    let cell = store.data();
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return ToolError::HandlerExit(Exit::Exited { code: exit.0 });
    }
    if let Some(LimitReached(limit)) = error.downcast_ref::<LimitReached>() {
        let mut raised = Crash::new(CrashKind::HostCall);
        raised.limit = Some(*limit);
        return raise(raised, error, cell);
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        let limits = cell.scope.invocation.limits;
        return match kind_of(*trap) {
            End::OutOfFuel => ToolError::Timeout(Timeout::Fuel {
                budget: limits.fuel,
                used: fuel_used,
                stdout: printed(cell),
            }),
            End::Deadline => ToolError::Timeout(Timeout::Deadline {
                budget: limits.timeout,
                used: cell.scope.invocation.started.elapsed(),
                stdout: printed(cell),
            }),
            End::Raised(kind) => raise(Crash::new(kind), error, cell),
        };
    }
    if error.downcast_ref::<WasmtimeBug>().is_some() {
        tracing::error!(error = format!("{error:#}"), "the engine reported a bug in itself");
        return ToolError::HandlerRaised(Crash::by_the_host());
    }
    if error.downcast_ref::<WasmBacktrace>().is_some() {
        // A host function failed while the guest was calling it: the guest asked for something
        // impossible.
        return raise(Crash::new(CrashKind::HostCall), error, cell);
    }
    if phase == Phase::Start {
        return raise(Crash::new(CrashKind::LimitAtStart), error, cell);
    }
    if error.chain().any(|cause| format!("{cause:?}") == TOO_MUCH_COPIED) {
        let limit = cell.scope.invocation.limits.result;
        let got = limit.saturating_add(COPY_SLACK as u64);
        return ToolError::InvalidReturn(ReturnRule::TooLarge { limit, actual: got });
    }
    // The guest has returned. Its value, or the memory for its arguments, is not what it declared.
    ToolError::InvalidReturn(ReturnRule::Unreadable {
        detail: plain(&format!("{error:#}"), DETAIL_CHARS),
    })
}

fn raise(mut raised: Crash, error: &wasmtime::Error, cell: &Cell) -> ToolError {
    raised.limit = raised.limit.or(cell.limiter.hit());
    raised.panic_message =
        cell.stderr_excerpt().map(|words| plain(&fold_repeats(panic_text(&words)), usize::MAX));
    raised.stdout = printed(cell).map(String::into_boxed_str);
    if let Some(trace) = error.downcast_ref::<WasmBacktrace>() {
        raised.backtrace = frames::names(trace);
        raised.frames = frames::positions(trace);
    }
    ToolError::HandlerRaised(raised)
}

/// Returns the text that a command has printed, if there is any.
fn printed(cell: &Cell) -> Option<String> {
    cell.captured()?.text()
}

/// The end of a call by a trap.
enum End {
    OutOfFuel,
    Deadline,
    Raised(CrashKind),
}

fn kind_of(trap: Trap) -> End {
    use CrashKind as Kind;
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the engine's list of traps is open; ours ends with OtherTrap"
    )]
    End::Raised(match trap {
        Trap::OutOfFuel => return End::OutOfFuel,
        Trap::Interrupt => return End::Deadline,
        Trap::UnreachableCodeReached => Kind::Unreachable,
        Trap::StackOverflow => Kind::StackOverflow,
        Trap::MemoryOutOfBounds | Trap::HeapMisaligned => Kind::MemoryOutOfBounds,
        Trap::TableOutOfBounds => Kind::TableOutOfBounds,
        Trap::IndirectCallToNull | Trap::BadSignature | Trap::NullReference => {
            Kind::BadIndirectCall
        }
        Trap::IntegerDivisionByZero => Kind::DivisionByZero,
        Trap::IntegerOverflow | Trap::BadConversionToInteger => Kind::ArithmeticOverflow,
        Trap::CannotEnterComponent
        | Trap::CannotLeaveComponent
        | Trap::InvalidChar
        | Trap::StringOutOfBounds
        | Trap::ListOutOfBounds
        | Trap::InvalidDiscriminant
        | Trap::UnalignedPointer => Kind::BrokenAbi,
        _ => Kind::OtherTrap,
    })
}

/// Returns the part of the last lines of standard error that a Rust panic wrote: from `panicked at`
/// to the advice to set `RUST_BACKTRACE`, which a cell's user cannot follow. Without a panic,
/// returns all lines.
fn panic_text(words: &str) -> &str {
    const PANICKED: &str = " panicked at ";
    const ADVICE: &str = "note: run with `RUST_BACKTRACE=1`";
    let words = words.rfind(ADVICE).and_then(|at| words.get(..at)).unwrap_or(words);
    let is_header = |(before, line): &(&str, &str)| {
        (before.is_empty() || before.ends_with('\n'))
            && line.lines().next().is_some_and(|line| line.contains(PANICKED))
    };
    let mut found =
        words.rmatch_indices("thread '").filter_map(|(at, _)| words.split_at_checked(at));
    let Some((_, text)) = found.find(is_header) else { return words };
    text.find(PANICKED).and_then(|at| text.get(at + 1..)).unwrap_or(words)
}

/// Shortens each run of equal lines of a stack trace to one line and a count: a recursion has
/// hundreds of them.
fn fold_repeats(words: &str) -> String {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    for equal in words.lines().collect::<Vec<_>>().chunk_by(|one, other| one == other) {
        match *equal {
            [line, _, _, ..] if line.starts_with(FRAME_PREFIX) => {
                lines.extend([line.into(), format!("    … {} more times", equal.len() - 1).into()]);
            }
            _ => lines.extend(equal.iter().map(|line| Cow::from(*line))),
        }
    }
    lines.join("\n")
}

/// Trims untrusted text, cuts it to `most` characters, and replaces its control characters except
/// line ends.
fn plain(text: &str, most: usize) -> String {
    text.trim()
        .chars()
        .take(most)
        .map(|c| if c.is_control() && c != '\n' && enforced!(PlainWords) { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn repeated_stack_lines_are_collapsed() {
        for (words, shown) in rows::<(&str, &str)>("engine/cell/classify", "stacks") {
            assert_eq!(fold_repeats(words), shown);
        }
    }

    #[test]
    fn panic_text_is_extracted() {
        for (words, text) in rows::<(&str, &str)>("engine/cell/classify", "panics") {
            assert_eq!(panic_text(words), text);
        }
    }

    /// Lists the end of every trap that wasmtime has. Those in the last list are of proposals that
    /// are off.
    #[test]
    fn every_trap_is_classified() {
        let mut ends = std::collections::BTreeMap::<String, Vec<String>>::new();
        for trap in (0..=u8::MAX).filter_map(Trap::from_u8) {
            let end = match kind_of(trap) {
                End::OutOfFuel => "Fuel".into(),
                End::Deadline => "Deadline".into(),
                End::Raised(kind) => format!("{kind:?}"),
            };
            ends.entry(end).or_default().push(format!("{trap:?}"));
        }
        insta::assert_snapshot!(format!("{ends:#?}"));
    }
}
