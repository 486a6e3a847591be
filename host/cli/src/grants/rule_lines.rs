//! Finds the place of a rule in the text of the configuration.
//!
//! The parsed configuration no longer knows where each rule stands. [`RuleLines`] reads the file
//! again, and returns for a path of keys, such as `components`, `notes`, `grants`, `http`, the line
//! (counted from 1), the written text, or the items of a list with their byte ranges. Explanations
//! and the writer of lines to paste use it. If the file can no longer be read there are no places,
//! and the callers leave them out.
//!
//! Not here: the meaning of the rules. The file has been read and accepted before.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::Config;
use toolcell_config::paths::files;

/// The text of a configuration.
pub(crate) struct RuleLines(String);

/// An item of a list or a table: its text, its line, and its byte range in the file.
pub(crate) struct Item {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) span: Range<usize>,
}

/// The comment after lines to paste, before the numbers of the lines that they replace.
pub(crate) const REPLACED: &str = "  # in place of ";

/// A byte range in the file, and the text that replaces it.
pub(crate) type Edit = (Range<usize>, String);

impl RuleLines {
    /// Reads the configuration's file; none if there is no file that can still be read.
    pub(crate) fn read(config: &Config) -> Option<Self> {
        files::configuration(Path::new(config.file.as_deref()?)).ok().map(Self)
    }

    /// Returns the lines of this text.
    #[cfg(test)]
    pub(crate) fn of(text: String) -> Self {
        Self(text)
    }

    /// Returns a member's value in its written form, with its place. For a table with a header of
    /// its own that is the header.
    pub(crate) fn part(&self, place: &[&str]) -> Option<Item> {
        let span = self.at(place, |value| value.span())?;
        Some(Item { text: self.0.get(span.clone())?.to_owned(), line: self.line_of(&span), span })
    }

