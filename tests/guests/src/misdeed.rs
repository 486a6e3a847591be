//! The misdeeds of hostile guests: a few instructions each, and the imports they need.

use std::borrow::Cow;

use crate::memory::DATA;

/// The size of the memory in bytes.
const SIZE: &str = "(i32.mul (memory.size) (i32.const 65536))";
/// The functions that misdeeds import, by the beginning of their calls. The first three read or write
/// the guest's memory.
static IMPORTS: [(&str, &str); 8] = [
    ("(call $log", r#"(import "toolcell:tool/log@0.1.0" "log" (func $log (param i32 i32 i32)))"#),
    (
        "(call $bytes",
        r#"(import "wasi:random/random@0.2.6" "get-random-bytes" (func $bytes (param i64 i32)))"#,
    ),
    ("(call $poll", r#"(import "wasi:io/poll@0.2.6" "poll" (func $poll (param i32 i32 i32)))"#),
    (
        "(call $block",
        r#"(import "wasi:io/poll@0.2.6" "[method]pollable.block" (func $block (param i32)))"#,
    ),
    ("(call $exit", r#"(import "wasi:cli/exit@0.2.6" "exit" (func $exit (param i32)))"#),
    (
        "(call $subscribe",
        r#"(import "wasi:clocks/monotonic-clock@0.2.6" "subscribe-duration"
            (func $subscribe (param i64) (result i32)))"#,
    ),
    (
        "(call $now",
        r#"(import "wasi:clocks/monotonic-clock@0.2.6" "now" (func $now (result i64)))"#,
    ),
    (
        "(call $abort",
        r#"(import "toolcell:tool/abort@0.1.0" "subscribe" (func $abort (result i32)))"#,
    ),
];
/// Grows the memory until that is refused.
const GROW: &str = "(loop $g (br_if $g (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))";

listed! {
    /// The action of a hostile guest in its place.
    pub enum Misdeed {
        /// Nothing.
        None,
        /// Loops for ever.
        Spin,
        /// Tail-calls itself for ever.
        TailCall,
        /// Tail-calls itself for ever through a table.
        TailCallIndirect,
        /// Spends its fuel in next to no time: its instructions count, but are optimised away.
        BurnFuel,
        /// Spends its time with next to no fuel: the host copies a long line for it, again and
        /// again.
        BurnTime,
        /// `unreachable`.
        Abort,
        /// Calls itself for ever.
        Recurse,
        /// Divides by zero.
        DivideByZero,
        /// Converts a number that does not fit.
        Overflow,
        /// Reads past the end of memory.
        ReadOutside,
        /// Reads past the end of a table.
        TableOutside,
        /// Calls a null reference.
        CallNull,
        /// Grows its memory until that is refused, then aborts as an allocator does.
        Hoard,
        /// Grows its table until that is refused, then aborts.
        HoardTable,
        /// Requests pollables and keeps them: each is an object of the host.
        HoardObjects,
        /// Makes resources of its own and keeps them: each is a handle.
        HoardHandles,
        /// Makes 1,500 resources of its own and keeps them.
        KeepSome,
        /// Blocks on a pollable handle that the host did not give it.
        ForgeHandle,
        /// Requests more random bytes than one call returns.
        AskTooMuch,
        /// Logs a line that is longer than one call may copy.
        SayTooMuch,
        /// Calls `exit` with success.
        Exit,
        /// Sleeps for a hundred years.
        Sleep,
        /// Logs a line for ever: one host call each time.
        Chatter,
        /// Reads the clock for ever.
        ReadClock,
        /// Waits until the caller raises the abort signal.
        AwaitAbort,
        /// Fills all the memory that it can get, again and again: the longest instruction there is.
        Fill,
        /// Copies all the memory that it can get, again and again.
        Copy,
        /// Fills the longest table that it can get, again and again.
        FillTable,
        /// Grows its memory by a page for ever, also after that is refused.
        GrowStorm,
        /// Requests as many random bytes as one call returns, for ever.
        DrawRandom,
        /// Sleeps for the longest duration that can be expressed.
        SleepLongest,
        /// Polls a list that names one pollable five thousand times.
        PollMany,
        /// Aborts if its memory, its table or a global is not new, then marks all of them.
        LeaveMarks,
    }
}

/// The calls that a misdeed makes out of its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallsOut {
    /// None.
    Never,
    /// With numbers only.
    Plainly,
    /// With data in its memory: these go through a table that is filled after the start functions
    /// have run.
    WithMemory,
}

impl Misdeed {
    /// Returns the calls that the instructions make out of their component.
    #[must_use]
    pub fn calls_out(self) -> CallsOut {
        let code = self.code();
        if IMPORTS[..3].iter().any(|(call, _)| code.contains(call)) {
            CallsOut::WithMemory
        } else if !self.imports().is_empty() || self.keeps_handles() {
            CallsOut::Plainly
        } else {
            CallsOut::Never
        }
    }

    /// Returns true if the instructions make resources of their component's own.
    pub(crate) fn keeps_handles(self) -> bool {
        matches!(self, Self::HoardHandles | Self::KeepSome)
    }

    /// Returns the instructions; they leave nothing on the stack.
    pub(crate) fn code(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::None => "",
            Self::Spin => "(loop $l (br $l))",
            Self::TailCall => "(call $tail)",
            Self::TailCallIndirect => "(table.set $t (i32.const 1) (ref.func $chain)) (call $chain)",
            Self::BurnFuel => {
                return format!("(loop $l {} (br $l))", "(drop (i32.const 0))".repeat(10_000)).into();
            }
            Self::BurnTime => {
                "(global.set $i (i32.mul (memory.grow (i32.const 24)) (i32.const 65536)))
                 (loop $l (call $log (i32.const 0) (global.get $i) (i32.const 0x18_0000)) (br $l))"
            }
            Self::Abort => "unreachable",
            Self::Recurse => "(call $recurse)",
            Self::DivideByZero => "(drop (i32.div_u (i32.const 1) (i32.load (i32.const 0))))",
            Self::Overflow => "(drop (i32.trunc_f64_u (f64.const 1e30)))",
            Self::ReadOutside => "(drop (i32.load (i32.const -4)))",
            Self::TableOutside => "(drop (table.get $t (i32.const 99)))",
            Self::CallNull => "(call_indirect $t (i32.const 0))",
            Self::Hoard => return [GROW, " unreachable"].concat().into(),
            Self::HoardTable => {
                "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)))) unreachable"
            }
            Self::HoardObjects => "(loop $l (drop (call $abort)) (br $l))",
            Self::HoardHandles => "(loop $l (drop (call $keep (i32.const 0))) (br $l))",
            Self::KeepSome => {
                "(global.set $i (i32.const 1500))
                 (loop $l
                   (drop (call $keep (i32.const 0)))
                   (global.set $i (i32.sub (global.get $i) (i32.const 1)))
                   (br_if $l (global.get $i)))"
            }
            Self::ForgeHandle => "(call $block (i32.const 77))",
            Self::AskTooMuch => "(call $bytes (i64.const 65537) (i32.const 0))",
            Self::SayTooMuch => {
                "(global.set $i (i32.mul (memory.grow (i32.const 112)) (i32.const 65536)))
                 (call $log (i32.const 0) (global.get $i) (i32.const 0x70_0000))"
            }
            Self::Exit => "(call $exit (i32.const 0))",
            Self::Sleep => "(call $block (call $subscribe (i64.const 3155760000000000000)))",
            Self::Chatter => "(loop $l (call $log (i32.const 2) (i32.const 1024) (i32.const 8)) (br $l))",
            Self::ReadClock => "(loop $l (drop (call $now)) (br $l))",
            Self::AwaitAbort => "(call $block (call $abort))",
            Self::Fill => {
                return [GROW, "(loop $l (memory.fill (i32.const 0) (i32.const 171) ", SIZE, ") (br $l))"]
                    .concat()
                    .into();
            }
            Self::Copy => {
                let copy = "(loop $l (memory.copy (i32.const 8) (i32.const 0) (i32.sub ";
                return [GROW, copy, SIZE, " (i32.const 8))) (br $l))"].concat().into();
            }
            Self::FillTable => {
                "(loop $g (br_if $g (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
                 (loop $l (table.fill $t (i32.const 0) (ref.func $recurse) (table.size $t)) (br $l))"
            }
            Self::GrowStorm => "(loop $l (drop (memory.grow (i32.const 1))) (br $l))",
            Self::DrawRandom => {
                "(loop $l
                   (global.set $heap (global.get $base))
                   (call $bytes (i64.const 65536) (i32.const 0))
                   (br $l))"
            }
            Self::SleepLongest => "(call $block (call $subscribe (i64.const -1)))",
            Self::PollMany => {
                "(drop (memory.grow (i32.const 1)))
                 (global.set $heap (i32.add (global.get $base) (i32.const 20000)))
                 (i32.store (global.get $base) (call $subscribe (i64.const 3155760000000000000)))
                 (global.set $i (i32.const 19996))
                 (loop $l
                   (i32.store (i32.add (global.get $base) (global.get $i)) (i32.load (global.get $base)))
                   (global.set $i (i32.sub (global.get $i) (i32.const 4)))
                   (br_if $l (global.get $i)))
                 (call $poll (global.get $base) (i32.const 5000) (i32.const 0))"
            }
            Self::LeaveMarks => return leave_marks().into(),
        })
    }

    /// Returns the imports that the instructions need. A component imports what its module imports.
    pub(crate) fn imports(self) -> Vec<&'static str> {
        let code = self.code();
        let needed = IMPORTS.iter().filter(|(call, _)| code.contains(call));
        needed.map(|(_, import)| *import).collect()
    }
}

/// Checks everything in which a guest could find data of another guest, and marks it: the memory
/// except the guest's own data and arguments, a global, and the elements of the table. Before that
/// it grows the memory by the configured pages, and the table by 64 elements for each.
fn leave_marks() -> String {
    let is_new = (0..8).fold("(i64.const 0)".to_owned(), |all, word| {
        format!("(i64.or {all} (i64.load offset={} (global.get $i)))", word * 8)
    });
    let given = "(i32.and (i32.add (global.get $heap) (i32.const 63)) (i32.const -64))";
    let text = include_str!("wat/marks.wat").replace("{is_new}", &is_new).replace("{given}", given);
    text.replace("{SIZE}", SIZE).replace("{DATA}", &DATA.to_string())
}
