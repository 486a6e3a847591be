//! Generates the search patterns for a set of secret values: each value in all of its encodings.
//!
//! `Redactor` calls [`Forms::of`] when it is built. The result has three sets of patterns, each
//! with the values that it may be a form of: some are searched for in the original bytes, some in
//! the bytes without separators (white space, quotes and the like), and most in the letters and
//! digits alone. A pattern of only letters or only digits counts only where it is spelled out,
//! unless it is an encoding of a value. [`without`] drops the separators. Parts of a value are
//! included only if [`Pieces::Searched`] asks for them.
//! Invariants: pure. Text that is frequent by chance is no pattern: forms and parts have minimum
//! lengths. If all patterns together would exceed 1 MiB, the rarer forms are left out, then all but
//! the plain ones, which have no bound here.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode};
use toolcell_contract::controls::enforced;

/// The two alphabets of base32. Source: RFC 4648, sections 6 and 7.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const BASE32_HEX: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// Bytes. The shortest encoded form: shorter ones occur by chance.
const MIN_FORM: usize = 6;
/// Bytes. The shortest part of a value, and the shortest form without separators.
const MIN_PIECE: usize = 8;
/// Bytes. The shortest part without both a letter and a digit: shorter ones are words of a
/// language.
const MIN_WORD: usize = 12;
/// Bytes. The longest part. A longer one contains it.
const MAX_PIECE: usize = 32;
/// Bytes. The size of all patterns above which the rarer forms are left out. An automaton takes
/// some ten times as much memory; a value of 40 bytes has 7,000 bytes of patterns in all forms and
/// 1,000 in the usual ones.
const MAX_PATTERNS: usize = 1 << 20;

/// Escapes only the characters that a component of a URL must escape.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Escapes as JavaScript's `encodeURIComponent`.
const SCRIPT: &AsciiSet =
    &COMPONENT.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');
/// Escapes as Python's `quote`.
const PYTHON: &AsciiSet = &COMPONENT.remove(b'/');
/// Escapes as Go's `PathEscape`.
const SEGMENT: &AsciiSet =
    &COMPONENT.remove(b'$').remove(b'&').remove(b'+').remove(b':').remove(b'=').remove(b'@');
/// Escapes only the characters that a query must escape.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');
/// Escapes only the characters that a path must escape.
const PATH: &AsciiSet = &QUERY.add(b'?').add(b'`').add(b'{').add(b'}');

/// Characters that an encoder of JSON writes by their number, and true if it does so for all beyond
/// ASCII: the standard, Python and PHP, Go and Rails, Gson, Django, Flask, .NET.
const JSON_ENCODERS: [(&str, bool); 7] = [
    ("", false),
    ("", true),
    ("&<>", false),
    ("&'<=>", false),
    ("&<>", true),
    ("&'<>", true),
    ("\"&'+<>`", true),
];
/// The forms of `"`, `'` and `+` that encoders of HTML write.
const HTML_ENCODERS: [[&str; 3]; 8] = [
    ["\"", "'", "+"],
    ["&quot;", "&#39;", "+"],
    ["&quot;", "&#x27;", "+"],
    ["&quot;", "&#039;", "+"],
    ["&quot;", "&apos;", "+"],
    ["&#34;", "&#39;", "+"],
    ["&#34;", "&#39;", "&#43;"],
    ["&quot;", "&#x27;", "&#x2b;"],
];

/// Texts that are searched for.
pub(super) type Patterns = BTreeMap<Vec<u8>, Pattern>;

/// The meaning of a text that is searched for.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The indices of the values that it may be a form of.
    pub(super) owners: Vec<usize>,
    /// True if it consists of words or of a number alone and is no encoding: it counts only where
    /// it is spelled out.
    pub(super) is_spelled: bool,
}

/// The patterns, by the text that they are searched for in.
#[derive(Debug, Default)]
pub(super) struct Forms {
    /// Searched for in the original bytes.
    pub(super) written: Patterns,
    /// Searched for in the bytes without separators.
    pub(super) bare: Patterns,
    /// Searched for in the letters and digits of the bytes.
    pub(super) skeleton: Patterns,
}

