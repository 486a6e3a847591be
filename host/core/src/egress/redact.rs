//! Takes the values of secrets out of what is read or written, in every form that one echoes them in.
//!
//! In: values, and bytes in one piece or in many. Out: the bytes with [`MARK`] in place of each value.
//! Forms: plain; base64 and base64url wherever the value begins in the encoded text; hex; URL-encoded once or twice, as much
//! or as little as an encoder may; as a string of JSON or HTML, also by the numbers of its characters; backwards. Letters of
//! both cases. Plain, base64, hex and backwards also with white space, quotes or characters without width in between. Of a
//! value that is broken in two, each piece of at least half of it and 8 bytes (12 without both a letter and a digit, which
//! words of a language have too).
//! Invariants: pure; linear in the bytes, whatever they are; pieces give what the whole gives; memory is bounded, by looking
//! for fewer forms where there are very many values.
//! Not here: what somebody writes who does not want it to be found. Whoever is given a value can change it beyond recognition.

mod forms;
mod kept;

use std::cell::LazyCell;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use tokio::task::yield_now;

use crate::secret::Secret;
use forms::{Forms, Patterns, Pieces, is_separator};

pub(crate) use kept::Redactors;

/// What stands in place of a secret.
pub(crate) const MARK: &[u8] = b"[redacted]";
/// How many times longer than a form it may be with what stands in between.
const SPREAD: usize = 8;
/// Bytes of all patterns together up to which they are searched for with a table of every state and byte: three to five times
/// as fast as without, and some 450 times the patterns in memory.
const MAX_TABLE: usize = 40 << 10;
/// Bytes that are searched at once: what a search keeps beside them is a few times as much.
const CHUNK: usize = 64 << 10;

/// Knows the forms of some secrets. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Redactor(Arc<Search>);

struct Search {
    values: Vec<Secret>,
    written: Automaton,
    bare: Automaton,
    /// No form is longer than this, separators included.
    reach: usize,
}

struct Automaton {
    patterns: AhoCorasick,
    /// Whose form each pattern may be.
    owners: Vec<Vec<usize>>,
}

impl Automaton {
    fn new(patterns: Patterns) -> Option<Self> {
        let (patterns, owners): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        let bytes: usize = patterns.iter().map(Vec::len).sum();
        let kind = if bytes <= MAX_TABLE { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
        let mut builder = AhoCorasick::builder();
        // Without a filter in front, text that looks like a form, as base64 does, takes as long as any other.
        builder.kind(Some(kind)).prefilter(false).match_kind(MatchKind::Standard).ascii_case_insensitive(true);
        Some(Self { patterns: builder.build(patterns).ok()?, owners })
    }
}

/// A form of a value in some bytes.
struct Found<'a> {
    start: usize,
    end: usize,
    owners: &'a [usize],
}

impl Redactor {
    /// For these values, or nothing where there are too many and too long ones to look for at once.
    pub(crate) fn new(values: Vec<Secret>) -> Option<Self> {
        Self::made(values, Pieces::Sought)
    }

    /// The same, of whole values only.
    #[cfg(test)]
    pub(super) fn of_whole(values: Vec<Secret>) -> Option<Self> {
        Self::made(values, Pieces::Left)
    }

    fn made(mut values: Vec<Secret>, pieces: Pieces) -> Option<Self> {
        values.sort_by(|one, other| one.expose().cmp(other.expose()));
        values.dedup_by(|one, other| one.expose() == other.expose());
        let bytes: Vec<_> = values.iter().map(|value| value.expose().as_bytes()).collect();
        let Forms { written, bare } = Forms::of(&bytes, pieces);
        let longest = |patterns: &Patterns| patterns.keys().map(Vec::len).max().unwrap_or(0);
        let reach = longest(&written).max(SPREAD * longest(&bare)).max(1);
        let (written, bare) = (Automaton::new(written)?, Automaton::new(bare)?);
        Some(Self(Arc::new(Search { values, written, bare, reach })))
    }

    /// Bytes that it takes, about.
    fn size(&self) -> usize {
        self.0.written.patterns.memory_usage() + self.0.bare.patterns.memory_usage()
    }

    /// Whether it looks for this value.
    pub(crate) fn knows(&self, value: &Secret) -> bool {
        self.0.values.binary_search_by(|known| known.expose().cmp(value.expose())).is_ok()
    }

    /// The values that it looks for.
    pub(crate) fn values(&self) -> &[Secret] {
        &self.0.values
    }

