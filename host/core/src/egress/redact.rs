//! Takes the values of secrets out of what is read or written, in every form that one echoes them
//! in.
//!
//! In: values, and bytes in one piece or in many. Out: the bytes with [`MARK`] in place of each
//! value. Forms: plain; base64 and base64url wherever the value begins in the encoded text, also of
//! base64 and of hex; base32; hex; quoted-printable; lists of decimal numbers; URL-encoded once or
//! twice, as much or as little as an encoder may; as a string of JSON or HTML, also by the numbers
//! of its characters; backwards. Letters of both cases. Plain, backwards and the encodings of
//! letters and digits also with white space, punctuation or characters without width in between:
//! what is words or a number by itself counts where punctuation stands after every fourth character
//! at the latest, so that a sentence is none. Of a value that is broken in two, each piece of at
//! least half of it and 8 bytes (12 without both a letter and a digit, which words of a language
//! have too). What is compressed is searched by [`Inflation`].
//! Invariants: pure; linear in the bytes, whatever they are; pieces give what the whole gives;
//! memory is bounded, by looking for fewer forms where there are very many values.
//! Not here: values that a tool changes on purpose. `docs/security.md` lists what is not found.

mod forms;
mod inflation;
mod kept;

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use tokio::task::yield_now;

use crate::secret::Secret;
use forms::{Dropped, Forms, Patterns, Pieces, SEPARATORS, in_skeleton, without};

pub(crate) use inflation::{Inflated, Inflation};
pub(crate) use kept::Redactors;

/// What stands in place of a secret.
pub(crate) const MARK: &[u8] = b"[redacted]";
/// How many times longer than a form it may be with what stands in between.
const SPREAD: usize = 8;
/// Characters that stand together at most, on average, where words are spelled out.
const GROUP: usize = 4;
/// Bytes of all patterns together up to which they are searched for with a table of every state and
/// byte: three to five times as fast as without, and some 450 times the patterns in memory.
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
    skeleton: Automaton,
    /// No form is longer than this, separators included.
    reach: usize,
}

struct Automaton {
    patterns: AhoCorasick,
    /// Whose form each pattern may be.
    owners: Vec<Vec<usize>>,
    /// Whether it counts only where it is spelled out.
    spelled: Vec<bool>,
}

impl Automaton {
    fn new(patterns: Patterns, spelled: &BTreeSet<Vec<u8>>) -> Option<Self> {
        let (patterns, owners): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        let spelled = patterns.iter().map(|pattern| spelled.contains(pattern)).collect();
        let bytes: usize = patterns.iter().map(Vec::len).sum();
        let kind =
            if bytes <= MAX_TABLE { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
        let mut builder = AhoCorasick::builder();
        // Without a filter in front, text that looks like a form, as base64 does, takes as long as
        // any other.
        builder
            .kind(Some(kind))
            .prefilter(false)
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true);
        Some(Self { patterns: builder.build(patterns).ok()?, owners, spelled })
    }

    fn owners(&self, pattern: usize) -> &[usize] {
        self.owners.get(pattern).map_or(&[], Vec::as_slice)
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
        let Forms { written, bare, skeleton, spelled } = Forms::of(&bytes, pieces);
        let longest = |patterns: &Patterns| patterns.keys().map(Vec::len).max().unwrap_or(0);
        let reach = longest(&written).max(SPREAD * longest(&bare).max(longest(&skeleton))).max(1);
        let none = BTreeSet::new();
        let (written, bare) = (Automaton::new(written, &none)?, Automaton::new(bare, &none)?);
        let skeleton = Automaton::new(skeleton, &spelled)?;
        Some(Self(Arc::new(Search { values, written, bare, skeleton, reach })))
    }

    /// Bytes that it takes, about.
    fn size(&self) -> usize {
        let Search { written, bare, skeleton, .. } = &*self.0;
        [written, bare, skeleton]
            .into_iter()
            .map(|automaton| automaton.patterns.memory_usage())
            .sum()
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

    /// Whether one of the values that are sought stands in these bytes; others have their turn in
    /// between. A form that two values have in common is one of a sought value only if both are.
    pub(super) async fn finds_any(&self, bytes: &[u8], is_sought: &[bool]) -> bool {
        let sought = |owners: &[usize]| are_sought(owners, is_sought);
        for from in (0..bytes.len()).step_by(CHUNK) {
            if self.finds_at(bytes, from, sought) {
                return true;
            }
            yield_now().await;
        }
        false
    }

    /// The same, at once.
    fn finds_sought(&self, bytes: &[u8], is_sought: &[bool]) -> bool {
        (0..bytes.len())
            .step_by(CHUNK)
            .any(|from| self.finds_at(bytes, from, |owners| are_sought(owners, is_sought)))
    }

    /// From where to where each form stands in these bytes.
    pub(super) fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        self.0.each(bytes, |found| places.push(found.start..found.end));
        places
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
        if self.written.owners.is_empty() {
            return;
        }
        for found in self.written.patterns.find_overlapping_iter(bytes) {
            let owners = self.written.owners(found.pattern().as_usize());
            tell(Found { start: found.start(), end: found.end(), owners });
        }
        self.each_without(&self.bare, &SEPARATORS, bytes, &mut tell);
        self.each_without(&self.skeleton, in_skeleton(), bytes, &mut tell);
    }

    /// Every form in what is left of the bytes.
    fn each_without<'a>(
        &'a self,
        automaton: &'a Automaton,
        dropped: &Dropped,
        bytes: &[u8],
        tell: &mut impl FnMut(Found<'a>),
    ) {
        if automaton.owners.is_empty() {
            return;
        }
        let kept = without(bytes, dropped);
        let places = LazyCell::new(|| places(bytes, dropped));
        let gaps = LazyCell::new(|| gaps(&places));
        for found in automaton.patterns.find_overlapping_iter(&kept) {
            let (first, last) = (found.start(), found.end() - 1);
            let (start, end, pattern) =
                (places[first], places[last] + 1, found.pattern().as_usize());
            let is_spelled = || (gaps[last] - gaps[first] + 1) * GROUP > last - first;
            if end - start <= self.reach && (!automaton.spelled[pattern] || is_spelled()) {
                tell(Found { start, end, owners: automaton.owners(pattern) });
            }
        }
    }
}

/// Whether all of these are.
fn are_sought(owners: &[usize], is_sought: &[bool]) -> bool {
    owners.iter().all(|owner| is_sought.get(*owner) == Some(&true))
}

/// Where each byte that is left stood.
fn places(bytes: &[u8], dropped: &Dropped) -> Vec<usize> {
    (0..bytes.len()).filter(|at| !dropped[usize::from(bytes[*at])]).collect()
}

/// Up to each byte that is left, how many stood apart from the one before.
fn gaps(places: &[usize]) -> Vec<usize> {
    let apart = places.iter().scan((None, 0), |(before, gaps), place| {
        *gaps += usize::from(before.is_some_and(|before: usize| before + 1 < *place));
        *before = Some(*place);
        Some(*gaps)
    });
    apart.collect()
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
            // Each search lets go of half of what it searches: the smallest pieces cost no more
            // than the largest.
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
