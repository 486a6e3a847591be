//! Lines under prefixes: what quotes, lists and code blocks have in common.
//!
//! Invariant: at most [`MAX_PREFIXES`] prefixes are written before a line, however deep the source
//! nests; otherwise a short source could ask for an endless page.

/// Levels that are still shown. A reader has no use for more.
const MAX_PREFIXES: usize = 16;

/// A page under construction: whole lines, and the text of the block that is open.
#[derive(Debug, Default)]
pub(crate) struct Page {
    out: String,
    open: String,
    prefixes: Vec<Prefix>,
    /// A blank line belongs before the next block.
    gap: bool,
}

#[derive(Debug)]
struct Prefix {
    /// Before the first line only: the marker of a list item.
    first: Option<String>,
    rest: String,
}

impl Page {
    /// Adds to the open block.
    pub(crate) fn write(&mut self, text: &str) {
        self.open.push_str(text);
    }

    /// Where in the open block the next text will stand.
    pub(crate) fn position(&self) -> usize {
        self.open.len()
    }

    /// What was written since then.
    pub(crate) fn since(&self, position: usize) -> &str {
        self.open.get(position..).unwrap_or_default()
    }

    /// Takes the open block away, for the cells of a table.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.open)
    }

    /// From here on lines begin with this.
    pub(crate) fn enter(&mut self, first: String, rest: String) {
        self.prefixes.push(Prefix { first: Some(first), rest });
    }

    /// Back to what lines began with before. A marker that nothing followed is written on its own.
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

    /// Ends the open block; the next one follows on the next line.
    pub(crate) fn end_line(&mut self) {
        if self.flush() {
            self.gap = false;
        }
    }

    /// Ends the open block; a blank line will follow.
    pub(crate) fn end_block(&mut self) {
        self.flush();
        self.gap = !self.out.is_empty();
    }

    /// The page, without a line break at its end.
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
    /// A quote that has not begun yet does not reach up into the gap before it.
    fn before_gap(&self) -> &str {
        if self.first.is_some() { "" } else { &self.rest }
    }
}
