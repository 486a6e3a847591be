//! Lays out lines with prefixes, for quotes, lists and code blocks.
//!
//! Invariants: at most [`MAX_PREFIXES`] prefixes are written before a line, however deep the source
//! nests. Otherwise a short source could produce a huge page.

/// Levels of nesting that are shown. Deeper ones do not help a reader.
const MAX_PREFIXES: usize = 16;

/// A page under construction: its finished lines and the text of the open block.
#[derive(Debug, Default)]
pub(crate) struct Page {
    out: String,
    open: String,
    prefixes: Vec<Prefix>,
    /// True if a blank line is due before the next block.
    gap: bool,
}

#[derive(Debug)]
struct Prefix {
    /// Used for the first line only: the marker of a list item.
    first: Option<String>,
    rest: String,
}

impl Page {
    /// Appends to the open block.
    pub(crate) fn write(&mut self, text: &str) {
        self.open.push_str(text);
    }

    /// Offset in the open block at which the next text will be written.
    pub(crate) fn position(&self) -> usize {
        self.open.len()
    }

    /// The text of the open block from this offset on.
    pub(crate) fn since(&self, position: usize) -> &str {
        self.open.get(position..).unwrap_or_default()
    }

    /// Removes and returns the text of the open block, for the cells of a table.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.open)
    }

    /// Adds a prefix: `first` for the next line, `rest` for the lines after it.
    pub(crate) fn enter(&mut self, first: String, rest: String) {
        self.prefixes.push(Prefix { first: Some(first), rest });
    }

    /// Removes the last prefix. A marker without text is written on a line of its own.
    pub(crate) fn leave(&mut self) {
        if self
            .prefixes
            .last()
            .is_some_and(|prefix| prefix.first.is_some() && prefix.rest.trim().is_empty())
        {
            self.line("");
        }
        self.prefixes.pop();
    }

    /// Ends the open block. The next one follows without a blank line.
    pub(crate) fn end_line(&mut self) {
        if self.flush() {
            self.gap = false;
        }
    }

    /// Ends the open block. A blank line follows.
    pub(crate) fn end_block(&mut self) {
        self.flush();
        self.gap = !self.out.is_empty();
    }

    /// Returns the page, without a line break at its end.
    pub(crate) fn finish(mut self) -> String {
        self.flush();
        self.out.truncate(self.out.trim_end().len());
        self.out
    }

    fn flush(&mut self) -> bool {
        let block = self.take();
        let block = block.trim_end();
        for line in block.lines() {
            self.line(line);
        }
        !block.is_empty()
    }

    fn line(&mut self, text: &str) {
        if std::mem::take(&mut self.gap) {
            let quoted: String =
                self.prefixes.iter().take(MAX_PREFIXES).map(|prefix| prefix.before_gap()).collect();
            self.out.push_str(quoted.trim_end());
            self.out.push('\n');
        }
        let start = self.out.len();
        for (level, prefix) in self.prefixes.iter_mut().enumerate() {
            let before = prefix.first.take();
            if level < MAX_PREFIXES {
                self.out.push_str(before.as_deref().unwrap_or(&prefix.rest));
            }
        }
        self.out.push_str(text);
        let end = self.out.trim_end().len().max(start);
        self.out.truncate(end);
        self.out.push('\n');
    }
}

impl Prefix {
    /// The prefix of a blank line. Empty if the first line of a quote or an item is still to come.
    fn before_gap(&self) -> &str {
        if self.first.is_some() { "" } else { &self.rest }
    }
}
