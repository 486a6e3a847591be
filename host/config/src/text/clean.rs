//! Makes untrusted text safe to print: in results, errors, logs and definitions.
//!
//! A tool can write characters that control a terminal, reverse the direction of text, or are
//! invisible. Commands call one of these functions before they print. [`text`] removes such
//! characters from plain text and counts them. [`json`] and [`json_line`] escape them, so that the
//! JSON keeps its value. [`escaped`] shows each as its number, on one line, for texts that a person
//! judges. [`note`] truncates a long text and says how much was cut off.

use std::borrow::Cow;

use toolcell::controls::enforced;
use toolcell::tool::is_invisible;

/// Returns plain text without harmful characters, and the number of those removed. A line ends with
/// `\n`.
pub fn text(text: &str) -> (String, usize) {
    let mut lost = 0;
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            c if is_invisible(c) && enforced!(CleanText) => lost += 1,
            c => clean.push(c),
        }
    }
    (clean, lost)
}

/// Characters of untrusted text in one note.
const MAX_NOTE: usize = 4 << 10;

/// Truncates untrusted text for a note, and says how much was cut off.
pub fn note(text: &str) -> Cow<'_, str> {
    match start(text, MAX_NOTE) {
        (_, 0) => text.into(),
        (kept, cut) => format!("{kept}… ({cut} more characters: `--json` has all)").into(),
    }
}

/// Splits off the first `most` characters, and returns the number of those that follow.
pub fn start(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most).map(|(end, _)| text.split_at(end)) {
        Some((kept, rest)) => (kept, rest.chars().count()),
        None => (text, 0),
    }
}

/// Escapes every harmful character, so that the text is visible on one line.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) || c == '\n' || c == '\t' {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Returns JSON of the same value without harmful characters.
pub fn json(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        match c {
            // A carriage return is between tokens, because a string cannot contain it unescaped.
            '\r' => clean.push(' '),
            c if is_invisible(c) && enforced!(CleanJson) => {
                for unit in c.encode_utf16(&mut units) {
                    clean.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => clean.push(c),
        }
    }
    clean
}

/// As [`json`], on one line.
pub fn json_line(json: &str) -> String {
    self::json(json).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARMFUL: &str = "\u{1b}\0\u{7f}\u{9b}\u{202e}\u{2066}\u{2069}\u{ad}\u{200b}\u{200c}\u{200d}\
                           \u{feff}\u{e0041}\u{e0100}\u{2028}";

    #[test]
    fn harmful_characters_are_removed_and_counted() {
        for c in HARMFUL.chars() {
            assert_eq!(text(&format!("a{c}b\tc\n")), ("ab\tc\n".into(), 1), "{c:?}");
        }
        assert_eq!(text("naïve 日本 👍\r\nnext"), ("naïve 日本 👍\nnext".into(), 0));
        assert_eq!(text("over\rwritten"), ("overwritten".into(), 1));
    }

    #[test]
    fn long_note_is_cut_and_says_so() {
        assert_eq!(note("short"), "short");
        assert!(
            note(&"é".repeat(MAX_NOTE + 7)).ends_with("é… (7 more characters: `--json` has all)")
        );
    }

    #[test]
    fn invisible_characters_are_shown_as_numbers() {
        for c in HARMFUL.chars().chain(['\n', '\t', '\r']) {
            assert_eq!(escaped(&format!("a{c}b")), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        assert_eq!(escaped("naïve 日本 👍"), "naïve 日本 👍");
    }

    #[test]
    fn json_keeps_its_value() {
        for c in HARMFUL.chars() {
            let value = serde_json::Value::String(format!("a{c}\n\r\tb"));
            let clean = json(&value.to_string());
            assert!(!clean.contains(is_invisible), "{clean}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&clean).unwrap(), value);
        }
        assert_eq!(json_line("{\r\n\t\"a\": 1}"), "{   \"a\": 1}");
    }
}
