//! Lays out text for a terminal: aligned columns and wrapped paragraphs.
//!
//! [`columns`] takes rows of cells and returns lines in which each column is as wide as its widest
//! cell, up to a given width; a longer cell pushes its line to the right. [`paragraph`] wraps
//! running text at 100 characters. Both indent by a number of blanks. Cells can have untrusted
//! text: line breaks become blanks and harmful characters are removed, so that the width of a cell
//! is its number of characters.

use super::clean;

/// Characters of a line of running text.
const LINE: usize = 100;

/// Returns a cell: one line without harmful characters, so that its width is its number of
/// characters.
fn cell(text: &str) -> String {
    clean::text(text).0.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns rows as lines, each column as wide as its widest cell but no wider than `widest`. A
/// longer cell pushes its line to the right.
pub(crate) fn columns(indent: usize, widest: usize, rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|text| cell(text)).collect()).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let widths = rows.iter().filter_map(|row| row.get(column).map(|cell| cell.chars().count()));
        widths.filter(|width| *width <= widest).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{:indent$}{}", "", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns running text, wrapped into lines.
pub(crate) fn paragraph(indent: usize, text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in cell(text).split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() + indent <= LINE => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("{:indent$}{line}", "")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_with_any_content() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let long = "x".repeat(60);
        let rows = [
            row(&["a", "\u{1b}b\u{200b}", "c"]),
            row(&["naïve", "two\nlines"]),
            row(&[&long, "b", "c"]),
        ];
        let expected = format!("  a      b          c\n  naïve  two lines\n  {long}  b          c");
        assert_eq!(columns(2, 48, &rows), expected);
    }

    #[test]
    fn paragraphs_are_wrapped() {
        let text = "word ".repeat(30);
        assert!(
            paragraph(4, &text)
                .lines()
                .all(|line| line.len() <= LINE && line.starts_with("    word"))
        );
        assert_eq!(paragraph(4, &text).lines().count(), 2);
    }
}
