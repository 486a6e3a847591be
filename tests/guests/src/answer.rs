//! Answers of hand-written guests.

use crate::memory::Memory;

/// The answer of `execute`, if it gets that far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// `ok` with the arguments as value.
    Echo,
    /// `ok` with this text as value.
    Value(&'static str),
    /// `ok` with a value of this many megabytes.
    Megabytes(u32),
    /// `ok` with `null` and this many parts, each an empty text.
    Parts(usize),
    /// `error` with this message.
    Error(&'static str),
    /// `ask-user` with this question.
    Ask(&'static str),
    /// `halt` with this reason.
    Halt(&'static str),
    /// A discriminant that no case of `outcome` has.
    NoShape,
    /// A value whose pointer lies outside of memory.
    Outside,
    /// A value that is not UTF-8.
    NotText,
}

/// Bytes of a `variant part` in the canonical ABI.
const PART_BYTES: usize = 48;

impl Answer {
    /// Puts the return area of `execute` into memory. Returns its address and code that fills it.
    /// Offsets are those of `variant outcome` in the canonical ABI.
    pub(crate) fn area(self, memory: &mut Memory) -> (u32, String) {
        let mut area = [0_u32; 12];
        let mut fill = String::new();
        match self {
            Self::Value(text) => area[2..4].copy_from_slice(&memory.text(text)),
            Self::Parts(count) => {
                area[2..4].copy_from_slice(&memory.text("null"));
                // A part of zeros is a text without bytes.
                area[7] = memory.put(&vec![0; count * PART_BYTES]);
                area[8] = u32::try_from(count).expect("a few parts");
            }
            Self::NotText => {
                let bytes = memory.put(b"\"\xff\xfe\"");
                area[2..4].copy_from_slice(&[bytes, 4]);
            }
            Self::Outside => area[2..4].copy_from_slice(&[u32::MAX - 8, 4]),
            Self::NoShape => area[0] = 9,
            Self::Error(text) | Self::Ask(text) => {
                area[0] = if matches!(self, Self::Error(_)) { 1 } else { 2 };
                area[2..4].copy_from_slice(&memory.text(text));
            }
            Self::Halt(reason) => {
                area[0] = 3;
                area[2..4].copy_from_slice(&memory.text(reason));
                area[4..6].copy_from_slice(&memory.text("null"));
            }
            Self::Echo | Self::Megabytes(_) => {}
        }
        let at = memory.words(&area);
        if self == Self::Echo {
            // The parameters lie in memory: `call.arguments` is their third text.
            for (from, to) in [(16, 8), (20, 12)] {
                let load = format!("(i32.load offset={from} (local.get 0))");
                fill.push_str(&format!("(i32.store offset={to} (i32.const {at}) {load})"));
            }
        } else if let Self::Megabytes(count) = self {
            // A string of that size, quotes included.
            let (pages, bytes) = (count * 16, count << 20);
            fill.push_str(&format!(
                "(global.set $i (i32.mul (memory.grow (i32.const {pages})) (i32.const 65536)))
                 (memory.fill (global.get $i) (i32.const 97) (i32.const {bytes}))
                 (i32.store8 (global.get $i) (i32.const 34))
                 (i32.store8 offset={last} (global.get $i) (i32.const 34))
                 (i32.store offset=8 (i32.const {at}) (global.get $i))
                 (i32.store offset=12 (i32.const {at}) (i32.const {bytes}))",
                last = bytes - 1,
            ));
        }
        (at, fill)
    }
}
