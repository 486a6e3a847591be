//! Renders Markdown as plain text.
//!
//! In: Markdown. Out: blocks with a blank line between them; lists, quotes and tables keep their
//! shape.
//! Invariants: a line is at most as long as its text in the source plus a bounded prefix; HTML tags
//! are left out, the words between inline ones stay.
//! Not here: wrapping. The caller knows the width.

use pulldown_cmark::{Event, LinkType, Parser, Tag, TagEnd};

use crate::html::is_safe;
use crate::page::Page;
use crate::{dialect, table};

/// Treatment of the addresses of links: shown in parentheses after the link, or hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Show,
    Hide,
}

/// Renders `source` as text.
pub(crate) fn render(source: &str, links: Links) -> String {
    let mut text = Text {
        links,
        page: Page::default(),
        open: Vec::new(),
        counters: Vec::new(),
        rows: Vec::new(),
    };
    for event in Parser::new_ext(source, dialect()) {
        text.event(event);
    }
    text.page.finish()
}

struct Text {
    links: Links,
    page: Page,
    /// For each open link, the offset of its text and its address.
    open: Vec<(usize, Option<String>)>,
    /// The next number of each open list; `None` for bullets.
    counters: Vec<Option<u64>>,
    /// Rows of the open table.
    rows: Vec<Vec<String>>,
}

impl Text {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text)
            | Event::Code(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => {
                self.page.write(&text);
            }
            Event::InlineHtml(tag) if is_line_break(&tag) => self.page.write("\n"),
            Event::Html(_) | Event::InlineHtml(_) => {}
            Event::FootnoteReference(name) => self.page.write(&format!("[{name}]")),
            Event::SoftBreak => self.page.write(" "),
            Event::HardBreak => self.page.write("\n"),
            Event::TaskListMarker(done) => self.page.write(if done { "[x] " } else { "[ ] " }),
            Event::Rule => {
                self.page.write("---");
                self.page.end_block();
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::BlockQuote(_) => {
                self.page.end_line();
                self.page.enter("> ".to_owned(), "> ".to_owned());
            }
            Tag::List(first) => {
                self.page.end_line();
                self.counters.push(first);
            }
            Tag::Item => {
                let marker = match self.counters.last_mut() {
                    Some(Some(number)) => {
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    Some(None) | None => "- ".to_owned(),
                };
                let indent = " ".repeat(marker.len());
                self.page.enter(marker, indent);
            }
            Tag::FootnoteDefinition(name) => {
                self.page.enter(format!("[{name}]: "), "    ".to_owned())
            }
            Tag::CodeBlock(_) => {
                self.page.end_line();
                self.page.enter("    ".to_owned(), "    ".to_owned());
            }
            Tag::Link { link_type: LinkType::Email, .. } => {
                self.open.push((self.page.position(), None))
            }
            Tag::Link { dest_url, .. } => {
                let address = (self.links == Links::Show && is_safe(&dest_url))
                    .then(|| dest_url.into_string());
                self.open.push((self.page.position(), address));
            }
            Tag::Image { .. } => self.page.write("[image: "),
            Tag::Table(_) => {
                self.page.end_line();
                self.rows.clear();
            }
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::Strikethrough => self.page.write("~~"),
            Tag::Paragraph
            | Tag::Heading { .. }
            | Tag::HtmlBlock
            | Tag::TableCell
            | Tag::Emphasis
            | Tag::Strong
            | Tag::Superscript
            | Tag::Subscript
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::HtmlBlock => self.page.end_block(),
            TagEnd::BlockQuote(_) | TagEnd::CodeBlock | TagEnd::FootnoteDefinition => {
                self.page.end_block();
                self.page.leave();
            }
            TagEnd::Item => {
                self.page.end_line();
                self.page.leave();
            }
            TagEnd::List(_) => {
                self.counters.pop();
                if self.counters.is_empty() {
                    self.page.end_block();
                }
            }
            TagEnd::TableCell => {
                let cell = self.page.take();
                if let Some(row) = self.rows.last_mut() {
                    row.push(cell.replace('\n', " "));
                }
            }
            TagEnd::Table => {
                self.page.write(&table::aligned(&self.rows));
                self.page.end_block();
            }
            TagEnd::Link => {
                if let Some((start, Some(address))) = self.open.pop()
                    && !address.is_empty()
                    && self.page.since(start) != address
                {
                    self.page.write(&format!(" ({address})"));
                }
            }
            TagEnd::Image => self.page.write("]"),
            TagEnd::Strikethrough => self.page.write("~~"),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => {}
        }
    }
}

fn is_line_break(tag: &str) -> bool {
    let name = tag.trim_start_matches('<').trim_end_matches('>').trim_end_matches('/').trim();
    name.eq_ignore_ascii_case("br")
}

#[cfg(test)]
mod tests;
