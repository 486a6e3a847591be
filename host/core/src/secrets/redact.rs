//! Finds and replaces secret values in bytes, in every form in which an echo may show them.
//!
//! The HTTP client, the call redactor and the outbound scan use a [`Redactor`], which is built for
//! a set of values. `redact` returns the bytes with [`REPLACEMENT`] in place of each match;
//! `in_pieces` does so for a stream; `contains_value` and `finds_any` only search.
//! Forms: plain; base64 and base64url at any offset of the encoded text, also of base64 and of hex;
//! base32; hex; quoted-printable; lists of decimal numbers; URL-encoded once or twice, and as a
//! string of JSON or HTML, as common encoders write it; as numeric character escapes; reversed.
//! Letters match in both cases. The plain and reversed forms and the encodings of letters and
//! digits also match with white space, punctuation or zero-width characters in between. A form that
//! consists of words or of a number alone then counts only if the groups between its separators
//! have at most four characters on average, so that a sentence does not match. Of a value that is
//! split in two, each part of at least half of it and 8 bytes matches (12 bytes for a part without
//! both a letter and a digit, because words of a language look like that). Compressed bytes are
//! searched by [`Inflation`].
//! Invariants: pure; linear in the bytes, whatever they are; a stream gives one result, in any
//! pieces; memory is bounded, because a very large number of values is searched for in fewer forms.
//! Not here: values that a tool changes on purpose. Section "Limits of the search" of
//! `docs/security.md` lists the forms that are not found.

mod cache;
mod forms;
mod inflation;

use std::cell::LazyCell;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use tokio::task::yield_now;

use super::secret::Secret;
use forms::{Dropped, Forms, Pattern, Patterns, Pieces, SEPARATORS, in_skeleton, without};

pub(crate) use cache::Redactors;
pub(crate) use inflation::{Inflated, Inflation, InflationWork};

/// Text that replaces a secret.
pub(crate) const REPLACEMENT: &[u8] = b"[redacted]";
/// Factor by which separators may lengthen a form.
const SPREAD: usize = 8;
/// Characters between two separators of a form that is spelled out: at most this many on average.
const GROUP: usize = 4;
/// Bytes of all patterns up to which a DFA is used. It is three to five times as fast as the NFA,
/// and takes some 450 times the patterns' size in memory.
const MAX_TABLE: usize = 40 << 10;
/// Bytes searched at once. A search keeps a few times as many beside them.
const CHUNK: usize = 64 << 10;

/// Finds the forms of a set of secrets. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Redactor(Arc<Search>);

struct Search {
    values: Vec<Secret>,
    written: Automaton,
    bare: Automaton,
    skeleton: Automaton,
    /// Bytes. The longest form, separators included.
    reach: usize,
}

struct Automaton {
    search: AhoCorasick,
    /// By the number that a match names.
    patterns: Vec<Pattern>,
}

impl Automaton {
    fn new(patterns: Patterns) -> Option<Self> {
        let (texts, patterns): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        let bytes: usize = texts.iter().map(Vec::len).sum();
        let kind =
            if bytes <= MAX_TABLE { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
        let search = AhoCorasick::builder()
            .kind(Some(kind))
            // A prefilter would make text that resembles a form, such as base64, slower than other
            // text.
            .prefilter(false)
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(texts);
        Some(Self { search: search.ok()?, patterns })
    }
}

impl Redactor {
    /// Creates a redactor for these values. Returns `None` if they are too many and too long.
    pub(crate) fn new(values: Vec<Secret>) -> Option<Self> {
        Self::build(values, Pieces::Searched)
    }

    /// Creates a redactor that finds whole values only.
    #[cfg(test)]
    pub(crate) fn of_whole(values: Vec<Secret>) -> Option<Self> {
        Self::build(values, Pieces::Ignored)
    }

    fn build(mut values: Vec<Secret>, pieces: Pieces) -> Option<Self> {
        sort(&mut values);
        let texts: Vec<_> = values.iter().map(Secret::expose).collect();
        let Forms { written, bare, skeleton } = Forms::of(&texts, pieces);
        let longest = |patterns: &Patterns| patterns.keys().map(Vec::len).max().unwrap_or(0);
        let reach = longest(&written).max(SPREAD * longest(&bare).max(longest(&skeleton))).max(1);
        let (written, bare) = (Automaton::new(written)?, Automaton::new(bare)?);
        let skeleton = Automaton::new(skeleton)?;
        Some(Self(Arc::new(Search { values, written, bare, skeleton, reach })))
    }

    /// Returns the approximate size in memory, in bytes.
    fn size(&self) -> usize {
        let Search { written, bare, skeleton, .. } = &*self.0;
        [written, bare, skeleton].map(|automaton| automaton.search.memory_usage()).iter().sum()
    }

    /// Returns true if the redactor looks for this value.
    pub(crate) fn knows(&self, value: &Secret) -> bool {
        self.0.values.binary_search_by(|known| known.expose().cmp(value.expose())).is_ok()
    }

    /// Returns the values that the redactor looks for.
    pub(crate) fn values(&self) -> &[Secret] {
        &self.0.values
    }

    /// Returns true if these bytes contain one of the values.
    pub(crate) fn contains_value(&self, bytes: &[u8]) -> bool {
        self.finds(bytes, |_| true)
    }

    /// Returns true if these bytes contain one of the sought values. Yields to other tasks between
    /// chunks. A form that several values share counts only if all of them are sought.
    pub(crate) async fn finds_any(&self, bytes: &[u8], is_sought: &[bool]) -> bool {
        for from in (0..bytes.len()).step_by(CHUNK) {
            if self.finds_at(bytes, from, &|owners: &[usize]| all_sought(owners, is_sought)) {
                return true;
            }
            yield_now().await;
        }
        false
    }