/// The set of forms that a value is searched for in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Every,
    Usual,
    Plain,
}

/// Selects if parts of a value are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pieces {
    /// Parts are searched for: the writer of the bytes may know the value.
    Searched,
    /// Parts are not searched for: from the answers, the writer of the bytes could learn how a
    /// value continues.
    Ignored,
}

impl Forms {
    /// Creates the patterns of these values, in as many forms as the limit allows.
    pub(super) fn of(values: &[&str], pieces: Pieces) -> Self {
        for extent in [Extent::Every, Extent::Usual] {
            let forms = Self::within(values, extent, pieces);
            if forms.size() <= MAX_PATTERNS {
                return forms;
            }
        }
        Self::within(values, Extent::Plain, pieces)
    }

    fn within(values: &[&str], extent: Extent, pieces: Pieces) -> Self {
        let mut forms = Self::default();
        for (number, value) in values.iter().enumerate() {
            for form in written(value, extent, pieces) {
                note(&mut forms.written, form, number, false);
            }
            if enforced!(SpacedSecrets) {
                forms.add_spaced(value.as_bytes(), number, extent);
            }
            if extent != Extent::Plain && forms.size() > MAX_PATTERNS {
                break;
            }
        }
        forms
    }

    /// Adds the forms that are also found with other characters in between.
    fn add_spaced(&mut self, value: &[u8], number: usize, extent: Extent) {
        let mut plain = vec![value.to_vec()];
        if extent == Extent::Every {
            plain.push(value.iter().rev().copied().collect());
        }
        for form in plain {
            let skeleton = without(&form, in_skeleton());
            let (is_long, is_mixed) = (skeleton.len() >= MIN_PIECE, is_mixed(&skeleton));
            if is_long {
                note(&mut self.skeleton, skeleton, number, !is_mixed);
            }
            if is_long && is_mixed {
                continue;
            }
            let bare = without(&form, &SEPARATORS);
            if bare.len() >= MIN_PIECE {
                note(&mut self.bare, bare, number, false);
            }
        }
        for form in encoded(value, extent) {
            let skeleton = without(&form, in_skeleton());
            if skeleton.len() >= MIN_PIECE {
                // An encoding counts with any separators: it need not be spelled out.
                note(&mut self.skeleton, skeleton, number, false);
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

fn note(patterns: &mut Patterns, form: Vec<u8>, number: usize, is_spelled: bool) {
    // Patterns are stored in lower case, since the search ignores case.
    let pattern = patterns.entry(form.to_ascii_lowercase());
    let pattern = pattern.or_insert_with(|| Pattern { owners: Vec::new(), is_spelled });
    pattern.is_spelled &= is_spelled;
    if pattern.owners.last() != Some(&number) {
        pattern.owners.push(number);
    }
}

/// For each byte value, true if it is dropped.
pub(super) type Dropped = [bool; 256];

/// Separators that a reader would remove from a value: white space and control characters, quotes
/// and the characters that join quoted pieces, the soft line break of quoted-printable, the zero
/// bytes of UTF-16, and all bytes beyond ASCII, zero-width characters among them.
pub(super) const SEPARATORS: Dropped = {
    let mut all = [true; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        all[byte as usize] = matches!(byte, b'"' | b'\'' | b'`' | b'+' | b',' | b'\\' | b'=');
        byte += 1;
    }
    all
};

/// Everything except letters and digits.
const PUNCTUATION: Dropped = {
    let mut all = [true; 256];
    let mut byte = b'0';
    while byte <= b'z' {
        all[byte as usize] = !byte.is_ascii_alphanumeric();
        byte += 1;
    }
    all
};

/// Returns the bytes that a skeleton leaves out.
pub(super) fn in_skeleton() -> &'static Dropped {
    if enforced!(SpelledSecrets) { &PUNCTUATION } else { &SEPARATORS }
}

/// Returns the bytes that are not dropped. Written without a branch because every searched byte
/// passes through it.
pub(super) fn without(bytes: &[u8], dropped: &Dropped) -> Vec<u8> {
    let (mut kept, mut length) = (vec![0; bytes.len()], 0);
    for byte in bytes {
        kept[length] = *byte;
        length += usize::from(!dropped[usize::from(*byte)]);
    }
    kept.truncate(length);
    kept
}

/// Returns true if the text has both a letter and a digit, so that it is neither words nor a
/// number.
fn is_mixed(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_alphabetic) && text.iter().any(u8::is_ascii_digit)
}

fn written(text: &str, extent: Extent, pieces: Pieces) -> Vec<Vec<u8>> {
    let value = text.as_bytes();
    let mut forms = vec![value.to_vec()];
    if extent == Extent::Plain || !enforced!(EncodedSecrets) {
        return forms;
    }
    let mut encoded = base64(value);
    encoded.push(escape_bytes(value, |byte| format!("{byte:02x}")));
    encoded.extend(urls(value));
    encoded.extend(quoted(text));
    if extent == Extent::Every {
        let again = |form: &Vec<u8>| String::from_utf8_lossy(form).replace('%', "%25").into_bytes();
        encoded.extend(urls(value).iter().map(again));
        encoded.push(escape_bytes(value, |byte| format!("{byte:02x}:")));
        encoded.push(escape_bytes(value, |byte| format!("{byte:02x}-")));
        encoded.push(escape_bytes(value, |byte| format!("\\x{byte:02x}")));
        encoded.push(escape_bytes(value, |byte| format!("\\{byte:03o}")));
        encoded.extend(numeric_escapes(text));
        encoded.push(text.chars().rev().collect::<String>().into_bytes());
        encoded.push(value.iter().rev().copied().collect());
        if pieces == Pieces::Searched {
            forms.extend(half_parts(value));
        }
    }
    encoded.retain(|form| form.len() >= MIN_FORM);
    forms.extend(encoded);
    forms
}

/// Returns the encodings that are also found with other characters in between.
fn encoded(value: &[u8], extent: Extent) -> Vec<Vec<u8>> {
    if extent == Extent::Plain {
        return Vec::new();
    }
    let hex = escape_bytes(value, |byte| format!("{byte:02x}"));
    let mut forms = base64(value);
    forms.push(hex.clone());
    if extent == Extent::Every {
        forms.push(escape_bytes(value, |byte| format!("0x{byte:02x}")));
        if enforced!(NestedSecrets) {
            for alphabet in [BASE32, BASE32_HEX] {
                forms.extend((0..5).map(|before| base32_inside(before, value, alphabet)));
            }
            forms.extend(base64(value).iter().flat_map(|inner| base64(inner)));
            forms.extend([hex.to_ascii_uppercase(), hex].iter().flat_map(|hex| base64(hex)));
            // Lists of decimal numbers.
            forms.push(escape_bytes(value, |byte| byte.to_string()));
            forms.push(escape_bytes(value, |byte| format!("{byte:03}")));
            forms.extend(Some(quoted_printable(value)).filter(|form| form != value));
        }
    }
    forms
}

/// Returns the base64 forms of a value at each offset in the encoded text.
fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    (0..3).flat_map(|before| base64_inside(before, value)).collect()
}

/// Escapes as few characters as quoted-printable allows.
fn quoted_printable(value: &[u8]) -> Vec<u8> {
    let escaped = |byte: &u8| match byte {
        b'=' | 0x7f.. => format!("={byte:02x}").into_bytes(),
        byte => vec![*byte],
    };
    value.iter().flat_map(escaped).collect()
}

fn escape_bytes(value: &[u8], form: impl Fn(u8) -> String) -> Vec<u8> {
    let mut text: Vec<u8> = value.iter().flat_map(|byte| form(*byte).into_bytes()).collect();
    // Drops the separator after the last byte.
    if text.last().is_some_and(|last| b":-".contains(last)) {
        text.pop();
    }
    text
}

/// Returns the URL-encoded forms, for each common set of escaped characters.
fn urls(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![escape_bytes(value, |byte| format!("%{byte:02x}"))];
    for kept in [NON_ALPHANUMERIC, COMPONENT, SCRIPT, PYTHON, SEGMENT, QUERY, PATH] {
        let escaped = percent_encode(value, kept).to_string();
        forms.push(escaped.replace("%20", "+").into_bytes());
        forms.push(escaped.into_bytes());
    }
    forms.push(url::form_urlencoded::byte_serialize(value).collect::<String>().into_bytes());
    forms
}

/// Returns the value as a string of JSON and as text of HTML, as common encoders write it.
fn quoted(text: &str) -> Vec<Vec<u8>> {
    let unit = |unit: &u16| format!("\\u{unit:04x}");
    let json = |(numbered, beyond_ascii): (&str, bool)| {
        let each = |c: char| match c {
            c if numbered.contains(c) || (beyond_ascii && !c.is_ascii()) => {
                c.encode_utf16(&mut [0; 2]).iter().map(unit).collect::<String>()
            }
            '"' | '\\' => format!("\\{c}"),
            c => c.to_string(),
        };
        text.chars().map(each).collect::<String>()
    };
    let html = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let html = |[quote, apostrophe, plus]: [&str; 3]| {
        html.replace('"', quote).replace('\'', apostrophe).replace('+', plus)
    };
    // .NET writes these by their number too.
    let numbered = |c: char| match c {
        '`' | '\u{80}'.. => format!("&#x{:x};", u32::from(c)),
        c => c.to_string(),
    };
    let all_numbered = |encoder| html(encoder).chars().map(numbered).collect::<String>();
    let mut forms = Vec::from(JSON_ENCODERS.map(json));
    forms.extend(JSON_ENCODERS.map(|encoder| json(encoder).replace('/', "\\/")));
    forms.extend(HTML_ENCODERS.map(html));
    forms.extend(HTML_ENCODERS.map(all_numbered));
    forms.into_iter().map(String::into_bytes).collect()
}

/// Returns the value with every character as a numeric escape.
fn numeric_escapes(text: &str) -> Vec<Vec<u8>> {
    let all =
        |form: &dyn Fn(char) -> String| text.chars().map(form).collect::<String>().into_bytes();
    let utf16: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    vec![
        utf16.into_bytes(),
        all(&|c| format!("\\u{{{:x}}}", u32::from(c))),
        all(&|c| format!("&#{};", u32::from(c))),
        all(&|c| format!("&#x{:x};", u32::from(c))),
    ]
}

/// Returns the parts of half a value's length: a value that is split in two anywhere leaves one of
/// them whole, and both if it is split in the middle.
fn half_parts(value: &[u8]) -> Vec<Vec<u8>> {
    if !enforced!(BrokenSecrets) {
        return Vec::new();
    }
    let half = value.len() / 2;
    let size = half.clamp(MIN_PIECE, MAX_PIECE);
    let halves =
        [&value[..half], &value[half..]].into_iter().filter(|half| half.len() <= MAX_PIECE);
    let is_telling =
        |piece: &&[u8]| piece.len() >= if is_mixed(piece) { MIN_PIECE } else { MIN_WORD };
    value.windows(size).chain(halves).filter(is_telling).map(<[u8]>::to_vec).collect()
}

/// Returns the base64 characters that depend on the value alone, if `before` bytes of its group
/// precede it.
fn base64_inside(before: usize, value: &[u8]) -> [Vec<u8>; 2] {
    let bytes = [&[0; 2][..before], value].concat();
    // The first character that the value contributes to may contain bits of the preceding byte, and
    // the last one bits of the following byte: both are left out.
    let from = [0, 2, 3][before];
    let to = bytes.len() * 8 / 6;
    [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD]
        .map(|engine| engine.encode(&bytes).as_bytes().get(from..to).unwrap_or_default().to_vec())
}

/// Returns the base32 characters that depend on the value alone.
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
