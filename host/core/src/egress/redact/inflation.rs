//! Searches what is compressed and does not say so: gzip, zlib, and deflate without a header.
//!
//! In: the bytes of a body, in pieces. Out: whether a value stands in what they inflate to.
//! Invariants: a form is found with the piece in which it ends; what inflates to more than is
//! searched is told; memory is bounded, and so is the work, whatever the pieces.
//! Source: RFC 1950, 1951 and 1952.

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use super::Redactor;
use crate::defence::{Defence, stands};

/// Bytes that a body may inflate to: eight times what a call may receive.
const MAX_INFLATED: usize = 64 << 20;
/// Bytes that are searched for one body. Each search covers what a form may have begun in, so that
/// many small pieces cost more than a few large ones.
const MAX_SEARCHED: usize = 512 << 20;
/// Bytes that are inflated at once.
const PIECE: usize = 32 << 10;
/// Bytes of a header of gzip, which has room for names.
const MAX_HEADER: usize = 64 << 10;

/// What compressed bytes come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inflated {
    /// No value so far, or nothing that is compressed.
    Clean,
    /// A value.
    Secret,
    /// More than is searched.
    TooLarge,
}

/// Searches one body.
pub(crate) struct Inflation {
    redactor: Redactor,
    is_sought: Vec<bool>,
    stage: Stage,
    /// What a form may have begun in.
    tail: Vec<u8>,
    inflated: usize,
    searched: usize,
}

enum Stage {
    /// What has come is too short to tell what it is.
    Begun(Vec<u8>),
    Inflating(Box<InflateState>),
    /// It is nothing that can be inflated, or has ended.
    Over,
}

impl Redactor {
    /// Whether one of the values stands in what these bytes inflate to.
    pub(crate) fn inflated(&self, bytes: &[u8]) -> Inflated {
        Inflation::new(self.clone()).feed(bytes)
    }
}

impl Inflation {
    /// For all values.
    pub(crate) fn new(redactor: Redactor) -> Self {
        let all = vec![true; redactor.values().len()];
        Self::of(redactor, all)
    }

    /// For the values that are sought.
    pub(crate) fn of(redactor: Redactor, is_sought: Vec<bool>) -> Self {
        let is_needed = is_sought.contains(&true) && stands(Defence::DeflatedSecrets);
        let stage = if is_needed { Stage::Begun(Vec::new()) } else { Stage::Over };
        Self { redactor, is_sought, stage, tail: Vec::new(), inflated: 0, searched: 0 }
    }

    /// One more piece.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Inflated {
        match &mut self.stage {
            Stage::Over => Inflated::Clean,
            Stage::Inflating(_) => self.inflate(piece),
            Stage::Begun(begun) => {
                begun.extend_from_slice(piece);
                let Some(from) = start(begun) else {
                    if begun.len() > MAX_HEADER {
                        self.stage = Stage::Over;
                    }
                    return Inflated::Clean;
                };
                let begun = std::mem::take(begun);
                self.stage = Stage::Inflating(InflateState::new_boxed(DataFormat::Raw));
                self.inflate(&begun[from..])
            }
        }
    }

    fn inflate(&mut self, mut piece: &[u8]) -> Inflated {
        let mut out = vec![0; PIECE];
        while let Stage::Inflating(state) = &mut self.stage {
            let done = inflate(state, piece, &mut out, MZFlush::None);
            piece = &piece[done.bytes_consumed..];
            match done.status {
                Ok(MZStatus::Ok) | Err(MZError::Buf) => {}
                Ok(MZStatus::StreamEnd | MZStatus::NeedDict) | Err(_) => self.stage = Stage::Over,
            }
            let told = self.search(&out[..done.bytes_written]);
            let is_settled = done.bytes_consumed == 0 && done.bytes_written == 0;
            if told != Inflated::Clean || is_settled {
                return told;
            }
        }
        Inflated::Clean
    }

    fn search(&mut self, more: &[u8]) -> Inflated {
        if more.is_empty() {
            return Inflated::Clean;
        }
        self.tail.extend_from_slice(more);
        self.inflated += more.len();
        self.searched += self.tail.len();
        if self.redactor.finds_sought(&self.tail, &self.is_sought) {
            return Inflated::Secret;
        }
        if self.inflated > MAX_INFLATED || self.searched > MAX_SEARCHED {
            return Inflated::TooLarge;
        }
        self.tail.drain(..self.tail.len().saturating_sub(self.redactor.0.reach));
        Inflated::Clean
    }
}

/// Where deflate begins in these bytes; nothing where more of them are needed to tell.
fn start(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [] | [_] => None,
        [0x1f, 0x8b, ..] => gzip(bytes),
        // A window of 32 KiB at most, and a checksum over both bytes.
        [method, flags, ..]
            if method & 0x8f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31) =>
        {
            Some(2)
        }
        _ => Some(0),
    }
}

/// Where the header of gzip ends.
fn gzip(bytes: &[u8]) -> Option<usize> {
    let (flags, mut at) = (*bytes.get(3)?, 10);
    if flags & 4 != 0 {
        at += 2 + usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    }
    for text in [8, 16] {
        if flags & text != 0 {
            at += bytes.get(at..)?.iter().position(|byte| *byte == 0)? + 1;
        }
    }
    at += if flags & 2 != 0 { 2 } else { 0 };
    (at <= bytes.len()).then_some(at)
}
