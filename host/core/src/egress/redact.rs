//! Takes the values of secrets out of what is read or written, in every form that a server echoes them in.
//!
//! In: values, and bytes in one piece or in many. Out: the bytes with [`MARK`] in place of each value.
//! Forms: plain; base64 and base64url wherever the value begins in the encoded text; hex; URL-encoded, as much or as little
//! as an encoder may; as a string of JSON. Letters of both cases.
//! Invariants: pure; linear in the bytes, whatever they are; pieces give what the whole gives.

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode};

use crate::defence::{Defence, stands};

/// What stands in place of a secret.
pub(crate) const MARK: &[u8] = b"[redacted]";
/// Shortest encoded form that is looked for, in bytes: shorter ones stand everywhere by chance.
const MIN_FORM: usize = 6;

/// Escapes what a component of a URL must, and no more.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// As JavaScript's `encodeURIComponent` does.
const SCRIPT: &AsciiSet = &COMPONENT.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');
/// As little as a query allows.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');
/// As little as a path allows.
const PATH: &AsciiSet = &QUERY.add(b'?').add(b'`').add(b'{').add(b'}');

/// Knows the forms of some secrets.
#[derive(Clone)]
pub(crate) struct Redactor {
    forms: AhoCorasick,
    longest: usize,
}

impl Redactor {
    /// For these values, or nothing where there are too many and too long ones to look for at once.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let forms: Vec<_> = values.into_iter().filter(|value| !value.is_empty()).flat_map(forms).collect();
        let longest = forms.iter().map(Vec::len).max().unwrap_or(0);
        let forms = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(forms)
            .ok()?;
        Some(Self { forms, longest })
    }

    /// Whether one of the values stands in these bytes.
    pub(crate) fn finds(&self, bytes: &[u8]) -> bool {
        self.forms.is_match(bytes)
    }

    /// The bytes without them.
    pub(crate) fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        let mut pieces = self.clone().in_pieces();
        let mut all = pieces.feed(bytes);
        all.extend(pieces.finish());
        all
    }

    /// For bytes that come in pieces.
    pub(crate) fn in_pieces(self) -> Redaction {
        Redaction { redactor: self, held: Vec::new() }
    }
}

/// Redacts bytes that come in pieces.
pub(crate) struct Redaction {
    redactor: Redactor,
    /// What may be the beginning of a value.
    held: Vec<u8>,
}

impl Redaction {
    /// One more piece. Returns what can be said already.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        // Each search lets go of half of what it searches: the smallest pieces cost no more than the largest.
        if self.held.len() < 2 * self.redactor.longest {
            return Vec::new();
        }
        // A form that begins before this is here in full.
        let settled = (self.held.len() + 1).saturating_sub(self.redactor.longest.max(1));
        self.release(settled)
    }

    /// The rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.release(self.held.len())
    }

    fn release(&mut self, settled: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(settled);
        let mut from = 0;
        while let Some(found) = self.redactor.forms.find(Input::new(&self.held).range(from..)) {
            if found.start() >= settled {
                break;
            }
            out.extend_from_slice(&self.held[from..found.start()]);
            out.extend_from_slice(MARK);
            from = found.end();
        }
        let kept = settled.max(from);
        out.extend_from_slice(&self.held[from..kept]);
        self.held.drain(..kept);
        out
    }
}

fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    if !stands(Defence::EncodedSecrets) {
        return vec![value.to_vec()];
    }
    let mut forms = Vec::new();
    for before in 0..3 {
        forms.extend(base64_inside(before, value));
    }
    forms.push(value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect());
    forms.push(value.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect());
    for kept in [NON_ALPHANUMERIC, COMPONENT, SCRIPT, QUERY, PATH] {
        let escaped = percent_encode(value, kept).to_string();
        forms.push(escaped.replace("%20", "+").into_bytes());
        forms.push(escaped.into_bytes());
    }
    forms.push(url::form_urlencoded::byte_serialize(value).collect::<String>().into_bytes());
    if let Ok(text) = std::str::from_utf8(value) {
        let quoted = serde_json::Value::from(text).to_string();
        let inside = quoted[1..quoted.len() - 1].to_owned();
        forms.push(inside.replace('/', "\\/").into_bytes());
        forms.push(inside.into_bytes());
    }
    forms.retain(|form| form.len() >= MIN_FORM);
    forms.push(value.to_vec());
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// The characters of base64 that the value alone decides when this many bytes of its group stand before it.
fn base64_inside(before: usize, value: &[u8]) -> [Vec<u8>; 2] {
    let bytes = [&[0; 2][..before], value].concat();
    // Of the first character that the value has a part in, some bits are those of what stands before it; of the last one,
    // those of what follows.
    let from = [0, 2, 3][before];
    let to = bytes.len() * 8 / 6;
    [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD]
        .map(|engine| engine.encode(&bytes).as_bytes().get(from..to).unwrap_or_default().to_vec())
}
