//! Renders Markdown as HTML that is safe to show.
//!
//! Invariants: no tag of the source stays a tag unless the caller allows it; no link or image keeps
//! an address that could run code. A dropped link or image leaves its text.

use pulldown_cmark::{CowStr, Event, LinkType, Parser, Tag, TagEnd, html};

use crate::dialect;

/// Treatment of HTML in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RawHtml {
    /// Shown as text.
    Escape,
    /// Passed through unchanged, for sources that the caller trusts.
    Keep,
}

/// Schemes that are safe to open. Addresses without a scheme are relative to the page.
const SCHEMES: [&str; 5] = ["http", "https", "mailto", "tel", "xmpp"];

/// Turns `source` into HTML.
pub(crate) fn render(source: &str, raw: RawHtml) -> String {
    // For each open link and image, true if it was dropped; the innermost is last.
    let mut dropped: Vec<bool> = Vec::new();
    let events = Parser::new_ext(source, dialect()).filter_map(|event| match event {
        Event::Start(
            Tag::Link { link_type, ref dest_url, .. } | Tag::Image { link_type, ref dest_url, .. },
        ) => {
            let keep = link_type == LinkType::Email || is_safe(dest_url);
            dropped.push(!keep);
            keep.then_some(event)
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            (!dropped.pop().unwrap_or_default()).then_some(event)
        }
        _ if raw == RawHtml::Keep => Some(event),
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        Event::Start(_)
        | Event::End(_)
        | Event::Text(_)
        | Event::Code(_)
        | Event::InlineMath(_)
        | Event::DisplayMath(_)
        | Event::FootnoteReference(_)
        | Event::SoftBreak
        | Event::HardBreak
        | Event::Rule
        | Event::TaskListMarker(_) => Some(event),
    });
    let mut out = String::with_capacity(source.len() * 3 / 2);
    html::push_html(&mut out, events);
    out
}

/// Returns true if the address is safe to open. Ignores blanks and control characters in the
/// scheme, as browsers do.
pub(crate) fn is_safe(address: &CowStr<'_>) -> bool {
    let visible: String =
        address.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    match visible.split_once(':') {
        // A colon after a slash, a question mark or a hash does not end a scheme.
        Some((before, _)) if !before.contains(['/', '?', '#']) => {
            SCHEMES.iter().any(|scheme| before.eq_ignore_ascii_case(scheme))
        }
        Some(_) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(source: &str) -> String {
        render(source, RawHtml::Escape)
    }

    #[test]
    fn common_markdown_extensions_are_rendered() {
        assert_eq!(html("# Hi *you*"), "<h1>Hi <em>you</em></h1>\n");
        assert_eq!(html("~~old~~ `a<b`"), "<p><del>old</del> <code>a&lt;b</code></p>\n");
        assert!(html("a | b\n--|--\n1 | 2").contains("<td>2</td>"));
        assert!(
            html("- [x] done").contains("<input disabled=\"\" type=\"checkbox\" checked=\"\"/>")
        );
        assert!(html("See[^1].\n\n[^1]: Note").contains("footnote-definition"));
    }

    #[test]
    fn html_tags_are_escaped_unless_kept() {
        assert_eq!(html("a <b>x</b>"), "<p>a &lt;b&gt;x&lt;/b&gt;</p>\n");
        assert_eq!(
            html("<script>\nalert(1)\n</script>"),
            "<p>&lt;script&gt;\nalert(1)\n&lt;/script&gt;</p>\n"
        );
        assert_eq!(render("a <b>x</b>", RawHtml::Keep), "<p>a <b>x</b></p>\n");
    }

    #[test]
    fn executable_urls_are_dropped() {
        assert_eq!(html("[x](javascript:alert(1))"), "<p>x</p>\n");
        assert_eq!(html("![x](data:text/html;base64,AAAA)"), "<p>x</p>\n");
        assert_eq!(
            html("[![i](vbscript:x)](https://a.b)"),
            "<p><a href=\"https://a.b\">i</a></p>\n"
        );
        assert_eq!(html("[x](&#106;avascript:alert(1))"), "<p>x</p>\n");
        assert_eq!(render("[x](JaVaScRiPt:1)", RawHtml::Keep), "<p>x</p>\n");
        assert_eq!(html("<javascript:alert(1)>"), "<p>javascript:alert(1)</p>\n");
        assert_eq!(html("<me@a.b>"), "<p><a href=\"mailto:me@a.b\">me@a.b</a></p>\n");
    }

    #[test]
    fn url_schemes_are_read_as_in_browsers() {
        for address in
            ["https://a.b", "HTTP://a", "/a:b", "a?b:c", "#a:b", "mailto:a@b", "", "page.html"]
        {
            assert!(is_safe(&address.into()), "{address}");
        }
        for address in [
            "javascript:x",
            " java\tscript:x",
            "data:x",
            "file:///etc/passwd",
            "\u{1}javascript:x",
            ":x",
        ] {
            assert!(!is_safe(&address.into()), "{address}");
        }
    }
}
