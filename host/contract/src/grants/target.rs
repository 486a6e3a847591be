//! Parses the URL of a request once, so that the request goes to exactly the place that was
//! checked.
//!
//! The HTTP capability and the HTTP rules call [`Target::parse`] with a URL as text. It returns a
//! [`Target`] in its normal form, from which scheme, host, port and path are read, or an
//! [`InvalidTarget`]. A URL is refused if two programs could read it differently: with a user name,
//! a control character, a space, a backslash, or a path that begins with two slashes. Only `http`
//! and `https` are accepted, in at most 8 KiB. A fragment is dropped.
//!
//! Source: the URL standard (WHATWG), as in browsers: `127.1`, `0x7f.1` and `①②⑦.0.0.1` mean
//! 127.0.0.1 here too.

use std::fmt;
use std::net::IpAddr;

use url::Url;

use crate::controls::enforced;

/// Longest URL in bytes.
const MAX_URL: usize = 8 << 10;

/// The target of a request: scheme, host, port, path and query, in their normal form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Target(Url);

/// A host: a name in ASCII, in lower case and without a trailing dot; or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, to be resolved.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// The reason why a URL cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// It is not a URL.
    #[error("it is not a URL")]
    NotAUrl,
    /// It is longer than 8 KiB.
    #[error("it is longer than {MAX_URL} bytes")]
    TooLong,
    /// Its scheme is not `http` or `https`.
    #[error("its scheme is neither `http` nor `https`")]
    Scheme,
    /// It names a user or a password.
    #[error("it names a user or a password")]
    UserInfo,
    /// It has characters that some parsers drop and others keep: control characters, spaces,
    /// backslashes.
    #[error("it has a control character, a space or a backslash")]
    Ambiguous,
    /// Its path begins with two slashes, which another program could read as a host.
    #[error("its path begins with two slashes, which could be read as the start of a host")]
    HostAsPath,
}

impl Target {
    /// Parses an absolute URL. A fragment is dropped.
    ///
    /// # Errors
    /// [`InvalidTarget`].
    pub fn parse(text: &str) -> Result<Self, InvalidTarget> {
        if text.len() > MAX_URL {
            return Err(InvalidTarget::TooLong);
        }
        if text.contains(|c: char| c.is_control() || c == ' ' || c == '\\') {
            return Err(InvalidTarget::Ambiguous);
        }
        let mut url = Url::parse(text).map_err(|_| InvalidTarget::NotAUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidTarget::Scheme);
        }
        let names_a_user =
            !url.username().is_empty() || url.password().is_some() || authority(text).contains('@');
        if names_a_user && enforced!(UserInfo) {
            return Err(InvalidTarget::UserInfo);
        }
        url.set_fragment(None);
        if let Some(name) = url.domain().and_then(|name| name.strip_suffix('.')).map(str::to_owned)
        {
            url.set_host(Some(&name)).map_err(|_| InvalidTarget::NotAUrl)?;
        }
        // No server has such a name, and as a rule it would mean other names.
        let is_no_name = |host: &str| host.split('.').any(str::is_empty) || host.contains('*');
        if url.host_str().is_none_or(is_no_name) {
            return Err(InvalidTarget::NotAUrl);
        }
        // In a request line, such a path stands alone and looks like a URL without its scheme.
        if url.path().starts_with("//") && enforced!(HostAsPath) {
            return Err(InvalidTarget::HostAsPath);
        }
        Ok(Self(url))
    }

    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> Host {
        match self.0.host() {
            Some(url::Host::Ipv4(address)) => Host::Address(address.into()),
            Some(url::Host::Ipv6(address)) => Host::Address(address.into()),
            Some(url::Host::Domain(name)) => Host::Name(name.to_owned()),
            None => Host::Name(String::new()),
        }
    }

    /// The port of the URL, or else the default port of the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(0)
    }

    /// The path, always with a leading slash, in its normal form.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The query without its question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.0.query()
    }

    /// `scheme://host:port`, without the default port of the scheme.
    #[must_use]
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// The URL's `host` or `host:port`, as in a `Host` header.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.0.authority()
    }

    /// Returns the same target with this pair added to its query.
    #[must_use]
    #[doc(hidden)]
    pub fn with_query_pair(&self, name: &str, value: &str) -> Self {
        let mut url = self.0.clone();
        url.query_pairs_mut().append_pair(name, value);
        Self(url)
    }

    /// The whole URL. Its query may contain untrusted text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Returns the text between `//` and the path, as it was written.
fn authority(text: &str) -> &str {
    let rest = text.split_once("//").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
