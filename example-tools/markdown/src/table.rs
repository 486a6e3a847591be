//! Aligns the columns of a table.

/// Characters up to which cells are padded. Padding every row to the width of one huge cell would
/// turn a short source into a huge page.
const MAX_PADDING: usize = 40;

/// Renders the rows, of which the first is the head.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(|column| width(rows, column)).collect();
    let mut out = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        out.push_str(cells.join(" | ").trim_end());
        out.push('\n');
        if index == 0 {
            let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
            out.push_str(&rule.join("-|-"));
            out.push('\n');
        }
    }
    out
}

fn width(rows: &[Vec<String>], column: usize) -> usize {
    let widths = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
    widths.max().unwrap_or_default().clamp(1, MAX_PADDING)
}
