//! Searches compressed data for secrets, even if nothing declares that it is compressed.
//!
//! The HTTP client pushes the pieces of a body into an [`Inflation`]; the call redactor searches
//! binary results with `Redactor::inflated`. The format (gzip, zlib, or deflate without a header)
//! is recognised from the first bytes. Each piece is inflated and searched; the result is clean, a
//! secret, or too large.
//! A form is found with the piece in which it ends. Data that inflates to more than 64 MiB is
//! reported as too large, and the caller refuses it; the parts of one result have this bound
//! together. Memory and work are bounded, whatever the pieces. Bytes that cannot be inflated are
//! clean.
//! Source: RFC 1950, 1951 and 1952.

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use toolcell_contract::controls::enforced;

use super::{Redactor, all_sought};

/// Bytes. The largest inflated body or result: eight times the bytes that a call may receive.
const MAX_INFLATED: usize = 64 << 20;
/// Bytes searched for one body. Each search starts with the tail of the last one, so that many
/// small pieces cost more than a few large ones.
const MAX_SEARCHED: usize = 512 << 20;
/// Bytes inflated at once.
const PIECE: usize = 32 << 10;
/// Inflated bytes after which a search pauses, so that others of its thread get a turn.
const AT_ONCE: usize = 1 << 20;
/// Bytes of a gzip header, which can contain names.
const MAX_HEADER: usize = 64 << 10;

/// The result of searching compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inflated {
    /// No value so far, or no compressed data.
    Clean,
    /// A value was found.
    Secret,
    /// The content exceeds the limit of the search.
    TooLarge,
}

/// Searches one body.
pub(crate) struct Inflation {
    redactor: Redactor,
    is_sought: Vec<bool>,
    state: State,
    /// The end of the searched bytes, in which a form may have begun.
    tail: Vec<u8>,
    work: InflationWork,
    /// Bytes that were inflated until the last pause.
    paused_at: usize,
}

/// The work of a search, or of the searches for several parts of one result.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InflationWork {
    inflated: usize,
    searched: usize,
}

enum State {
    /// The bytes so far, which are too short to recognise the format.
    Undetected(Vec<u8>),
    Inflating(Box<InflateState>),
    /// The data cannot be inflated, or has ended.
    Done,
}

impl Redactor {
    /// Searches the bytes that these inflate to. `work` is that of earlier searches with the same
    /// bound, and grows.
    pub(crate) fn inflated(&self, mut bytes: &[u8], work: &mut InflationWork) -> Inflated {
        let mut search = Inflation { work: *work, ..Inflation::new(self.clone()) };
        let mut found = Inflated::Clean;
        while found == Inflated::Clean && !bytes.is_empty() {
            found = search.push(&mut bytes);
        }
        *work = search.work;
        found
    }
}

impl Inflation {
    /// Creates a search for all values.
    pub(crate) fn new(redactor: Redactor) -> Self {
        let all = vec![true; redactor.values().len()];
        Self::of(redactor, all)
    }

    /// Creates a search for the sought values.
    pub(crate) fn of(redactor: Redactor, is_sought: Vec<bool>) -> Self {
        let is_needed = is_sought.contains(&true) && enforced!(DeflatedSecrets);
        let stage = if is_needed { State::Undetected(Vec::new()) } else { State::Done };
        let work = InflationWork::default();
        Self { redactor, is_sought, state: stage, tail: Vec::new(), work, paused_at: 0 }
    }

    /// Returns true, once, if at least [`AT_ONCE`] bytes were inflated since the last pause: then
    /// the caller should pause.
    pub(crate) fn takes_pause(&mut self) -> bool {
        let is_due = self.work.inflated - self.paused_at >= AT_ONCE;
        if is_due {
            self.paused_at = self.work.inflated;
        }
        is_due
    }

    /// Takes the next piece. If it inflates to more than [`AT_ONCE`] bytes, leaves a rest in
    /// `piece`, to be pushed next.
    pub(crate) fn push(&mut self, piece: &mut &[u8]) -> Inflated {
        let (found, left) = match &mut self.state {
            State::Done => (Inflated::Clean, 0),
            State::Inflating(_) => self.inflate(piece),
            State::Undetected(begun) => {
                begun.extend_from_slice(piece);
                if let Some(from) = start(begun) {
                    let begun = std::mem::take(begun);
                    self.state = State::Inflating(InflateState::new_boxed(DataFormat::Raw));
                    self.inflate(&begun[from..])
                } else {
                    if begun.len() > MAX_HEADER {
                        self.state = State::Done;
                    }
                    (Inflated::Clean, 0)
                }
            }
        };
        *piece = &piece[piece.len().saturating_sub(left)..];
        found
    }

    /// Returns the result, and the number of bytes at the end of the piece that are left.
    fn inflate(&mut self, mut piece: &[u8]) -> (Inflated, usize) {
        let until = self.work.inflated + AT_ONCE;
        let mut out = vec![0; PIECE];
        while let State::Inflating(state) = &mut self.state {
            let done = inflate(state, piece, &mut out, MZFlush::None);
            piece = &piece[done.bytes_consumed..];
            match done.status {
                Ok(MZStatus::Ok) | Err(MZError::Buf) => {}
                Ok(MZStatus::StreamEnd | MZStatus::NeedDict) | Err(_) => self.state = State::Done,
            }
            let found = self.search(&out[..done.bytes_written]);
            let is_settled = done.bytes_consumed == 0 && done.bytes_written == 0;
            if found != Inflated::Clean || is_settled {
                return (found, 0);
            }
            if self.work.inflated >= until && !piece.is_empty() {
                return (Inflated::Clean, piece.len());
            }
        }
        (Inflated::Clean, 0)
    }

    fn search(&mut self, more: &[u8]) -> Inflated {
        if more.is_empty() {
            return Inflated::Clean;
        }
        self.tail.extend_from_slice(more);
        self.work.inflated += more.len();
        self.work.searched += self.tail.len();
        let is_sought = |owners: &[usize]| all_sought(owners, &self.is_sought);
        if self.redactor.finds(&self.tail, is_sought) {
            return Inflated::Secret;
        }
        if self.work.inflated > MAX_INFLATED || self.work.searched > MAX_SEARCHED {
            return Inflated::TooLarge;
        }
        self.tail.drain(..self.tail.len().saturating_sub(self.redactor.0.reach));
        Inflated::Clean
    }
}

/// Returns the offset at which deflate data begins, or `None` if more bytes are needed.
fn start(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [] | [_] => None,
        [0x1f, 0x8b, ..] => gzip(bytes),
        // A zlib header: a window of at most 32 KiB, and a checksum over both bytes.
        [method, flags, ..]
            if method & 0x8f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31) =>
        {
            Some(2)
        }
        _ => Some(0),
    }
}

/// Returns the offset at which the gzip header ends.
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
