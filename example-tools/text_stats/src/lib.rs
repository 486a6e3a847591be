//! Statistics of a text: sizes, frequent words, reading time and readability.
//!
//! `count` counts by the rules of Unicode, `readability` scores English.

mod count;
mod readability;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcell_guest::{tool, tools};
use unicode_segmentation::UnicodeSegmentation;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The text, in any language.
    #[schemars(length(max = 1_000_000))]
    text: String,
    /// How many of the most frequent words to list.
    #[serde(default = "default_top")]
    #[schemars(range(max = 200))]
    top: u32,
    /// List only words of at least so many characters, to leave out "the" and "of".
    #[serde(default)]
    #[schemars(range(max = 100))]
    min_word_length: u32,
    /// Reading speed. 230 is an adult reading English in silence, 150 is reading aloud.
    #[serde(default = "default_speed")]
    #[schemars(range(min = 10, max = 2000))]
    words_per_minute: u32,
}

fn default_top() -> u32 {
    10
}

fn default_speed() -> u32 {
    230
}

#[derive(Serialize, JsonSchema)]
struct Stats {
    /// What a person sees as characters: an emoji of a family counts once.
    characters: usize,
    /// Unicode code points, as many programs count characters.
    code_points: usize,
    /// Bytes in UTF-8.
    bytes: usize,
    /// Lines, blank ones included.
    lines: usize,
    /// Blocks of text between blank lines.
    paragraphs: usize,
    /// Sentences by the rules of Unicode; an abbreviation such as "Dr. Smith" counts as an end.
    sentences: usize,
    /// Words. Scripts without spaces count each sign or run that Unicode calls a word.
    words: usize,
    /// Different words, regardless of case.
    unique_words: usize,
    /// Characters a word, to two decimals; 0 without words.
    average_word_length: f64,
    /// Words a sentence, to two decimals; 0 without sentences.
    average_sentence_length: f64,
    /// The most frequent words in lower case; equally frequent ones in alphabetical order.
    top_words: Vec<WordCount>,
    /// Seconds to read the text, rounded up.
    reading_seconds: u64,
    /// For English only: 100 is very easy, below 30 very difficult. Null for other scripts and
    /// without sentences.
    flesch_reading_ease: Option<f64>,
    /// The score in words, from "very easy" to "very difficult".
    reading_level: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
struct WordCount {
    /// In lower case.
    word: String,
    /// How often it occurs.
    count: usize,
}

/// Counts the words, sentences, paragraphs, characters and lines of a text, lists its most frequent
/// words and estimates reading time and readability. Use it instead of counting yourself.
#[tool(
    title = "Text statistics",
    read_only,
    idempotent,
    output,
    max_execution = "5s",
    attributes = { "category": "text" }
)]
fn text_stats(args: Args) -> Stats {
    let counts = count::counts(&args.text);
    let words = counts.words.len();
    let letters: usize = counts.words.iter().map(|word| length(word)).sum();
    let ease = readability::flesch(&counts.words, counts.sentences).map(to_cents);
    Stats {
        characters: counts.characters,
        code_points: counts.code_points,
        bytes: args.text.len(),
        lines: counts.lines,
        paragraphs: counts.paragraphs,
        sentences: counts.sentences,
        words,
        unique_words: counts.frequencies.len(),
        average_word_length: average(letters, words),
        average_sentence_length: average(words, counts.sentences),
        top_words: top_words(counts.frequencies, args.min_word_length as usize, args.top as usize),
        reading_seconds: (words as u64 * 60).div_ceil(u64::from(args.words_per_minute.max(1))),
        flesch_reading_ease: ease,
        reading_level: ease.map(readability::level),
    }
}

tools![text_stats];

fn top_words(frequencies: Vec<(String, usize)>, shortest: usize, top: usize) -> Vec<WordCount> {
    let long_enough = frequencies.into_iter().filter(|(word, _)| length(word) >= shortest);
    long_enough.take(top).map(|(word, count)| WordCount { word, count }).collect()
}

fn length(word: &str) -> usize {
    word.graphemes(true).count()
}

fn average(sum: usize, count: usize) -> f64 {
    if count == 0 { 0.0 } else { to_cents(sum as f64 / count as f64) }
}

fn to_cents(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
