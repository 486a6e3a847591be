//! Normalizes URLs and origins, to compare them by meaning instead of text.
//!
//! The check of tokens compares audiences with [`normal`]. The checks of the header `Origin`, which
//! names the web page that a browser sends a request for, use [`normal_origin`]. Both take a text
//! and return it with scheme and host in lower case, without a default port and a final slash.
//! [`normal`] returns a text that is no URL unchanged; [`normal_origin`] returns `None` if the text
//! has a path, or a scheme other than `http` and `https`.

use url::Url;

/// Returns the normal form of a URL. A text that is not a URL stays as it is.
pub(crate) fn normal(text: &str) -> String {
    let Ok(url) = Url::parse(text) else { return text.to_owned() };
    let written = url.as_str();
    written.strip_suffix('/').unwrap_or(written).to_owned()
}

/// Returns the normal form of an origin. `None` for a text that is not an origin of a web page: it
/// has a path, or the scheme is not `http` or `https`.
pub(crate) fn normal_origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let origin = url.origin().ascii_serialization();
    let has_web_scheme = matches!(url.scheme(), "http" | "https");
    (has_web_scheme && url.as_str().strip_suffix('/') == Some(&*origin)).then_some(origin)
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn urls_are_compared_after_normalization() {
        for (one, other, is_same) in rows::<(&str, &str, bool)>("auth/same_url", "urls") {
            assert_eq!(normal(one) == normal(other), is_same, "{one} {other}");
        }
    }

    #[test]
    fn origin_has_scheme_and_host_without_path() {
        for (text, expected) in rows::<(&str, Option<&str>)>("auth/same_url", "origins") {
            assert_eq!(normal_origin(text).as_deref(), expected, "{text}");
        }
    }
}
