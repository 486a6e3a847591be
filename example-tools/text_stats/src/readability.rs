//! Scores an English text by the Flesch reading ease.
//!
//! Invariants: a text that is visibly not English has no score. Syllables are estimated from the
//! spelling, so a score is accurate to a few points.

/// Share of the words that must be plain Latin letters for a text to have a score.
const LEAST_LATIN: f64 = 0.8;

/// Returns the score: 100 is very easy, below 30 is hard. `None` without sentences or for another
/// script.
pub(crate) fn flesch(words: &[&str], sentences: usize) -> Option<f64> {
    let latin: Vec<&&str> = words.iter().filter(|word| is_latin(word)).collect();
    if sentences == 0 || latin.is_empty() || (latin.len() as f64) < LEAST_LATIN * words.len() as f64
    {
        return None;
    }
    let syllables: usize = latin.iter().map(|word| syllables(word)).sum();
    let words_a_sentence = words.len() as f64 / sentences as f64;
    let syllables_a_word = syllables as f64 / latin.len() as f64;
    Some(206.835 - 1.015 * words_a_sentence - 84.6 * syllables_a_word)
}

/// The usual description of a score.
pub(crate) fn level(score: f64) -> &'static str {
    match score {
        90.0.. => "very easy",
        80.0.. => "easy",
        70.0.. => "fairly easy",
        60.0.. => "standard",
        50.0.. => "fairly difficult",
        30.0.. => "difficult",
        _ => "very difficult",
    }
}

fn is_latin(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '\'' | '’'))
}

/// Counts groups of vowels, without the `e` that English does not pronounce: silent in `made`,
/// `jumped`, `times`, but not in `table`, `wanted`, `boxes`.
fn syllables(word: &str) -> usize {
    let word = word.to_ascii_lowercase().replace(['\'', '’'], "");
    let vowel = |c: char| matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y');
    let mut groups = 0;
    let mut inside = false;
    for letter in word.chars() {
        groups += usize::from(vowel(letter) && !inside);
        inside = vowel(letter);
    }
    let silent = if let Some(stem) = word.strip_suffix("ed") {
        !stem.ends_with(['t', 'd']) && !stem.ends_with(vowel)
    } else if let Some(stem) = word.strip_suffix("es") {
        !stem.ends_with(['s', 'x', 'z', 'c', 'g', 'h']) && !stem.ends_with(vowel)
    } else if let Some(stem) = word.strip_suffix('e') {
        let spoken_le = stem.ends_with('l') && !stem[..stem.len() - 1].ends_with(vowel);
        !spoken_le && !stem.ends_with(vowel)
    } else {
        false
    };
    (groups - usize::from(silent && groups > 1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syllable_estimates_match_known_words() {
        for (word, expected) in [
            ("the", 1),
            ("cat", 1),
            ("made", 1),
            ("table", 2),
            ("jumped", 1),
            ("wanted", 2),
            ("boxes", 2),
            ("times", 1),
            ("banana", 3),
            ("readability", 5),
            ("see", 1),
            ("rhythm", 1),
            ("brr", 1),
            ("Don't", 1),
            ("whale", 1),
        ] {
            assert_eq!(syllables(word), expected, "{word}");
        }
    }

    #[test]
    fn short_words_are_easier_than_long_ones() {
        let easy = flesch(&["The", "cat", "sat", "on", "the", "mat"], 1).unwrap();
        assert!((easy - 116.145).abs() < 1e-9);
        assert_eq!(level(easy), "very easy");
        let hard = flesch(
            &["Organizational", "sustainability", "necessitates", "comprehensive", "deliberation"],
            1,
        )
        .unwrap();
        assert_eq!(level(hard), "very difficult");
    }

    #[test]
    fn other_scripts_have_no_score() {
        assert_eq!(flesch(&["Это", "русский", "текст"], 1), None);
        assert_eq!(flesch(&[], 0), None);
        assert_eq!(flesch(&["word"], 0), None);
    }
}
