//! Parses names and durations in options, suggests the nearest known word, and skips wrong options.

use proc_macro2::TokenTree;
use syn::Token;
use syn::parse::ParseStream;

/// Checks the name of a tool. Returns the message for an invalid one.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
        return Err(format!(
            "`{name}` cannot be the name of a tool: write 1 to 64 of the characters A-Z, a-z, 0-9, `_` and `-`"
        ));
    }
    Ok(())
}

/// Parses a duration such as `500ms`, `2s`, `1m` or `1h` to milliseconds.
pub(crate) fn milliseconds(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is not a duration: write a whole number and a unit, as `500ms`, `2s` or `1m`"
        )
    };
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
        Some(0) => Err(format!(
            "`{text}` is no time at all: write a longer duration, or remove the option"
        )),
        Some(milliseconds) => Ok(milliseconds),
        None => Err(wrong()),
    }
}

/// Returns the nearest known word, if it is near enough to be a typing error.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if let Some(longer) =
        known.iter().find(|candidate| word.len() >= 3 && candidate.starts_with(word))
    {
        return Some(longer);
    }
    let near = |candidate: &&str| distance(word, candidate);
    known
        .iter()
        .copied()
        .min_by_key(|candidate| near(candidate))
        .filter(|best| near(best) <= word.len().div_ceil(3))
}

/// The Levenshtein distance: letters to add, remove or change.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let changed = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

/// Skips the rest of a wrong option.
pub(crate) fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        // The input is not at its end, so this finds a token.
        let _ = input.parse::<TokenTree>();
    }
}

#[cfg(test)]
mod tests {
    use super::{check_name, milliseconds, nearest};

    #[test]
    fn only_fitting_names_are_accepted() {
        assert!(check_name("add_2-x").is_ok());
        assert!(check_name(&"a".repeat(64)).is_ok());
        for name in ["", "a b", "größe", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn only_valid_durations_are_parsed() {
        assert_eq!(milliseconds("500ms"), Ok(500));
        assert_eq!(milliseconds("2s"), Ok(2_000));
        assert_eq!(milliseconds("1m"), Ok(60_000));
        assert_eq!(milliseconds("1h"), Ok(3_600_000));
        for text in [
            "",
            "2",
            "s",
            "0s",
            "-1s",
            "1.5s",
            "2 s",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(milliseconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nearest_known_word_is_suggested() {
        let known = ["description", "max_execution", "read_only"];
        assert_eq!(nearest("readonly", &known), Some("read_only"));
        assert_eq!(nearest("discription", &known), Some("description"));
        assert_eq!(nearest("max_exec", &known), Some("max_execution"));
        assert_eq!(nearest("colour", &known), None);
    }
}
