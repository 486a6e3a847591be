//! Plain text of blocks, lists, quotes, tables and links.

use super::*;

fn text(source: &str) -> String {
    render(source, Links::Show)
}

#[test]
fn paragraphs_are_kept_and_emphasis_marks_removed() {
    assert_eq!(
        text("# Title\n\nSome *very* **bold**\n`code`.  \nNext"),
        "Title\n\nSome very bold code.\nNext"
    );
    assert_eq!(text("~~9~~ 5\n\n---\n\nend"), "~~9~~ 5\n\n---\n\nend");
    assert_eq!(text(""), "");
}

#[test]
fn links_show_urls_and_images_their_alt_text() {
    assert_eq!(
        text("[site](https://a.b) <https://c.d> <me@a.b>"),
        "site (https://a.b) https://c.d me@a.b"
    );
    assert_eq!(text("[x](javascript:alert(1)) ![cat](c.png)"), "x [image: cat]");
    assert_eq!(render("[site](https://a.b)", Links::Hide), "site");
}

#[test]
fn lists_keep_nesting_and_numbers() {
    let source = "3. three\n4. four\n   - a\n   - [x] b\n\nAfter";
    assert_eq!(text(source), "3. three\n4. four\n   - a\n   - [x] b\n\nAfter");
    assert_eq!(text("- one\n\n  more\n\n- two"), "- one\n\n  more\n\n- two");
    assert_eq!(text("-\n- b"), "-\n- b");
}

#[test]
fn quotes_keep_marks_and_code_is_indented() {
    assert_eq!(text("> a\n>\n> b\n\nc"), "> a\n>\n> b\n\nc");
    assert_eq!(text("p\n\n> q\n> > r"), "p\n\n> q\n>\n> > r");
    assert_eq!(text("```rust\nfn a() {\n\n    b\n}\n```"), "    fn a() {\n\n        b\n    }");
}

#[test]
fn table_columns_are_aligned() {
    let source = "| Name | Q |\n|---|--:|\n| Äpfel | 3 |\n| `b` | |";
    assert_eq!(text(source), "Name  | Q\n------|--\nÄpfel | 3\nb     |");
}

#[test]
fn footnotes_keep_their_names() {
    assert_eq!(text("See[^n].\n\n[^n]: The *note*."), "See[n].\n\n[n]: The note.");
}

#[test]
fn html_tags_are_removed() {
    assert_eq!(text("a <b>c</b><br>d"), "a c\nd");
    assert_eq!(text("<div>\nhidden\n</div>\n\nshown"), "shown");
}

#[test]
fn deep_or_wide_sources_give_bounded_output() {
    let deep = format!("{}x\n{}", ">".repeat(2000), "y\n".repeat(200));
    assert!(text(&deep).len() < 201 * 2 * 20);
    let wide = format!("|{}|\n|-|\n{}", "w".repeat(5000), "|a|\n".repeat(500));
    assert!(text(&wide).len() < 5100 + 501 * 50);
}
