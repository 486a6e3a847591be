//! How an engine's error becomes a [`ToolError`].
//!
//! By type alone: a trap's code, a host function's own error, the limiter's record, and whether guest frames were on the
//! stack. No text is looked at.

use wasmtime::{Store, Trap, WasmBacktrace, WasmtimeBug};
use wasmtime_wasi::I32Exit;

use super::cell::{Cell, Stop};
use crate::defence::{Defence, stands};
use crate::tool_error::{Exit, Raised, RaisedKind, ReturnRule, Timeout, ToolError};

/// Characters of a guest function's name that are kept.
const NAME_CHARS: usize = 120;
/// Characters of the engine's words that are kept.
const DETAIL_CHARS: usize = 300;

/// What the guest was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The cell was being set up: memories, start functions.
    Start,
    /// An export was being called.
    Call,
}

/// Why the cell ended.
pub(super) fn classify(error: &wasmtime::Error, phase: Phase, store: &Store<Cell>, fuel_used: u64) -> ToolError {
    let cell = store.data();
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return ToolError::HandlerExit(Exit::Called { code: exit.0 });
    }
    if let Some(Stop(limit)) = error.downcast_ref::<Stop>() {
        let mut raised = Raised::new(RaisedKind::HostCall);
        raised.limit = Some(*limit);
        return raise(raised, error, cell);
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        let limits = cell.invocation.limits;
        return match kind_of(*trap) {
            End::OutOfFuel => ToolError::Timeout(Timeout::Fuel { budget: limits.fuel, used: fuel_used }),
            End::Deadline => ToolError::Timeout(Timeout::Deadline {
                budget: limits.timeout,
                used: cell.invocation.started.elapsed(),
            }),
            End::Raised(kind) => raise(Raised::new(kind), error, cell),
        };
    }
    if error.downcast_ref::<WasmtimeBug>().is_some() {
        tracing::error!(error = format!("{error:#}"), "the engine found a mistake of its own");
        return ToolError::HandlerRaised(Raised::by_the_host());
    }
    if error.downcast_ref::<WasmBacktrace>().is_some() {
        // A host function failed while the guest was calling it: the guest asked for something impossible.
        return raise(Raised::new(RaisedKind::HostCall), error, cell);
    }
    if phase == Phase::Start {
        return raise(Raised::new(RaisedKind::LimitAtStart), error, cell);
    }
    // The guest has returned, and what it returned (a value, or memory for its arguments) is not what it declared.
    ToolError::InvalidReturn(ReturnRule::Unreadable { detail: plain(&format!("{error:#}"), DETAIL_CHARS) })
}

fn raise(mut raised: Raised, error: &wasmtime::Error, cell: &Cell) -> ToolError {
    raised.limit = raised.limit.or(cell.limiter.hit());
    raised.panic_message = cell.last_words().map(|words| plain(without_advice(&words), usize::MAX));
    if let Some(trace) = error.downcast_ref::<WasmBacktrace>() {
        raised.backtrace = trace
            .frames()
            .iter()
            .map(|frame| match frame.func_name() {
                Some(name) => symbol(name),
                None => format!("func[{}]", frame.func_index()),
            })
            .collect();
    }
    ToolError::HandlerRaised(raised)
}

/// How a trap ends a call.
enum End {
    OutOfFuel,
    Deadline,
    Raised(RaisedKind),
}

fn kind_of(trap: Trap) -> End {
    use RaisedKind as Kind;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the engine's list of traps is open; ours ends with OtherTrap")]
    End::Raised(match trap {
        Trap::OutOfFuel => return End::OutOfFuel,
        Trap::Interrupt => return End::Deadline,
        Trap::UnreachableCodeReached => Kind::Unreachable,
        Trap::StackOverflow => Kind::StackOverflow,
        Trap::MemoryOutOfBounds | Trap::HeapMisaligned => Kind::MemoryOutOfBounds,
        Trap::TableOutOfBounds => Kind::TableOutOfBounds,
        Trap::IndirectCallToNull | Trap::BadSignature | Trap::NullReference => Kind::BadIndirectCall,
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

/// A guest's symbol without anything that a terminal or a log could take for more than a name.
fn symbol(name: &str) -> String {
    let allowed =
        |c: char| !stands(Defence::PlainSymbols) || c.is_ascii_alphanumeric() || "_$.:<>()&[], *{}#-".contains(c);
    name.chars().take(NAME_CHARS).map(|c| if allowed(c) { c } else { '?' }).collect()
}

/// A Rust guest's runtime ends with advice for somebody who could set its environment: nobody can.
fn without_advice(words: &str) -> &str {
    const ADVICE: &str = "note: run with `RUST_BACKTRACE=1`";
    words.find(ADVICE).and_then(|at| words.get(..at)).unwrap_or(words)
}

/// Text of a stranger on one line or several, without control characters.
fn plain(text: &str, most: usize) -> String {
    text.trim()
        .chars()
        .take(most)
        .map(|c| if c.is_control() && c != '\n' && stands(Defence::PlainWords) { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guests_names_are_names() {
        assert_eq!(symbol("<Vec<T>>::from\u{1b}[2J\n\u{202e}x"), "<Vec<T>>::from?[2J??x");
        assert_eq!(symbol(&"x".repeat(1000)).len(), NAME_CHARS);
    }

    /// Every trap that the engine knows, by how it ends here. Those in the last list are of proposals that are off.
    #[test]
    fn every_trap_has_an_end() {
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
