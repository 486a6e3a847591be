//! Reads doc comments, parses names and durations in options, suggests the nearest known word, and
//! skips wrong options.

use proc_macro2::TokenTree;
use syn::parse::ParseStream;
use syn::{Attribute, Expr, Lit, Meta, Token};

/// Returns the text of the doc comment among these attributes, with one line for each paragraph.
pub(crate) fn doc(attributes: &[Attribute]) -> String {
    let texts: Vec<String> = attributes.iter().filter_map(doc_text).collect();
    let lines = texts.iter().flat_map(|text| text.split('\n'));
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
    join_paragraphs(lines).trim().to_owned()
}

/// Returns the text of a doc comment's attribute; none for any other attribute.
pub(crate) fn doc_text(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(literal) = &pair.value else { return None };
    let Lit::Str(text) = &literal.lit else { return None };
    pair.path.is_ident("doc").then(|| text.value())
}

/// The place of a line of Markdown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between two blocks.
    Between,
    Paragraph,
    /// A list, a table, a heading, a quote or code. It ends at an empty line.
    Other,
}

/// Joins the lines of each paragraph of Markdown with spaces. All other lines stay.
fn join_paragraphs<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let (mut before, mut fence) = (Place::Between, None);
    for line in lines {
        let words = line.trim_start();
        let opened = ["```", "~~~"].into_iter().find(|fence| words.starts_with(fence));
        let place = if fence.is_some() && opened == fence {
            fence = None;
            Place::Between
        } else if fence.is_some() || opened.is_some() {
            fence = fence.or(opened);
            Place::Other
        } else if words.is_empty() {
            Place::Between
        } else if before == Place::Other || begins_other(line, before) {
            Place::Other
        } else {
            Place::Paragraph
        };
        let is_next = (before, place) == (Place::Paragraph, Place::Paragraph);
        text.push_str(if is_next { " " } else { "\n" });
        text.push_str(if is_next { words } else { line });
        before = place;
    }
    text
}

/// Returns true if a line begins a block that is no paragraph.
fn begins_other(line: &str, before: Place) -> bool {
    let words = line.trim_start();
    let word = words.split(' ').next().unwrap_or_default();
    let number = word.strip_suffix(['.', ')']).filter(|number| number.parse::<u32>().is_ok());
    // In the middle of a paragraph, an indentation means nothing, and only a list from 1 begins.
    let is_inside = before == Place::Paragraph;
    number.is_some_and(|number| number == "1" || !is_inside)
        || ["-", "*", "+", "---", "==="].contains(&word)
        || words.starts_with(['>', '|'])
        || !word.is_empty() && word.chars().all(|c| c == '#')
        || !is_inside && (line.starts_with("  ") || line.starts_with('\t'))
}

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
    use syn::{Attribute, parse_quote};

    use super::{check_name, doc, milliseconds, nearest};

    #[test]
    fn lines_of_a_paragraph_are_joined() {
        for (comment, expected) in [
            (" One line.", "One line."),
            (" A sentence\n over lines.\n Another.", "A sentence over lines. Another."),
            (" A\n b.\n\n C\n d.\n", "A b.\n\nC d."),
            (" A\n   b.", "A b."),
            (" Either\n - a\n   b\n - c\n\n D\n e.", "Either\n- a\n  b\n- c\n\nD e."),
            (" - a\n\n   b\n   c", "- a\n\n  b\n  c"),
            (" Do\n 1. a\n 2. b", "Do\n1. a\n2. b"),
            (" Since\n 2020. Or\n -1.", "Since 2020. Or -1."),
            (" 2. b\n c", "2. b\nc"),
            (" So:\n ```\n a\n\n  b\n ```\n C\n d.", "So:\n```\na\n\n b\n```\nC d."),
            (" ~~~\n ```\n a\n ~~~", "~~~\n```\na\n~~~"),
            (" A\n | a | b |\n |---|---|", "A\n| a | b |\n|---|---|"),
            (" # A\n b\n\n > c\n d", "# A\nb\n\n> c\nd"),
            (" A:\n\n     let b;\n     c", "A:\n\n    let b;\n    c"),
            (" \n\n", ""),
        ] {
            let lines: Vec<Attribute> =
                comment.split('\n').map(|line| parse_quote!(#[doc = #line])).collect();
            assert_eq!(doc(&lines), expected, "{comment:?}");
            // A comment of the form `/** … */` is one attribute.
            let whole: Attribute = parse_quote!(#[doc = #comment]);
            assert_eq!(doc(&[whole]), expected, "{comment:?}");
        }
    }

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
        let too_long = ["99999999999999999999s", "18446744073709551615h"];
        for text in ["", "2", "s", "0s", "-1s", "1.5s", "2 s"].into_iter().chain(too_long) {
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
