//! Finds similar names: the nearest known name for a hint, and names that can be mistaken for each
//! other.
//!
//! Errors about an unknown tool, key or option call [`nearest`] with the unknown name and the known
//! ones, to add "did you mean …?". It also recognises a name behind a namespace that models invent,
//! such as `functions.add`. The approval of tools calls [`confusable`] to refuse two tools whose
//! names differ only in letters that look alike, such as `0` and `o`. Long names get no suggestion,
//! so that the comparison stays cheap. All functions are pure.

use std::collections::HashMap;

use crate::controls::enforced;

/// Returns the number of edits that still count as a typing error: a third of the name's
/// characters, at least one.
fn tolerance(name: &str) -> usize {
    (name.chars().count() / 3).max(1)
}

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
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= tolerance(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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

    #[test]
    fn look_alike_names_share_an_outline_others_do_not() {
        let mut refused = 0;
        for (name, alikes) in [
            (
                "read_file",
                "Read_File READ_FILE read_fIle read-file read.file read__file read_-file _read_file read_file_ \
                 -read-file- read_fi1e read_flle read_f1le read_fiIe ReAd_FiLe READ-FILE read_flie READ_F1LE READ_FI1E",
            ),
            (
                "todo_list",
                "t0do_list tod0_list t0d0_list TODO_LIST todo_l1st todo_llst todo-list todo.list TODO-L1ST T0D0_1IST \
                 t0d0-1ist todo_Iist",
            ),
            ("turn_on", "tum_on turn-0n TURN_ON tum-0n tUrN_oN turn__on"),
            ("web_view", "vveb_view WEB_VIEVV web-vlew vvEb_v1ew"),
            ("sql1", "sqll sqlI sqli SQL1 SQLI sql1_ _sql1"),
            ("modern", "rnodern modem MODERN M0DERN m0dem rn0dem"),
        ] {
            for alike in alikes.split_whitespace() {
                refused += usize::from(alike != name);
                assert_eq!(confusable_skeleton(alike), confusable_skeleton(name), "{alike}");
                assert_eq!(confusable([name, alike]), (alike != name).then_some((alike, name)));
            }
        }
        let all = [
            "get_user",
            "get_users",
            "getuser",
            "set_user",
            "v1_1",
            "v11",
            "v2",
            "map",
            "mop",
            "a",
            "b",
            "10",
            "12",
        ];
        assert!(refused >= 50, "{refused}");
        assert_eq!(confusable(all), None);
        assert_eq!(confusable(["a", "b", "a"]), None, "the same name is no look-alike of itself");
        assert_eq!(
            (confusable_skeleton(""), confusable_skeleton("_-.")),
            (String::new(), String::new())
        );
    }

    #[test]
    fn misspelt_names_get_a_suggestion_others_do_not() {
        for (asked, expected) in [
            ("calculater", Some("calculator")),
            ("JQ", Some("jq")),
            ("book-table", Some("book_table")),
            ("weather", None),
            ("", None),
            // Namespaces and marks that models write around a name.
            ("functions.jq", Some("jq")),
            ("default_api:jq", Some("jq")),
            ("mcp__calc__jq", Some("jq")),
            ("mcp__calc__jq_all", Some("calc__jq_all")),
            ("jq<|channel|>commentary json", Some("jq")),
            ("functions.calculator<|constrain|>json", Some("calculator")),
            ("functions.", None),
            ("<|", None),
        ] {
            assert_eq!(
                nearest(asked, ["calculator", "jq", "book_table", "calc__jq_all"]),
                expected,
                "{asked}"
            );
        }
    }
}
