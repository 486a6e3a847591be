//! Counts characters, words, sentences and paragraphs by the rules of Unicode (UAX #29).
//!
//! In: a text in any language. Out: the counts.
//! Invariants: equal counts are in alphabetical order, so the same text always gives the same
//! answer.
//! Not here: readability (`readability`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use unicode_segmentation::UnicodeSegmentation;

/// Counts that do not depend on the language.
#[derive(Debug, PartialEq)]
pub(crate) struct Counts<'t> {
    pub(crate) characters: usize,
    pub(crate) code_points: usize,
    pub(crate) lines: usize,
    pub(crate) paragraphs: usize,
    pub(crate) sentences: usize,
    pub(crate) words: Vec<&'t str>,
    /// Words in lower case with their counts, the most frequent first.
    pub(crate) frequencies: Vec<(String, usize)>,
}

/// Counts `text`.
pub(crate) fn counts(text: &str) -> Counts<'_> {
    let words: Vec<&str> = text.unicode_words().collect();
    let paragraphs = paragraphs(text);
    Counts {
        characters: text.graphemes(true).count(),
        code_points: text.chars().count(),
        lines: text.lines().count(),
        sentences: paragraphs.iter().map(|paragraph| paragraph.unicode_sentences().count()).sum(),
        paragraphs: paragraphs.len(),
        frequencies: frequencies(&words),
        words,
    }
}

/// Splits at blank lines. Returns each paragraph as one line, because Unicode ends a sentence at
/// every line break, which is wrong for wrapped text.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        match (line.is_empty(), inside.then(|| paragraphs.last_mut()).flatten()) {
            (true, _) => inside = false,
            (false, Some(paragraph)) => {
                paragraph.push(' ');
                paragraph.push_str(line);
            }
            (false, None) => {
                paragraphs.push(line.to_owned());
                inside = true;
            }
        }
    }
    paragraphs
}

/// Counts equal words, ignoring case. Uses a tree instead of a hash table, whose random order would
/// make the work of two equal calls differ.
fn frequencies(words: &[&str]) -> Vec<(String, usize)> {
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for word in words {
        *counted.entry(word.to_lowercase()).or_default() += 1;
    }
    let mut counted: Vec<_> = counted.into_iter().collect();
    counted.sort_by_key(|(_, count)| Reverse(*count));
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_grapheme_clusters() {
        let family = counts("👨‍👩‍👧 ñ");
        assert_eq!((family.characters, family.code_points), (3, 7));
        assert_eq!(counts("🇩🇪🇫🇷").characters, 2);
    }

    #[test]
    fn wrapped_lines_are_one_sentence() {
        let text = "A sentence that\nwas wrapped. Another one!\n\n\n  \nLast paragraph";
        let found = counts(text);
        assert_eq!(
            (found.lines, found.paragraphs, found.sentences, found.words.len()),
            (6, 2, 3, 9)
        );
    }

    #[test]
    fn words_keep_apostrophes_and_numbers_their_points() {
        assert_eq!(
            counts("Don't pay 3.50 – it's über-cheap!").words,
            ["Don't", "pay", "3.50", "it's", "über", "cheap"]
        );
        assert_eq!(counts("こんにちは世界").words.len(), 7);
    }

    #[test]
    fn ties_are_in_alphabetical_order() {
        let found = counts("b a B c a d");
        let expected =
            [("a", 2), ("b", 2), ("c", 1), ("d", 1)].map(|(word, count)| (word.to_owned(), count));
        assert_eq!(found.frequencies, expected);
    }

    #[test]
    fn blank_text_has_no_words_or_sentences() {
        let blank = counts(" \n\n ");
        assert_eq!(
            (blank.paragraphs, blank.sentences, blank.words.len(), blank.lines),
            (0, 0, 0, 3)
        );
        assert_eq!(counts("").lines, 0);
    }
}
