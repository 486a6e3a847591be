//! The forms in which a value is written, as the patterns that are looked for.
//!
//! In: values. Out: patterns, each with the values that it may be a form of. Some are looked for in
//! the bytes as they are, some in what is left of the bytes without separators, and most in their
//! letters and digits alone.
//! Invariants: pure; what stands everywhere by chance is no pattern; the patterns of all values
//! together are bounded, and the rarer forms go first.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode};

use crate::defence::{Defence, stands};

/// The two alphabets of base32. Source: RFC 4648, sections 6 and 7.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const BASE32_HEX: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// Shortest encoded form that is looked for, in bytes: shorter ones stand everywhere by chance.
const MIN_FORM: usize = 6;
/// Shortest piece of a value that is looked for, in bytes, and shortest form without separators.
const MIN_PIECE: usize = 8;
/// Shortest piece without both a letter and a digit, in bytes: below it is many a word of a
/// language.
const MIN_WORD: usize = 12;
/// Longest piece that is looked for, in bytes. A longer one has it in it.
const MAX_PIECE: usize = 32;
/// Bytes of all patterns together before the rarer forms are left out. An automaton takes some ten
/// times as much memory; a value of 40 bytes has 7,000 in all forms and 1,000 in the usual ones.
const MAX_PATTERNS: usize = 1 << 20;

/// Escapes what a component of a URL must, and no more.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// As JavaScript's `encodeURIComponent` does.
const SCRIPT: &AsciiSet =
    &COMPONENT.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');
/// As little as a query allows.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');
/// As little as a path allows.
const PATH: &AsciiSet = &QUERY.add(b'?').add(b'`').add(b'{').add(b'}');

/// Patterns, each with the numbers of the values that it may be a form of.
pub(super) type Patterns = BTreeMap<Vec<u8>, Vec<usize>>;

/// What is looked for, by what of the bytes it is looked for in.
#[derive(Debug, Default)]
pub(super) struct Forms {
    /// In the bytes as they are.
    pub(super) written: Patterns,
    /// In the bytes without separators.
    pub(super) bare: Patterns,
    /// In the letters and digits of the bytes.
    pub(super) skeleton: Patterns,
    /// Those of the skeleton that are words or a number by themselves: they count where they are
    /// spelled out.
    pub(super) spelled: BTreeSet<Vec<u8>>,
}

/// How many of its forms a value is looked for in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Every,
    Usual,
    Plain,
}

/// Whether a piece of a value is looked for, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pieces {
    /// It is: who writes it may know the value.
    Sought,
    /// It is not: who writes it would learn from the answer how a value goes on.
    Left,
}

impl Forms {
    /// Of these values, in as many forms as their number leaves room for.
    pub(super) fn of(values: &[&[u8]], pieces: Pieces) -> Self {
        for extent in [Extent::Every, Extent::Usual] {
            let forms = Self::within(values, extent, pieces);
            if forms.size() <= MAX_PATTERNS {
                return forms;
            }
        }
        Self::within(values, Extent::Plain, pieces)
    }

    fn within(values: &[&[u8]], extent: Extent, pieces: Pieces) -> Self {
        let mut forms = Self::default();
        for (number, value) in values.iter().enumerate() {
            for form in written(value, extent, pieces) {
                note(&mut forms.written, form, number);
            }
            if stands(Defence::SpacedSecrets) {
                forms.spaced(value, number, extent);
            }
            if extent != Extent::Plain && forms.size() > MAX_PATTERNS {
                break;
            }
        }
        forms
    }

    /// Notes the forms that are also found when something stands between their characters.
    fn spaced(&mut self, value: &[u8], number: usize, extent: Extent) {
        let mut plain = vec![value.to_vec()];
        if extent == Extent::Every {
            plain.push(value.iter().rev().copied().collect());
        }
        for form in plain {
            let skeleton = without(&form, in_skeleton());
            let is_long = skeleton.len() >= MIN_PIECE;
            if is_long && is_mixed(&skeleton) {
                note(&mut self.skeleton, skeleton, number);
                continue;
            }
            if is_long {
                self.spelled.insert(skeleton.to_ascii_lowercase());
                note(&mut self.skeleton, skeleton, number);
            }
            let bare = without(&form, &SEPARATORS);
            if bare.len() >= MIN_PIECE {
                note(&mut self.bare, bare, number);
            }
        }
        for form in encoded(value, extent) {
            let skeleton = without(&form, in_skeleton());
            if skeleton.len() >= MIN_PIECE {
                // What is an encoding of something counts however it is written.
                self.spelled.remove(&skeleton.to_ascii_lowercase());
                note(&mut self.skeleton, skeleton, number);
            }
        }
    }