    /// Returns true if these bytes contain a form whose owners are sought.
    fn finds(&self, bytes: &[u8], is_sought: impl Fn(&[usize]) -> bool) -> bool {
        (0..bytes.len()).step_by(CHUNK).any(|from| self.finds_at(bytes, from, &is_sought))
    }

    /// Returns the range of each match in these bytes.
    pub(crate) fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        self.0.each_match(bytes, |place, _| places.push(place));
        places
    }

    /// Returns true if a match begins in the chunk that starts at `from`.
    fn finds_at(&self, bytes: &[u8], from: usize, is_sought: &impl Fn(&[usize]) -> bool) -> bool {
        let to = from.saturating_add(CHUNK + self.0.reach).min(bytes.len());
        let mut is_found = false;
        self.0.each_match(&bytes[from..to], |_, owners| is_found |= is_sought(owners));
        is_found
    }

    /// Returns the bytes with each match replaced by [`REPLACEMENT`].
    pub(crate) fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        let mut pieces = self.in_pieces();
        let mut all = pieces.push(bytes);
        all.extend(pieces.finish());
        all
    }

    /// Starts the redaction of a stream.
    pub(crate) fn in_pieces(&self) -> Redaction {
        Redaction { redactor: self.clone(), held: Vec::new(), covered: 0 }
    }
}

impl Search {
    /// Calls `tell` with the place and the owners of every match in these bytes, in no particular
    /// order.
    fn each_match(&self, bytes: &[u8], mut tell: impl FnMut(Range<usize>, &[usize])) {
        if self.written.patterns.is_empty() {
            return;
        }
        for found in self.written.search.find_overlapping_iter(bytes) {
            tell(found.range(), &self.written.patterns[found.pattern().as_usize()].owners);
        }
        self.each_without(&self.bare, &SEPARATORS, bytes, &mut tell);
        self.each_without(&self.skeleton, in_skeleton(), bytes, &mut tell);
    }

    /// Calls `tell` for every match in the bytes that remain after dropping some.
    fn each_without(
        &self,
        automaton: &Automaton,
        dropped: &Dropped,
        bytes: &[u8],
        tell: &mut impl FnMut(Range<usize>, &[usize]),
    ) {
        if automaton.patterns.is_empty() {
            return;
        }
        let kept = without(bytes, dropped);
        let places = LazyCell::new(|| places(bytes, dropped));
        let gaps = LazyCell::new(|| gaps(&places));
        for found in automaton.search.find_overlapping_iter(&kept) {
            let (first, last) = (found.start(), found.end() - 1);
            let pattern = &automaton.patterns[found.pattern().as_usize()];
            let place = places[first]..places[last] + 1;
            let is_spelled = || (gaps[last] - gaps[first] + 1) * GROUP > last - first;
            if place.len() <= self.reach && (!pattern.is_spelled || is_spelled()) {
                tell(place, &pattern.owners);
            }
        }
    }
}

/// Sorts values and removes repeated ones.
fn sort(values: &mut Vec<Secret>) {
    values.sort_by(|one, other| one.expose().cmp(other.expose()));
    values.dedup_by(|one, other| one.expose() == other.expose());
}

/// Returns true if all of these values are sought.
fn all_sought(owners: &[usize], is_sought: &[bool]) -> bool {
    owners.iter().all(|owner| is_sought.get(*owner) == Some(&true))
}

/// Returns the original position of each byte that is kept.
fn places(bytes: &[u8], dropped: &Dropped) -> Vec<usize> {
    (0..bytes.len()).filter(|at| !dropped[usize::from(bytes[*at])]).collect()
}

/// Returns, for each byte that is kept, the number of gaps up to it.
fn gaps(places: &[usize]) -> Vec<usize> {
    let apart = places.iter().scan((None, 0), |(before, gaps), place| {
        *gaps += usize::from(before.is_some_and(|before: usize| before + 1 < *place));
        *before = Some(*place);
        Some(*gaps)
    });
    apart.collect()
}

/// Redacts a stream of bytes.
pub(crate) struct Redaction {
    redactor: Redactor,
    /// Bytes that may begin a value.
    held: Vec<u8>,
    /// Number of leading bytes of `held` that an earlier mark already replaced.
    covered: usize,
}

impl Redaction {
    /// Takes a piece of the stream. Returns the bytes that are final.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len());
        let reach = self.redactor.0.reach;
        for piece in piece.chunks(CHUNK) {
            self.held.extend_from_slice(piece);
            // Each search releases at least half of the bytes that it searches, so that small
            // pieces cost no more than large ones.
            if self.held.len() >= 2 * reach {
                // A form that begins before this position is complete here.
                self.release(self.held.len() + 1 - reach, &mut out);
            }
        }
        out
    }

    /// Returns the remaining bytes.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.held.len());
        self.release(self.held.len(), &mut out);
        out
    }

    fn release(&mut self, settled: usize, out: &mut Vec<u8>) {
        let mut spans = self.redactor.places(&self.held);
        spans.sort_unstable_by_key(|span| (span.start, span.end));
        let mut at = self.covered;
        for span in spans.into_iter().take_while(|span| span.start < settled) {
            // Overlapping matches get one mark.
            if span.start >= at {
                out.extend_from_slice(&self.held[at..span.start]);
                out.extend_from_slice(REPLACEMENT);
            }
            at = at.max(span.end);
        }
        if at < settled {
            out.extend_from_slice(&self.held[at..settled]);
            at = settled;
        }
        self.held.drain(..settled);
        self.covered = at - settled;
    }
}