    /// Whether one of the values stands in these bytes.
    pub(crate) fn finds(&self, bytes: &[u8]) -> bool {
        (0..bytes.len()).step_by(CHUNK).any(|from| self.finds_at(bytes, from, |_| true))
    }

    /// Whether one of the values that are sought stands in these bytes; others have their turn in between. A form that two
    /// values have in common is one of a sought value only if both are.
    pub(super) async fn finds_any(&self, bytes: &[u8], is_sought: &[bool]) -> bool {
        let sought = |owners: &[usize]| owners.iter().all(|owner| is_sought.get(*owner) == Some(&true));
        for from in (0..bytes.len()).step_by(CHUNK) {
            if self.finds_at(bytes, from, sought) {
                return true;
            }
            yield_now().await;
        }
        false
    }

    /// Whether a form begins in the piece of the bytes that begins here.
    fn finds_at(&self, bytes: &[u8], from: usize, is_sought: impl Fn(&[usize]) -> bool) -> bool {
        let to = from.saturating_add(CHUNK + self.0.reach).min(bytes.len());
        let mut is_found = false;
        self.0.each(&bytes[from..to], |found| is_found |= is_sought(found.owners));
        is_found
    }

    /// The bytes without them.
    pub(crate) fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        let mut pieces = self.in_pieces();
        let mut all = pieces.feed(bytes);
        all.extend(pieces.finish());
        all
    }

    /// For bytes that come in pieces.
    pub(crate) fn in_pieces(&self) -> Redaction {
        Redaction { redactor: self.clone(), held: Vec::new(), covered: 0 }
    }
}

impl Search {
    /// Every form in these bytes, in no order.
    fn each<'a>(&'a self, bytes: &[u8], mut tell: impl FnMut(Found<'a>)) {
        let owners =
            |automaton: &'a Automaton, pattern: usize| automaton.owners.get(pattern).map_or(&[][..], Vec::as_slice);
        if self.written.owners.is_empty() {
            return;
        }
        for found in self.written.patterns.find_overlapping_iter(bytes) {
            let owners = owners(&self.written, found.pattern().as_usize());
            tell(Found { start: found.start(), end: found.end(), owners });
        }
        if self.bare.owners.is_empty() {
            return;
        }
        let bare = without_separators(bytes);
        let places = LazyCell::new(|| places_without_separators(bytes));
        for found in self.bare.patterns.find_overlapping_iter(&bare) {
            let (start, end) = (places[found.start()], places[found.end() - 1] + 1);
            if end - start <= self.reach {
                tell(Found { start, end, owners: owners(&self.bare, found.pattern().as_usize()) });
            }
        }
    }
}

/// What is left of the bytes. Written as it is because every byte goes through it: no branch.
fn without_separators(bytes: &[u8]) -> Vec<u8> {
    let (mut bare, mut length) = (vec![0; bytes.len()], 0);
    for byte in bytes {
        bare[length] = *byte;
        length += usize::from(!is_separator(*byte));
    }
    bare.truncate(length);
    bare
}

/// Where each byte that is left stood.
fn places_without_separators(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|at| !is_separator(bytes[*at])).collect()
}

/// Redacts bytes that come in pieces.
pub(crate) struct Redaction {
    redactor: Redactor,
    /// What may be the beginning of a value.
    held: Vec<u8>,
    /// Bytes at the beginning of these for which a mark was written already.
    covered: usize,
}

impl Redaction {
    /// One more piece. Returns what can be said already.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len());
        let reach = self.redactor.0.reach;
        for piece in piece.chunks(CHUNK) {
            self.held.extend_from_slice(piece);
            // Each search lets go of half of what it searches: the smallest pieces cost no more than the largest.
            if self.held.len() >= 2 * reach {
                // A form that begins before this is here in full.
                self.release(self.held.len() + 1 - reach, &mut out);
            }
        }
        out
    }

    /// The rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.held.len());
        self.release(self.held.len(), &mut out);
        out
    }

    fn release(&mut self, settled: usize, out: &mut Vec<u8>) {
        let mut spans = Vec::new();
        self.redactor.0.each(&self.held, |found| spans.push((found.start, found.end)));
        spans.sort_unstable();
        let mut at = self.covered;
        for (start, end) in spans.into_iter().take_while(|(start, _)| *start < settled) {
            // Forms that overlap are one.
            if start >= at {
                out.extend_from_slice(&self.held[at..start]);
                out.extend_from_slice(MARK);
            }
            at = at.max(end);
        }
        if at < settled {
            out.extend_from_slice(&self.held[at..settled]);
            at = settled;
        }
        self.held.drain(..settled);
        self.covered = at - settled;
    }
}
