//! Finds similar names: the nearest known name for a hint, and names that can be mistaken for each
//! other. Shortens long texts of others for messages.
//!
//! Errors about an unknown tool, key or option call [`nearest`] with the unknown name and the known
//! ones, to add "did you mean …?". It also recognises a name behind a namespace that models invent,
//! such as `functions.add`. The approval of tools calls [`confusable`] to refuse two tools whose
//! names differ only in letters that look alike, such as `0` and `o`. Long names get no suggestion,
//! so that the comparison stays cheap. All functions are pure.

use std::collections::HashMap;

use crate::controls::enforced;

/// Bytes. A longer name gets no suggestion, because the comparison takes the product of both
/// lengths.
const MAX_COMPARED: usize = 64;
/// The maximum number of candidates that are compared.
const CANDIDATES: usize = 256;

/// The separators between a namespace that models write and the name: `functions.add`,
/// `default_api:add`, `mcp__calc__add`.
const SEPARATORS: [&str; 4] = [".", ":", "/", "__"];
/// The start of a mark of a model's own format, which some models write after a name:
/// `add<|channel|>commentary`.
const FORMAT_MARK: &str = "<|";

/// Returns the candidate that is most similar to `name`, or `None` if none is similar. A candidate
/// that follows a namespace, or precedes a mark of a model's format, counts as the most similar
/// one.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.split(FORMAT_MARK).next().unwrap_or_default().trim();
    if name.len() > MAX_COMPARED {
        return None;
    }
    let candidates =
        candidates.into_iter().filter(|candidate| candidate.len() <= MAX_COMPARED).take(CANDIDATES);
    let candidates: Vec<_> = candidates.collect();
    let known =
        |ending: &str| candidates.iter().find(|candidate| candidate.eq_ignore_ascii_case(ending));
    if let Some(candidate) = endings(name).into_iter().find_map(known) {
        return Some(*candidate);
    }
    // This many edits still count as a typing error.
    let tolerance = (name.chars().count() / 3).max(1);
    let name = name.to_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&name, &candidate.to_lowercase());
    let measured = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    let similar = measured.filter(|(distance, _)| *distance <= tolerance);
    similar.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Cuts a text after `most` characters and marks the cut with `…`.
#[doc(hidden)]
#[must_use]
pub fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_owned()
    } else {
        text.chars().take(most).chain(['…']).collect()
    }
}

/// Returns the hint for an unknown name: the nearest candidate, or `otherwise` if none is similar.
#[doc(hidden)]
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    nearest(name, candidates).map_or_else(otherwise, |near| format!("did you mean `{near}`?"))
}

/// Returns the name and the text after each of its separators, the longest first.
fn endings(name: &str) -> Vec<&str> {
    let after = SEPARATORS.iter().flat_map(|separator| name.match_indices(separator));
    let mut endings: Vec<_> =
        after.filter_map(|(at, separator)| name.get(at + separator.len()..)).collect();
    endings.push(name);
    endings.sort_unstable_by_key(|ending| std::cmp::Reverse(ending.len()));
    endings
}

/// Reduces a name to what readers and models notice: without case and separators, and with one
/// letter for similar ones (`0` and `o`; `1`, `i` and `l`; `rn` and `m`; `vv` and `w`). Two names
/// with the same outline can be mistaken for each other. Names are ASCII; the pairs are the ASCII
/// ones in Unicode's list of confusables (UTS 39).
fn confusable_skeleton(name: &str) -> String {
    let mut outline = String::with_capacity(name.len());
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            '_' | '-' | '.' if outline.is_empty() || outline.ends_with('_') => {}
            '_' | '-' | '.' => outline.push('_'),
            '0' => outline.push('o'),
            '1' | 'i' => outline.push('l'),
            'n' if outline.ends_with('r') => outline.replace_range(outline.len() - 1.., "m"),
            'v' if outline.ends_with('v') => outline.replace_range(outline.len() - 1.., "w"),
            c => outline.push(c),
        }
    }
    outline.truncate(outline.trim_end_matches('_').len());
    outline
}

/// Returns the first of these names that can be mistaken for an earlier, different one, with that
/// earlier name.
#[must_use]
pub fn confusable<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, &'a str)> {
    let mut seen = HashMap::new();
    names.into_iter().find_map(|name| {
        let first = *seen.entry(confusable_skeleton(name)).or_insert(name);
        (first != name && enforced!(LookAlikes)).then_some((name, first))
    })
}

#[cfg(test)]
mod tests {
    use super::{confusable, confusable_skeleton, nearest};
    use crate::cases::rows;

    #[test]
    fn look_alike_names_share_an_outline_others_do_not() {
        let mut refused = 0;
        for (name, alikes) in
            rows::<(&str, &str)>("names", "look_alike_names_share_an_outline_others_do_not")
        {
            for alike in alikes.split_whitespace() {
                refused += usize::from(alike != name);
                assert_eq!(confusable_skeleton(alike), confusable_skeleton(name), "{alike}");
                assert_eq!(confusable([name, alike]), (alike != name).then_some((alike, name)));
            }
        }
        let all = rows::<&str>("names", "distinct_names");
        assert!(refused >= 50, "{refused}");
        assert_eq!(confusable(all), None);
        assert_eq!(confusable(["a", "b", "a"]), None, "the same name is no look-alike of itself");
        assert_eq!([confusable_skeleton(""), confusable_skeleton("_-.")], ["", ""]);
    }

    #[test]
    fn misspelt_names_get_a_suggestion_others_do_not() {
        for (asked, expected) in
            rows::<(&str, Option<&str>)>("names", "misspelt_names_get_a_suggestion_others_do_not")
        {
            let found = nearest(asked, ["calculator", "jq", "book_table", "calc__jq_all"]);
            assert_eq!(found, expected, "{asked}");
        }
        // Of several endings that are known, the longest counts.
        assert_eq!(nearest("mcp__calc.jq", ["jq", "calc.jq"]), Some("calc.jq"));
    }
}