    fn size(&self) -> usize {
        [&self.written, &self.bare, &self.skeleton]
            .into_iter()
            .flat_map(Patterns::keys)
            .map(Vec::len)
            .sum()
    }
}

fn note(patterns: &mut Patterns, form: Vec<u8>, number: usize) {
    // Cases of one letter are one pattern.
    let owners = patterns.entry(form.to_ascii_lowercase()).or_default();
    if owners.last() != Some(&number) {
        owners.push(number);
    }
}

/// Which bytes are left out.
pub(super) type Dropped = [bool; 256];

/// Characters that a reader who leaves out separators does not count to a value: what is white or
/// not seen, quotes and what joins quoted pieces, the end of a line of quoted-printable, the zeros
/// of UTF-16, and everything beyond ASCII, the characters without width among it.
pub(super) const SEPARATORS: Dropped = {
    let mut all = [true; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        all[byte as usize] = matches!(byte, b'"' | b'\'' | b'`' | b'+' | b',' | b'\\' | b'=');
        byte += 1;
    }
    all
};

/// Everything but letters and digits.
const PUNCTUATION: Dropped = {
    let mut all = [true; 256];
    let mut byte = b'0';
    while byte <= b'z' {
        all[byte as usize] = !byte.is_ascii_alphanumeric();
        byte += 1;
    }
    all
};

/// What is left out of a skeleton.
pub(super) fn in_skeleton() -> &'static Dropped {
    if stands(Defence::SpelledSecrets) { &PUNCTUATION } else { &SEPARATORS }
}

/// What is left of the bytes. Written as it is because every byte that is searched goes through it:
/// no branch.
pub(super) fn without(bytes: &[u8], dropped: &Dropped) -> Vec<u8> {
    let (mut kept, mut length) = (vec![0; bytes.len()], 0);
    for byte in bytes {
        kept[length] = *byte;
        length += usize::from(!dropped[usize::from(*byte)]);
    }
    kept.truncate(length);
    kept
}

/// Neither words of a language nor a number.
fn is_mixed(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_alphabetic) && text.iter().any(u8::is_ascii_digit)
}

fn written(value: &[u8], extent: Extent, of_it: Pieces) -> Vec<Vec<u8>> {
    let mut forms = vec![value.to_vec()];
    if extent == Extent::Plain || !stands(Defence::EncodedSecrets) {
        return forms;
    }
    let mut encoded = base64(value);
    encoded.push(each(value, |byte| format!("{byte:02x}")));
    encoded.extend(urls(value));
    if let Ok(text) = std::str::from_utf8(value) {
        encoded.extend(quoted(text));
    }
    if extent == Extent::Every {
        let twice: Vec<_> = urls(value).iter().map(|form| replaced(form, "%", "%25")).collect();
        encoded.extend(twice);
        encoded.push(each(value, |byte| format!("{byte:02x}:")));
        encoded.push(each(value, |byte| format!("{byte:02x}-")));
        encoded.push(each(value, |byte| format!("\\x{byte:02x}")));
        encoded.push(each(value, |byte| format!("\\{byte:03o}")));
        if let Ok(text) = std::str::from_utf8(value) {
            encoded.extend(by_numbers(text));
            encoded.push(text.chars().rev().collect::<String>().into_bytes());
        }
        encoded.push(value.iter().rev().copied().collect());
        if of_it == Pieces::Sought {
            forms.extend(pieces(value));
        }
    }
    encoded.retain(|form| form.len() >= MIN_FORM);
    forms.extend(encoded);
    forms
}

/// Encodings that are also found when something stands between their characters.
fn encoded(value: &[u8], extent: Extent) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    if extent == Extent::Plain {
        return forms;
    }
    let hex = each(value, |byte| format!("{byte:02x}"));
    forms.extend(base64(value));
    forms.push(hex.clone());
    if extent == Extent::Every {
        forms.push(each(value, |byte| format!("0x{byte:02x}")));
        if stands(Defence::NestedSecrets) {
            for alphabet in [BASE32, BASE32_HEX] {
                forms.extend((0..5).map(|before| base32_inside(before, value, alphabet)));
            }
            forms.extend(base64(value).iter().flat_map(|inner| base64(inner)));
            forms.extend([hex.to_ascii_uppercase(), hex].iter().flat_map(|hex| base64(hex)));
            // Lists of numbers.
            forms.push(each(value, |byte| byte.to_string()));
            forms.push(each(value, |byte| format!("{byte:03}")));
            forms.extend(Some(quoted_printable(value)).filter(|form| form != value));
        }
    }
    forms
}

/// In base64, wherever the value begins in what is encoded.
fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    (0..3).flat_map(|before| base64_inside(before, value)).collect()
}

