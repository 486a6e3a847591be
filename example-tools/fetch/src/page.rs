//! Turns a response of a server into a page that a model can read.

use schemars::JsonSchema;
use serde::Serialize;
use toolcell_guest::Failure;
use toolcell_guest::http::Response;

/// A page.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Page {
    /// The HTTP status: 200 is success, 404 is no such page.
    pub(crate) status: u16,
    /// The media type that the server names.
    pub(crate) content_type: Option<String>,
    /// Where a redirect leads.
    pub(crate) location: Option<String>,
    /// The text. What is not UTF-8 in it was replaced.
    pub(crate) text: String,
    /// Whether the text was longer.
    pub(crate) truncated: bool,
}

impl Page {
    /// Reads a response, up to `most` characters of its text.
    pub(crate) fn read(response: &Response, most: usize) -> Result<Self, Failure> {
        let header = |name| response.header(name).map(str::to_owned);
        if let Some(encoding) =
            response.header("content-encoding").filter(|encoding| *encoding != "identity")
        {
            return Err(Failure::new(format!(
                "the server answered in `{encoding}`, which was not asked for"
            )));
        }
        if response.bytes().contains(&0) {
            let of = header("content-type").unwrap_or_else(|| "unknown type".to_owned());
            return Err(Failure::new(format!(
                "there is no text: {} bytes of {of}",
                response.bytes().len()
            )));
        }
        let whole = response.text();
        let end = whole.char_indices().nth(most).map(|(end, _)| end);
        Ok(Self {
            status: response.status(),
            content_type: header("content-type"),
            location: header("location"),
            text: whole[..end.unwrap_or(whole.len())].to_owned(),
            truncated: end.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        for (body, most, text, truncated) in [
            ("größe", 3, "grö", true),
            ("größe", 5, "größe", false),
            ("", 1, "", false),
            ("ab", 1, "a", true),
        ] {
            let page = Page::read(&Response::new(200).with_body(body), most).expect("a page");
            assert_eq!((page.text.as_str(), page.truncated), (text, truncated));
        }
    }

    #[test]
    fn redirects_and_errors_are_returned_as_pages() {
        let moved = Response::new(301).with_header("Location", "https://example.com/b");
        let page = Page::read(&moved, 10).expect("a page");
        assert_eq!((page.status, page.location.as_deref()), (301, Some("https://example.com/b")));
        assert_eq!(Page::read(&Response::new(404), 10).expect("a page").status, 404);
    }

    #[test]
    fn non_text_body_is_an_error() {
        let picture =
            Response::new(200).with_header("content-type", "image/png").with_body([1, 0, 2]);
        let failure = Page::read(&picture, 10).expect_err("no text");
        assert_eq!(failure.message(), "there is no text: 3 bytes of image/png");
        assert!(
            Page::read(&Response::new(200).with_header("content-encoding", "gzip"), 10).is_err()
        );
    }
}
