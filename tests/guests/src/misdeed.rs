//! The misdeeds of hostile guests: a few instructions each, and the imports they need.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::memory::DATA;

/// The size of the memory in bytes.
const SIZE: &str = "(i32.mul (memory.size) (i32.const 65536))";
/// The functions that misdeeds import, by the beginning of their calls. The first three read or
/// write the guest's memory.
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
    /// Returns the misdeed of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|misdeed| format!("{misdeed:?}") == name)
    }

    /// Returns the calls that the instructions make out of their component.
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

    /// Returns the instructions: those of `wat/misdeeds.yaml`, with the parts that its names in
    /// braces stand for.
    pub(crate) fn code(self) -> String {
        static CODES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
            serde_norway::from_str(include_str!("wat/misdeeds.yaml")).expect("texts by name")
        });
        let is_new = (0..8).fold("(i64.const 0)".to_owned(), |all, word| {
            format!("(i64.or {all} (i64.load offset={} (global.get $i)))", word * 8)
        });
        let burn = "(drop (i32.const 0))".repeat(10_000);
        let code = CODES[&format!("{self:?}")].replace("{IS_NEW}", &is_new);
        let code = code.replace("{SIZE}", SIZE).replace("{DATA}", &DATA.to_string());
        code.replace("{GROW}", GROW).replace("{BURN}", &burn)
    }

    /// Returns the imports that the instructions need. A component imports what its module imports.
    pub(crate) fn imports(self) -> Vec<&'static str> {
        let code = self.code();
        let needed = IMPORTS.iter().filter(|(call, _)| code.contains(call));
        needed.map(|(_, import)| *import).collect()
    }
}