    /// Returns a member in one line, as `KEY = VALUE`, with its place.
    pub(crate) fn setting(&self, place: &[&str]) -> Option<Item> {
        let part = self.part(place)?;
        let value = part.text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Item { text: format!("{} = {value}", place.last()?), ..part })
    }

    /// Returns the text before an item in its line.
    pub(crate) fn before(&self, item: &Item) -> &str {
        let before = self.0.get(..item.span.start).unwrap_or_default();
        before.rsplit('\n').next().unwrap_or_default().trim()
    }

    /// Returns the items of a list: the text of each, or the `rule` or `name` of a table. For a
    /// table, returns its keys.
    pub(crate) fn items(&self, place: &[&str]) -> Vec<Item> {
        let spans = |value: &Spanned<DeValue<'_>>| -> Vec<(String, Range<usize>)> {
            match (value.get_ref().as_array(), value.get_ref().as_table()) {
                (Some(items), _) => {
                    items.iter().filter_map(|item| Some((text_of(item)?, item.span()))).collect()
                }
                (_, Some(table)) => {
                    table.keys().map(|key| (key.get_ref().to_string(), key.span())).collect()
                }
                (None, None) => Vec::new(),
            }
        };
        let found = self.at(place, spans).unwrap_or_default();
        found
            .into_iter()
            .map(|(text, span)| Item { text, line: self.line_of(&span), span })
            .collect()
    }

    /// Returns the edit that adds `new` after the items of a list or of an inline table; none for a
    /// table in dotted keys or with a header.
    pub(crate) fn appended(&self, place: &[&str], new: &str) -> Option<Edit> {
        let edit = |value: &Spanned<DeValue<'_>>| {
            let text = self.0.get(value.span()).unwrap_or_default();
            let is_table = text.starts_with('{');
            let ends: Vec<_> = match (value.get_ref().as_array(), value.get_ref().as_table()) {
                (Some(items), _) if !text.starts_with("[[") => {
                    items.iter().map(|item| item.span().end).collect()
                }
                (_, Some(members)) if is_table => {
                    members.values().map(|member| self.end(member)).collect()
                }
                (_, _) => return None,
            };
            let start = value.span().start + 1;
            Some(match ends.into_iter().max() {
                Some(end) => (end..end, format!(", {new}")),
                None if is_table => (start..start, format!(" {new} ")),
                None => (start..start, new.to_owned()),
            })
        };
        self.at(place, edit)?
    }

    /// Returns the end of a member of an inline table. The span of a table in dotted keys is its
    /// key alone.
    fn end(&self, member: &Spanned<DeValue<'_>>) -> usize {
        let is_whole = self.0.get(member.span()).is_none_or(|text| text.starts_with('{'));
        let dotted = member.get_ref().as_table().filter(|_| !is_whole);
        let ends = dotted.into_iter().flat_map(|table| table.values()).map(|part| self.end(part));
        ends.max().unwrap_or(member.span().end)
    }

    /// Returns the lines of an item with these edits; none if one is elsewhere, because the file has
    /// changed. A pasted comment about the lines that were replaced is left out.
    pub(crate) fn edited(&self, item: &Item, mut edits: Vec<Edit>) -> Option<String> {
        let start = self.0.get(..item.span.start)?.rfind('\n').map_or(0, |at| at + 1);
        let after = self.0.get(item.span.end..)?.lines().next().unwrap_or_default();
        let after = after.split(REPLACED).next().unwrap_or_default();
        let mut text = self.0.get(start..item.span.end + after.len())?.to_owned();
        // From the last to the first, so that earlier places stay valid.
        edits.sort_by_key(|(span, _)| Reverse(span.start));
        for (span, new) in edits {
            let range = span.start.checked_sub(start)?..span.end.checked_sub(start)?;
            text.get(range.clone())?;
            text.replace_range(range, &new);
        }
        Some(text.trim().to_owned())
    }

    fn at<T>(&self, place: &[&str], look: impl FnOnce(&Spanned<DeValue<'_>>) -> T) -> Option<T> {
        let (tree, _) = DeTable::parse_recoverable(&self.0);
        let (last, above) = place.split_last()?;
        let mut table = tree.get_ref();
        for name in above {
            table = table.get(*name)?.get_ref().as_table()?;
        }
        table.get(*last).map(look)
    }

    fn line_of(&self, span: &Range<usize>) -> usize {
        self.0.get(..span.start).unwrap_or(&self.0).matches('\n').count() + 1
    }
}

fn text_of(item: &Spanned<DeValue<'_>>) -> Option<String> {
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    text(item.get_ref()).or_else(|| {
        let table = item.get_ref().as_table()?;
        ["rule", "name"].iter().find_map(|key| text(table.get(*key)?.get_ref()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_located_by_line() {
        let text = "[components.x]\npath = \"x\"\n[components.x.grants]\nhttp = [\n  \"GET https://a.example\",\n\
                    { rule = \"GET http://b\", private_networks = [] },\n]\nkv = [\"read a\"]\n[components.x.grants.secrets]\n\
                    key = { destination = \"https://a.example\" }\n";
        let lines = RuleLines(text.to_owned());
        let items = |kind: &str| -> Vec<(String, usize)> {
            let items = lines.items(&["components", "x", "grants", kind]);
            items.into_iter().map(|item| (item.text, item.line)).collect()
        };
        assert_eq!(
            items("http"),
            [("GET https://a.example".to_owned(), 5), ("GET http://b".to_owned(), 6)]
        );
        assert_eq!(items("secrets"), [("key".to_owned(), 10)]);
        assert!(items("reveal").is_empty());
        assert_eq!(lines.part(&["components", "x", "grants"]).unwrap().line, 3);
        let text = |kind: &str| lines.part(&["components", "x", "grants", kind]).unwrap().text;
        assert_eq!(text("kv"), "[\"read a\"]");
        assert_eq!(text("secrets").trim(), "[components.x.grants.secrets]");
    }
}
