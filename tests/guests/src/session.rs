//! Compares the output of a command with the lines that a page shows.

/// Returns true if the output matches the expected lines. A line that is `…` matches any lines, and
/// `…` within a line any text.
pub fn fits(expected: &[&str], seen: &[&str]) -> bool {
    match expected {
        [] => seen.is_empty(),
        ["…", rest @ ..] => (0..=seen.len()).any(|skipped| fits(rest, &seen[skipped..])),
        [line, rest @ ..] => {
            seen.first().is_some_and(|first| fits_line(line, first)) && fits(rest, &seen[1..])
        }
    }
}

fn fits_line(expected: &str, seen: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(rest) = parts.next().and_then(|first| seen.strip_prefix(first)) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    let after =
        middle.iter().try_fold(rest, |rest, part| rest.split_once(part).map(|(_, after)| after));
    after.is_some_and(|rest| rest.ends_with(last))
}