/// As little of it escaped as an encoder may.
fn quoted_printable(value: &[u8]) -> Vec<u8> {
    let escaped = |byte: &u8| match byte {
        b'=' | 0x7f.. => format!("={byte:02x}").into_bytes(),
        byte => vec![*byte],
    };
    value.iter().flat_map(escaped).collect()
}

fn each(value: &[u8], form: impl Fn(u8) -> String) -> Vec<u8> {
    let mut text: Vec<u8> = value.iter().flat_map(|byte| form(*byte).into_bytes()).collect();
    // What stands between two is not behind the last.
    if text.last().is_some_and(|last| b":-".contains(last)) {
        text.pop();
    }
    text
}

fn replaced(form: &[u8], from: &str, to: &str) -> Vec<u8> {
    String::from_utf8_lossy(form).replace(from, to).into_bytes()
}

/// URL-encoded, as much or as little as an encoder may.
fn urls(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![each(value, |byte| format!("%{byte:02x}"))];
    for kept in [NON_ALPHANUMERIC, COMPONENT, SCRIPT, QUERY, PATH] {
        let escaped = percent_encode(value, kept).to_string();
        forms.push(escaped.replace("%20", "+").into_bytes());
        forms.push(escaped.into_bytes());
    }
    forms.push(url::form_urlencoded::byte_serialize(value).collect::<String>().into_bytes());
    forms
}

/// As a string of JSON, and as text of HTML.
fn quoted(text: &str) -> Vec<Vec<u8>> {
    let quoted = serde_json::Value::from(text).to_string();
    let json = quoted[1..quoted.len() - 1].to_owned();
    let html = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quotes = html.replace('"', "&quot;");
    let apostrophes =
        ["&#39;", "&#x27;", "&apos;"].map(|entity| quotes.replace('\'', entity).into_bytes());
    let mut forms =
        vec![json.replace('/', "\\/").into_bytes(), json.into_bytes(), html.into_bytes()];
    forms.extend(apostrophes);
    forms
}

/// Every character by its number.
fn by_numbers(text: &str) -> Vec<Vec<u8>> {
    let all =
        |form: &dyn Fn(char) -> String| text.chars().map(form).collect::<String>().into_bytes();
    let mut units = [0; 2];
    let utf16: String = text
        .chars()
        .flat_map(|c| {
            c.encode_utf16(&mut units)
                .iter()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect::<Vec<_>>()
        })
        .collect();
    vec![
        utf16.into_bytes(),
        all(&|c| format!("\\u{{{:x}}}", u32::from(c))),
        all(&|c| format!("&#{};", u32::from(c))),
        all(&|c| format!("&#x{:x};", u32::from(c))),
    ]
}

/// Pieces of half a value: a value that is broken in two, wherever, leaves one of them whole, and
/// both if in the middle.
fn pieces(value: &[u8]) -> Vec<Vec<u8>> {
    if !stands(Defence::BrokenSecrets) {
        return Vec::new();
    }
    let half = value.len() / 2;
    let size = half.clamp(MIN_PIECE, MAX_PIECE);
    let halves =
        [&value[..half], &value[half..]].into_iter().filter(|half| half.len() <= MAX_PIECE);
    let is_telling =
        |piece: &&[u8]| piece.len() >= if is_mixed(piece) { MIN_PIECE } else { MIN_WORD };
    value
        .windows(size)
        .chain(halves)
        .filter(|piece| is_telling(piece))
        .map(<[u8]>::to_vec)
        .collect()
}

/// The characters of base64 that the value alone decides when this many bytes of its group stand
/// before it.
fn base64_inside(before: usize, value: &[u8]) -> [Vec<u8>; 2] {
    let bytes = [&[0; 2][..before], value].concat();
    // Of the first character that the value has a part in, some bits are those of what stands
    // before it; of the last one, those of what follows.
    let from = [0, 2, 3][before];
    let to = bytes.len() * 8 / 6;
    [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD]
        .map(|engine| engine.encode(&bytes).as_bytes().get(from..to).unwrap_or_default().to_vec())
}

/// The same of base32.
fn base32_inside(before: usize, value: &[u8], alphabet: &[u8; 32]) -> Vec<u8> {
    let bytes = [&[0; 4][..before], value].concat();
    let (from, to) = ((before * 8).div_ceil(5), bytes.len() * 8 / 5);
    let character = |number: usize| {
        let (at, bit) = (number * 5 / 8, number * 5 % 8);
        let two = u16::from_be_bytes([bytes[at], bytes.get(at + 1).copied().unwrap_or_default()]);
        alphabet[usize::from(two >> (11 - bit)) & 31]
    };
    (from..to).map(character).collect()
}
