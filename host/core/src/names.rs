//! The nearest known name: for hints.
//!
//! Pure: same input, same answer.

/// How many edits still count as a slip of the hand: a third of the name, at least one.
fn tolerance(name: &str) -> usize {
    (name.chars().count() / 3).max(1)
}

/// Bytes of a name that anybody could have mistyped: the comparison takes their product.
const LONGEST: usize = 64;
/// Candidates that are looked at.
const CANDIDATES: usize = 256;

/// The candidate that is most like `name`, if any is like it at all.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .take(CANDIDATES)
        .map(|candidate| (strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= tolerance(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        for (asked, expected) in [
            ("calculater", Some("calculator")),
            ("JQ", Some("jq")),
            ("book-table", Some("book_table")),
            ("weather", None),
            ("", None),
        ] {
            assert_eq!(nearest(asked, ["calculator", "jq", "book_table"]), expected, "{asked}");
        }
    }
}
