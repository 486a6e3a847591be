//! Prepares a result for its reader: a person at a terminal, or a program.
//!
//! The printer calls [`result`] with a tool's text. A program (a file or a pipe) gets it byte for
//! byte. A person gets it without control characters and invisible characters, which a terminal
//! would execute or hide, and at most 64 Ki characters of it; the numbers of removed and cut
//! characters are returned for a note. [`line`] is for an author's text in a message. The other
//! functions are re-exported from `toolcell_config::text::clean`, which decides which characters
//! are harmful.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};

use toolcell_config::text::clean::start;

pub(crate) use toolcell_config::text::clean::{escaped, json, json_line, note, text};

/// The reader of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A person at a terminal. Terminals execute control sequences in their input.
    Person,
    /// A file or a pipe.
    Program,
}

impl Reader {
    /// Returns the present reader.
    pub(crate) fn of_stdout() -> Self {
        if io::stdout().is_terminal() { Self::Person } else { Self::Program }
    }
}

/// Returns an author's text in one line, without harmful characters.
pub(crate) fn line(text: &str) -> String {
    note(&escaped(text)).into_owned()
}

/// Characters of a result that a person is shown: hundreds of lines, but few enough to keep earlier
/// output within reach.
const MAX_RESULT: usize = 64 << 10;
/// A result in the form for its reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CleanText<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Number of harmful characters that were removed.
    pub(crate) lost: usize,
    /// Number of characters that were cut off at the end.
    pub(crate) cut: usize,
}

/// Prepares a plain-text result. A program gets every byte, because it needs them all and executes
/// none.
pub(crate) fn result(result: &str, reader: Reader) -> CleanText<'_> {
    match reader {
        Reader::Person => {
            let (kept, cut) = start(result, MAX_RESULT);
            let (clean, lost) = text(kept);
            CleanText { text: clean.into(), lost, cut }
        }
        Reader::Program => CleanText { text: result.into(), lost: 0, cut: 0 },
    }
}

#[cfg(test)]
mod tests {
    use toolcell::tool::is_invisible;

    use super::*;

    const HARMFUL: &str = "\u{1b}\0\u{7f}\u{9b}\u{202e}\u{2066}\u{2069}\u{ad}\u{200b}\u{200c}\u{200d}\u{feff}\u{e0041}\u{e0100}\u{2028}";

    #[test]
    fn result_is_exact_for_program_clean_for_person() {
        let exact = HARMFUL.chars().map(|c| format!("a{c}b 👩{c}🚀\r\n")).collect::<String>();
        assert_eq!(
            result(&exact, Reader::Program),
            CleanText { text: exact.as_str().into(), lost: 0, cut: 0 }
        );
        let shown = result(&exact, Reader::Person);
        assert_eq!(
            (shown.text.contains(is_invisible), shown.lost, shown.cut),
            (false, 2 * HARMFUL.chars().count(), 0),
            "{shown:?}"
        );
    }

    #[test]
    fn long_result_is_cut_and_counted_for_person() {
        let long = "é".repeat(MAX_RESULT + 5);
        let shown = result(&long, Reader::Person);
        assert_eq!((shown.text.chars().count(), shown.cut), (MAX_RESULT, 5));
        assert_eq!(result(&long, Reader::Program).text, long);
        assert_eq!(result(&long[..2 * MAX_RESULT], Reader::Person).cut, 0);
    }
}
