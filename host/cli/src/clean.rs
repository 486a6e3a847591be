//! A stranger's text made harmless for whoever looks at it: tools write results, errors, logs and definitions.
//!
//! In: any text. Out: text without a character that a terminal acts on or that a reader cannot see.
//! Invariants, one a line:
//! - JSON keeps its value, wherever it goes: the characters are escaped.
//! - Plain text loses them, and the loss is counted.
//! - But for one: a result that is plain text and goes to a program is the tool's to the last byte ([`result`]).

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};

use toolcell::defence::{Defence, stands};
use toolcell::is_unseen;

/// Who reads standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Somebody at a terminal, which acts on what it is sent.
    Person,
    /// A file or a pipe.
    Program,
}

impl Reader {
    /// Who it is now.
    pub(crate) fn of_stdout() -> Self {
        if io::stdout().is_terminal() { Self::Person } else { Self::Program }
    }
}

/// Plain text without harmful characters, and how many there were. The end of a line is `\n`.
pub(crate) fn text(text: &str) -> (String, usize) {
    let mut lost = 0;
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            c if is_unseen(c) && stands(Defence::CleanText) => lost += 1,
            c => clean.push(c),
        }
    }
    (clean, lost)
}

/// Characters of a result that a person is shown: hundreds of lines, short of what buries what stood there before.
const MAX_RESULT: usize = 64 << 10;
/// The same of what is told beside it, in one note.
const MAX_NOTE: usize = 4 << 10;

/// A result as its reader gets it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Harmful characters that were left out.
    pub(crate) lost: usize,
    /// Characters that were cut off at its end.
    pub(crate) cut: usize,
}

/// A result that is plain text: all of it where a program reads it, which needs every byte and acts on none.
pub(crate) fn result(result: &str, reader: Reader) -> Shown<'_> {
    match reader {
        Reader::Person => {
            let (kept, cut) = start(result, MAX_RESULT);
            let (clean, lost) = text(kept);
            Shown { text: clean.into(), lost, cut }
        }
        Reader::Program => Shown { text: result.into(), lost: 0, cut: 0 },
    }
}

/// A stranger's text for a note, with a word on what was cut off.
pub(crate) fn note(text: &str) -> Cow<'_, str> {
    match start(text, MAX_NOTE) {
        (_, 0) => text.into(),
        (kept, cut) => format!("{kept}… ({cut} more characters: `--json` has all)").into(),
    }
}

/// As many characters from the front, and how many there are beyond.
fn start(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most).map(|(end, _)| text.split_at(end)) {
        Some((kept, rest)) => (kept, rest.chars().count()),
        None => (text, 0),
    }
}

/// Text of one line in which every harmful character is seen: as its number.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unseen(c) || c == '\n' || c == '\t' {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Valid JSON of the same value without harmful characters.
pub(crate) fn json(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        match c {
            // Between tokens, because within a string it cannot stand unescaped.
            '\r' => clean.push(' '),
            c if is_unseen(c) && stands(Defence::CleanJson) => {
                for unit in c.encode_utf16(&mut units) {
                    clean.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => clean.push(c),
        }
    }
    clean
}

/// The same in one line.
pub(crate) fn json_line(json: &str) -> String {
    self::json(json).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARMFUL: [char; 15] = [
        '\u{1b}',
        '\0',
        '\u{7f}',
        '\u{9b}',
        '\u{202e}',
        '\u{2066}',
        '\u{2069}',
        '\u{ad}',
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{feff}',
        '\u{e0041}',
        '\u{e0100}',
        '\u{2028}',
    ];

    #[test]
    fn text_loses_them_and_says_so() {
        for c in HARMFUL {
            assert_eq!(text(&format!("a{c}b\tc\n")), ("ab\tc\n".into(), 1), "{c:?}");
        }
        assert_eq!(text("naïve 日本 👍\r\nnext"), ("naïve 日本 👍\nnext".into(), 0));
        assert_eq!(text("over\rwritten"), ("overwritten".into(), 1));
    }

    #[test]
    fn a_result_is_exact_for_a_program_and_harmless_for_a_person() {
        let exact = HARMFUL.iter().map(|c| format!("a{c}b 👩{c}🚀\r\n")).collect::<String>();
        assert_eq!(result(&exact, Reader::Program), Shown { text: exact.as_str().into(), lost: 0, cut: 0 });
        let shown = result(&exact, Reader::Person);
        assert_eq!((shown.text.contains(is_unseen), shown.lost, shown.cut), (false, 2 * HARMFUL.len(), 0), "{shown:?}");
    }

    #[test]
    fn a_person_is_shown_the_start_and_told_of_the_rest() {
        let long = "é".repeat(MAX_RESULT + 5);
        let shown = result(&long, Reader::Person);
        assert_eq!((shown.text.chars().count(), shown.cut), (MAX_RESULT, 5));
        assert_eq!(result(&long, Reader::Program).text, long);
        assert_eq!(result(&long[..2 * MAX_RESULT], Reader::Person).cut, 0);
        assert_eq!(note("short"), "short");
        assert!(note(&"é".repeat(MAX_NOTE + 7)).ends_with("é… (7 more characters: `--json` has all)"));
    }

    #[test]
    fn what_cannot_be_seen_is_shown_as_its_number() {
        for c in HARMFUL.into_iter().chain(['\n', '\t', '\r']) {
            assert_eq!(shown(&format!("a{c}b")), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        assert_eq!(shown("naïve 日本 👍"), "naïve 日本 👍");
    }

    #[test]
    fn json_keeps_its_value() {
        for c in HARMFUL {
            let value = serde_json::Value::String(format!("a{c}\n\r\tb"));
            let clean = json(&value.to_string());
            assert!(!clean.contains(is_unseen), "{clean}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&clean).unwrap(), value);
        }
        assert_eq!(json_line("{\r\n\t\"a\": 1}"), "{   \"a\": 1}");
    }
}
