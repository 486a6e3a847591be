//! The misdeeds of hostile guests: a few instructions each, and the imports they need.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::memory::DATA;

/// The size of the memory in bytes.
const SIZE: &str = "(i32.mul (memory.size) (i32.const 65536))";
/// The functions that misdeeds import, by the beginning of their calls. The first three read or
/// write the guest's memory.
static IMPORTS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    serde_norway::from_str(include_str!("wat/imports.yaml")).expect("pairs of texts")
});
/// Grows the memory until that is refused.
const GROW: &str = "(loop $g (br_if $g (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))";

listed! {
    /// The action of a hostile guest in its place.
    #[allow(missing_docs, reason = "`wat/misdeeds.yaml` describes each")]
    pub enum Misdeed {
        None, Spin, TailCall, TailCallIndirect, BurnFuel, BurnTime, Abort, Recurse, DivideByZero,
        Overflow, ReadOutside, TableOutside, CallNull, Hoard, HoardTable, HoardObjects,
        HoardHandles, KeepSome, ForgeHandle, AskTooMuch, SayTooMuch, Exit, Sleep, Chatter,
        ReadClock, AwaitAbort, Fill, Copy, FillTable, GrowStorm, DrawRandom, SleepLongest,
        PollMany, LeaveMarks,
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
        needed.map(|(_, import)| import.as_str()).collect()
    }
}
