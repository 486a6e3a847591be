//! Parses URLs of the scheme `file`, for which the crate `url` deviates from the standard: it drops
//! hosts before a drive letter, and empty parts of a path.
//!
//! Source: the URL standard, the states `file` to `path`.

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use url::Host;

const FRAGMENT: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`');
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'\'');
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'}');
const SLASHES: [char; 2] = ['/', '\\'];

/// A URL whose scheme is `file`.
#[derive(Debug, Clone, Default)]
pub(super) struct FileUrl {
    pub(super) host: String,
    path: Vec<String>,
    query: Option<String>,
    fragment: Option<String>,
}

impl FileUrl {
    /// Parses the text after `file:`, or a relative reference. The caller has removed tabs, line
    /// ends and surrounding blanks.
    pub(super) fn parse(input: &str, base: Option<&Self>) -> Option<Self> {
        let mut url = Self::default();
        let (input, fragment) = split(input, '#');
        let (before, query) = split(input, '?');
        let mut rest = before;
        if let Some(second) = rest.strip_prefix(SLASHES) {
            if let Some(third) = second.strip_prefix(SLASHES) {
                let end = third.find(SLASHES).unwrap_or(third.len());
                // A drive letter is not a host, but the first part of the path.
                rest = if is_drive(&third[..end]) { third } else { &third[end..] };
                if !is_drive(&third[..end]) && end > 0 {
                    url.set_host(&third[..end])?;
                }
            } else if let Some(base) = base {
                url.host.clone_from(&base.host);
                let drive =
                    base.path.first().filter(|first| is_drive(first) && !starts_with_drive(second));
                url.path.extend(drive.cloned());
            }
        } else if let Some(base) = base {
            url.host.clone_from(&base.host);
            if starts_with_drive(before) {
                rest = before;
            } else {
                url.path.clone_from(&base.path);
                if before.is_empty() {
                    url.query = query.map(encoded(QUERY)).or_else(|| base.query.clone());
                    url.fragment = fragment.map(encoded(FRAGMENT));
                    return Some(url);
                }
                url.shorten();
            }
        }
        url.read_path(rest);
        url.query = query.map(encoded(QUERY));
        url.fragment = fragment.map(encoded(FRAGMENT));
        Some(url)
    }

    /// Sets the host. Returns `None` if it is not valid.
    pub(super) fn set_host(&mut self, host: &str) -> Option<()> {
        let host =
            if host.is_empty() { String::new() } else { Host::parse(host).ok()?.to_string() };
        self.host = if host == "localhost" { String::new() } else { host };
        Some(())
    }

    pub(super) fn set_path(&mut self, path: &str) {
        self.path.clear();
        self.read_path(path);
    }

    pub(super) fn set_query(&mut self, query: &str) {
        self.query =
            (!query.is_empty()).then(|| encoded(QUERY)(query.strip_prefix('?').unwrap_or(query)));
    }

    pub(super) fn set_fragment(&mut self, fragment: &str) {
        self.fragment = (!fragment.is_empty())
            .then(|| encoded(FRAGMENT)(fragment.strip_prefix('#').unwrap_or(fragment)));
    }

    pub(super) fn path(&self) -> String {
        self.path.iter().map(|part| format!("/{part}")).collect()
    }

    /// The query with its `?`, or an empty string.
    pub(super) fn search(&self) -> String {
        self.query
            .as_deref()
            .filter(|query| !query.is_empty())
            .map(|query| format!("?{query}"))
            .unwrap_or_default()
    }

    /// The fragment with its `#`, or an empty string.
    pub(super) fn hash(&self) -> String {
        self.fragment
            .as_deref()
            .filter(|text| !text.is_empty())
            .map(|text| format!("#{text}"))
            .unwrap_or_default()
    }

    /// Appends the parts of a path. The leading slash is optional.
    fn read_path(&mut self, path: &str) {
        let path = path.strip_prefix(SLASHES).unwrap_or(path);
        let mut parts = path.split(SLASHES).peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            match part.to_ascii_lowercase().replace("%2e", ".").as_str() {
                ".." => {
                    self.shorten();
                    if is_last {
                        self.path.push(String::new());
                    }
                }
                "." if is_last => self.path.push(String::new()),
                "." => {}
                _ if self.path.is_empty() && is_drive(part) => {
                    self.path.push(format!("{}:", &part[..1]))
                }
                _ => self.path.push(encoded(PATH)(part)),
            }
        }
    }

    /// Removes the last part of the path, unless it is a drive letter.
    fn shorten(&mut self) {
        if !(self.path.len() == 1 && is_drive(&self.path[0]) && self.path[0].ends_with(':')) {
            self.path.pop();
        }
    }
}

impl fmt::Display for FileUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file://{}{}", self.host, self.path())?;
        self.query.as_ref().map_or(Ok(()), |query| write!(f, "?{query}"))?;
        self.fragment.as_ref().map_or(Ok(()), |fragment| write!(f, "#{fragment}"))
    }
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn encoded(set: &'static AsciiSet) -> impl Fn(&str) -> String {
    move |text| utf8_percent_encode(text, set).to_string()
}

/// Returns true for a drive: a letter with `:` or `|`.
fn is_drive(part: &str) -> bool {
    let bytes = part.as_bytes();
    bytes.len() == 2 && bytes[0].is_ascii_alphabetic() && matches!(bytes[1], b':' | b'|')
}

fn starts_with_drive(text: &str) -> bool {
    let end = text.find(['/', '\\', '?', '#']).unwrap_or(text.len());
    is_drive(&text[..end])
}
