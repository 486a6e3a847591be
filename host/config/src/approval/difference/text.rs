//! Compares a configuration with its earlier text, for the page of `toolcell approve`.
//!
//! `Page::of_texts` takes the text of the last approval, if there is one, and the present text. It
//! returns the lines that differ, each group below its section and line number, or all lines of a
//! new text. Comments and empty lines are left out if the rest parses to the same content;
//! otherwise such a line can be part of a string, and all lines are compared. Every line that
//! differs is shown, or the page reports that it is truncated. A control character is shown as its
//! number, and the password of a proxy is not shown.

use similar::{DiffTag, TextDiff};

use super::{DIFF_TIMEOUT, Page};
use crate::approval::trust::has_same_content;
use crate::schema::without_password;
use crate::text::clean;

#[derive(Clone)]
struct Line<'a> {
    number: usize,
    text: &'a str,
    /// The text for display.
    shown: String,
}

impl Page {
    /// Returns the lines of a configuration that differ from the earlier text, each group below its
    /// section and line number. Without an earlier text, returns all lines. Empty lines and
    /// comments are left out, because they are not part of what is approved.
    pub fn of_texts(old: Option<&str>, new: &str) -> Self {
        let now = meaningful(new);
        let lines = match old {
            Some(old) => changed_lines(&meaningful(old), &now),
            None => new_lines(&now, new.lines().count()),
        };
        Self::beginning(lines)
    }
}

/// Returns the lines without comments and empty lines. Returns all lines if the rest would parse to
/// something else, since such a line can be part of a string.
fn meaningful(text: &str) -> Vec<Line<'_>> {
    // Lines are compared with the password and shown without it.
    let shown = without_password(text);
    let lines = (1..).zip(text.lines().zip(shown.lines()));
    let line = |(number, (text, shown))| Line { number, text, shown: clean::escaped(shown) };
    let all: Vec<Line<'_>> = lines.map(line).collect();
    let is_silent = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let rest: Vec<_> = all.iter().filter(|line| !is_silent(line.text)).cloned().collect();
    let joined: String = rest.iter().map(|line| format!("{}\n", line.text)).collect();
    if has_same_content(text, &joined) { rest } else { all }
}

/// Returns the lines of a new text, which has `of` lines in total.
fn new_lines(lines: &[Line<'_>], of: usize) -> Vec<String> {
    let left_out = match of - lines.len() {
        0 => None,
        1 => Some("    (1 line that is a comment or empty is left out)".to_owned()),
        lines => Some(format!("    ({lines} lines that are comments or empty are left out)")),
    };
    lines.iter().map(|line| format!("    | {}", line.shown)).chain(left_out).collect()
}

/// Returns the removed and added lines, each group below its section and line number.
fn changed_lines(old: &[Line<'_>], new: &[Line<'_>]) -> Vec<String> {
    let [before, now] =
        [old, new].map(|lines| lines.iter().map(|line| line.text).collect::<Vec<_>>());
    let difference = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_slices(&before, &now);
    let mut lines = Vec::new();
    for op in difference.ops().iter().filter(|op| op.tag() != DiffTag::Equal) {
        let (gone, came) = (op.old_range(), op.new_range());
        // The place of removed lines is that in the earlier text.
        let (text, range, is_before) =
            if came.is_empty() { (old, &gone, " before") } else { (new, &came, "") };
        // If all lines are compared, an added section often starts with an empty line, which
        // belongs to no other section.
        let is_empty = |at: &usize| text.get(*at).is_some_and(|line| line.text.trim().is_empty());
        let first = range.clone().find(|at| !is_empty(at)).unwrap_or(range.start);
        let until_here = text.get(..=first).unwrap_or(text);
        let section = until_here.iter().rfind(|line| line.text.starts_with('['));
        let section =
            section.map(|line| format!("{}, ", line.shown.trim_end())).unwrap_or_default();
        let number = text.get(first).map_or(first + 1, |line| line.number);
        lines.push(format!("    {section}line {number}{is_before}"));
        let signed = |sign: char, lines: Option<&[Line<'_>]>| -> Vec<_> {
            lines.into_iter().flatten().map(|line| format!("      {sign} {}", line.shown)).collect()
        };
        lines.extend(signed('-', old.get(gone)));
        lines.extend(signed('+', new.get(came)));
    }
    lines
}
