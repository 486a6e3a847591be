//! A configuration compared with its text before.
//!
//! In: two texts. Out: the lines that differ, below their section and line.
//! Invariants: every line that differs is shown, or the page says that it is cut; a control character is shown as its number.

use similar::{DiffTag, TextDiff};

use super::{PATIENCE, Page, beginning, cut_note};
use crate::clean;

impl Page {
    /// The lines of a configuration that differ from those before, each group of them below its section and line; without a
    /// text before, all lines.
    pub fn of_texts(old: Option<&str>, new: &str) -> Self {
        let lines = match old {
            Some(old) => changed_lines(old, new),
            None => new.lines().map(|line| format!("    | {}", clean::shown(line))).collect(),
        };
        let (mut lines, cut) = beginning(lines);
        lines.extend((cut > 0).then(|| cut_note(cut)));
        Self { lines, is_cut: cut > 0 }
    }
}

/// The lines of a file that went and came, each group below its section and line.
fn changed_lines(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let difference = TextDiff::configure().timeout(PATIENCE).diff_slices(&old, &new);
    let mut lines = Vec::new();
    for op in difference.ops().iter().filter(|op| op.tag() != DiffTag::Equal) {
        let (gone, came) = (op.old_range(), op.new_range());
        // Lines that only went have their place in the text before.
        let (text, range) = if came.is_empty() { (&old, &gone) } else { (&new, &came) };
        // An added section often begins with an empty line, which belongs to no other one.
        let is_empty = |at: &usize| text.get(*at).is_some_and(|line| line.trim().is_empty());
        let first = range.clone().find(|at| !is_empty(at)).unwrap_or(range.start);
        let until_here = text.get(..=first).unwrap_or(text);
        let section = until_here.iter().rfind(|line| line.starts_with('[')).map(|line| clean::shown(line.trim_end()));
        let before = if came.is_empty() { " before" } else { "" };
        let section = section.map(|section| format!("{section}, ")).unwrap_or_default();
        lines.push(format!("    {section}line {}{before}", first + 1));
        let signed = |sign: char, lines: Option<&[&str]>| -> Vec<_> {
            lines.into_iter().flatten().map(|line| format!("      {sign} {}", clean::shown(line))).collect()
        };
        lines.extend(signed('-', old.get(gone)));
        lines.extend(signed('+', new.get(came)));
    }
    lines
}
