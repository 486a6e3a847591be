//! Two tools: Markdown to HTML that is safe to show, and Markdown to plain text.
//!
//! `html` and `text` each render one of them; `page` and `table` lay out text.

mod html;
mod page;
mod table;
mod text;

use html::RawHtml;
use pulldown_cmark::Options;
use schemars::JsonSchema;
use serde::Deserialize;
use text::Links;
use toolcell_guest::{tool, tools};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HtmlArgs {
    /// The Markdown source.
    #[schemars(length(max = 1_000_000))]
    markdown: String,
    /// Pass HTML in the source through. Only for sources you trust: by default its tags are shown
    /// as text.
    #[serde(default)]
    allow_html: bool,
}

/// Turns Markdown (CommonMark with tables, footnotes, strikethrough and task lists) into an HTML
/// fragment. Links and images with dangerous addresses such as `javascript:` lose the address and
/// keep the text.
#[tool(
    title = "Markdown to HTML",
    read_only,
    idempotent,
    output,
    max_execution = "5s",
    attributes = { "category": "text" }
)]
fn markdown_to_html(args: HtmlArgs) -> String {
    html::render(&args.markdown, if args.allow_html { RawHtml::Keep } else { RawHtml::Escape })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TextArgs {
    /// The Markdown source.
    #[schemars(length(max = 1_000_000))]
    markdown: String,
    /// Leave out the addresses of links, which are otherwise written in parentheses behind their
    /// text.
    #[serde(default)]
    hide_links: bool,
}

/// Turns Markdown into plain text for reading: lists, quotes, code and tables keep their shape,
/// marks and HTML tags are left out. Use it to show or to count what a person would read.
#[tool(
    title = "Markdown to text",
    read_only,
    idempotent,
    output,
    max_execution = "5s",
    attributes = { "category": "text" }
)]
fn markdown_to_text(args: TextArgs) -> String {
    text::render(&args.markdown, if args.hide_links { Links::Hide } else { Links::Show })
}

tools![markdown_to_html, markdown_to_text];

/// The extensions of CommonMark that both tools support.
fn dialect() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
}
