//! URLs by the URL standard, for the class `URL`. The crate `url` parses them, except for the
//! scheme `file` and the details that [`mended`] corrects.
//!
//! The parts of a URL are passed as a JSON list, in the order of the properties of the class.

mod file;

use file::FileUrl;
use rquickjs::prelude::Opt;
use serde_json::json;
use url::{Position, Url, quirks};

/// Schemes with a host and a path of parts.
const SPECIAL: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Parses a URL, with `base` if `has_base`. Returns its parts, or an empty string if it is not
/// valid.
pub(crate) fn read(url: String, base: String, has_base: Opt<bool>) -> String {
    let base = has_base.0.unwrap_or(false).then_some(base.as_str());
    parsed(&url, base).map(|url| url.parts()).unwrap_or_default()
}

/// Sets one part of a URL and returns all parts, or an empty string if the new `href` is not valid.
/// A value that a setter cannot use changes nothing.
pub(crate) fn set(href: String, part: String, value: String) -> String {
    if part == "href" {
        return parsed(&value, None).map(|url| url.parts()).unwrap_or_default();
    }
    let Some(mut url) = parsed(&href, None) else { return String::new() };
    match &mut url {
        Parsed::Url(url) => set_part(url, &part, &value),
        Parsed::File(file) => {
            let value: String = value
                .chars()
                .filter(|character| !matches!(character, '\t' | '\n' | '\r'))
                .collect();
            let host = value.split(['/', '\\', '?', '#']).next().unwrap_or_default();
            match part.as_str() {
                "host" | "hostname" => drop(file.set_host(host)),
                "pathname" => file.set_path(&value),
                "search" => file.set_query(&value),
                "hash" => file.set_fragment(&value),
                "protocol" if !file.host.is_empty() => {
                    let scheme = value.split(':').next().unwrap_or_default().to_ascii_lowercase();
                    if SPECIAL.contains(&scheme.as_str()) {
                        let text = file.to_string().replacen("file", &scheme, 1);
                        return parsed(&text, None).unwrap_or(url).parts();
                    }
                }
                _ => {}
            }
        }
    }
    // Parsed again, because the scheme may be `file` now.
    parsed(&url.to_string(), None).unwrap_or(url).parts()
}

fn set_part(url: &mut Url, part: &str, value: &str) {
    match part {
        "protocol" => drop(quirks::set_protocol(url, value)),
        "username" => drop(quirks::set_username(url, value)),
        "password" => drop(quirks::set_password(url, value)),
        "host" => drop(quirks::set_host(url, value)),
        "hostname" => drop(quirks::set_hostname(url, value)),
        "port"
            if value.contains(|character: char| !matches!(character, '\t' | '\n' | '\r'))
                || value.is_empty() =>
        {
            let _ = quirks::set_port(url, value);
        }
        "pathname" => quirks::set_pathname(url, value),
        "search" => quirks::set_search(url, value),
        "hash" => quirks::set_hash(url, value),
        _ => {}
    }
    mended(url);
}

/// A parsed URL.
enum Parsed {
    Url(Url),
    File(FileUrl),
}

fn parsed(text: &str, base: Option<&str>) -> Option<Parsed> {
    let base = match base {
        Some(base) => Some(parsed(base, None)?),
        None => None,
    };
    let blank = |character: char| character <= ' ';
    let clean: String =
        text.trim_matches(blank).chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let scheme = clean
        .split_once(':')
        .map(|(scheme, rest)| (scheme.to_ascii_lowercase(), rest))
        .filter(|(scheme, _)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
    match (&scheme, &base) {
        (Some((scheme, rest)), base) if scheme == "file" => {
            let base = base.as_ref().and_then(Parsed::file);
            FileUrl::parse(rest, base).map(Parsed::File)
        }
        (None, Some(Parsed::File(base))) => FileUrl::parse(&clean, Some(base)).map(Parsed::File),
        (_, base) => {
            let base = match base {
                Some(Parsed::Url(base)) => Some(base),
                _ => None,
            };
            // If the base has a host, more than two slashes count as two.
            let is_special = base.is_some_and(|base| SPECIAL.contains(&base.scheme()));
            let slashes = clean.len() - clean.trim_start_matches(['/', '\\']).len();
            let short = (scheme.is_none() && is_special && slashes > 2)
                .then(|| format!("//{}", &clean[slashes..]));
            let mut url =
                Url::options().base_url(base).parse(short.as_deref().unwrap_or(&clean)).ok()?;
            mended(&mut url);
            Some(Parsed::Url(url))
        }
    }
}

/// Encodes characters that the crate leaves in a path: `^`, and a last blank before a query or a
/// fragment if the path is opaque.
fn mended(url: &mut Url) {
    if !url.cannot_be_a_base() {
        if url.path().contains('^') {
            url.set_path(&url.path().replace('^', "%5E"));
        }
    } else if url.path().ends_with(' ') {
        let path = url.path();
        let text = format!(
            "{}{}%20{}",
            &url[..Position::BeforePath],
            &path[..path.len() - 1],
            &url[Position::AfterPath..]
        );
        if let Ok(mended) = Url::parse(&text) {
            *url = mended;
        }
    }
}

impl Parsed {
    fn file(&self) -> Option<&FileUrl> {
        match self {
            Self::File(file) => Some(file),
            Self::Url(_) => None,
        }
    }

    fn parts(&self) -> String {
        let parts = match self {
            Self::File(file) => {
                let host = &file.host;
                json!([
                    self.to_string(),
                    "null",
                    "file:",
                    "",
                    "",
                    host,
                    host,
                    "",
                    file.path(),
                    file.search(),
                    file.hash()
                ])
            }
            Self::Url(url) => json!([
                quirks::href(url),
                origin(url),
                quirks::protocol(url),
                quirks::username(url),
                quirks::password(url),
                quirks::host(url),
                quirks::hostname(url),
                quirks::port(url),
                quirks::pathname(url),
                quirks::search(url),
                quirks::hash(url),
            ]),
        };
        parts.to_string()
    }
}

impl std::fmt::Display for Parsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => write!(f, "{file}"),
            Self::Url(url) => write!(f, "{url}"),
        }
    }
}

/// Returns the origin. A `blob:` URL has the origin of the HTTP URL in its path, and none without
/// one.
fn origin(url: &Url) -> String {
    let is_http = |path: &str| {
        Url::parse(path).is_ok_and(|inner| ["http", "https"].contains(&inner.scheme()))
    };
    if url.scheme() == "blob" && !is_http(url.path()) {
        "null".to_owned()
    } else {
        quirks::origin(url)
    }
}
