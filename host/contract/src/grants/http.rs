//! Rules that allow HTTP requests, such as `GET https://api.example.com/v1`.
//!
//! An [`HttpRule`] is parsed from a grant, from an overlay (rules that can only narrow a grant) or
//! from a need that a tool declares.
//! For each request of a tool, [`HttpRule::covers`] takes the method and the parsed URL and
//! says whether the rule allows it. A rule states scheme, host and port; its path is a prefix
//! of whole segments. A leading dot in the host means all subdomains; such a rule needs at
//! least two labels, so that no rule matches every host. A path that hides a slash or a dot
//! segment behind percent-encoding is never below another path. A rule covers private networks
//! only if it names them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;

use super::addresses::private_networks;
use super::kind::{BlockedOn, Row, lists};
use super::rule::{Rule, inner};
use super::target::{Host, Target};
use super::{Access, InvalidRule};

use crate::controls::enforced;

const HINT: &str =
    "write `GET https://api.example.com/v1`, or `https://.example.com` for all its subdomains";

pub(super) static HTTP: Row = Row {
    words: &["http"],
    example: "http=GET https://api.example.com/v1",
    requests: &["GET https://example.com/x"],
    imports: &["toolcell:tool/http@", "wasi:http/"],
    wait: Some(BlockedOn::Http),
    rules: Some(lists!(http, |grants, _| grants.http.clone())),
    ..Row::list("http", |grants| !grants.http.is_empty())
};

/// The methods that a tool can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names of HTTP")]
pub enum Method {
    Get,
    Head,
    Options,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 7] =
        [Self::Get, Self::Head, Self::Options, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// Returns the method of this name, which must be in capitals.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Returns read access for methods that are meant to change nothing, and write access for the
    /// others.
    #[must_use]
    pub fn access(self) -> Access {
        match self {
            Self::Get | Self::Head | Self::Options => Access::Read,
            Self::Post | Self::Put | Self::Patch | Self::Delete => Access::Write,
        }
    }
}

/// A rule that allows requests.
///
/// # Shape
/// As text: `METHODS SCHEME://HOST[:PORT][/PATH]`. Methods are separated by commas. The default is
/// `GET,HEAD`. A host with a leading dot matches every host below that name, but not the name
/// itself. The default port is that of the scheme. The path is a prefix of whole segments: `/v1`
/// covers `/v1` and `/v1/users`, but not `/v10`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRule {
    methods: Vec<Method>,
    scheme: String,
    host: HostRule,
    port: u16,
    path: String,
    private: Vec<IpNet>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostRule {
    Exact(Host),
    /// The name with its leading dot.
    Subdomains(String),
}

impl HttpRule {
    /// Allows requests of this rule to addresses of these networks. By default, addresses outside
    /// the public internet are denied.
    #[must_use]
    pub fn with_private(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        self.private.extend(networks);
        self
    }

    /// Returns the networks outside the public internet that the rule allows.
    #[must_use]
    pub fn private(&self) -> &[IpNet] {
        &self.private
    }

    /// Returns the private networks that the rule would have to name, because all its requests go
    /// there: those of a private address, or of `localhost`. Without them, every request of the
    /// rule is denied. Returns an empty list if this depends on the addresses of a name.
    #[must_use]
    pub fn missing_private(&self) -> Vec<IpNet> {
        let HostRule::Exact(host) = &self.host else { return Vec::new() };
        let needed = private_networks(host);
        let is_named = |network: &IpNet| self.private.iter().any(|named| named.contains(network));
        let is_enough = match host {
            Host::Address(_) => needed.iter().all(is_named),
            Host::Name(_) => needed.iter().any(is_named),
        };
        if is_enough { Vec::new() } else { needed }
    }

    /// Returns the same rule for every path of its host.
    #[doc(hidden)]
    pub fn of_whole_host(mut self) -> Self {
        "/".clone_into(&mut self.path);
        self
    }

    /// Returns true if the rule covers a request.
    #[must_use]
    pub fn covers(&self, method: Method, target: &Target) -> bool {
        self.methods.contains(&method) && self.covers_target(target)
    }

    /// Returns true if the rule covers a request, whatever its method.
    #[must_use]
    pub fn covers_target(&self, target: &Target) -> bool {
        self.scheme == target.scheme()
            && (self.port == target.port() || !enforced!(Ports))
            && self.host.covers(&target.host())
            && covers_path(&self.path, target.path())
    }

    /// Returns true if both rules cover the place of some request, whatever its method.
    #[doc(hidden)]
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let anyhow = |rule: &Self| Self { methods: Method::ALL.to_vec(), ..rule.clone() };
        anyhow(self).intersect(&anyhow(other)).is_some()
    }

    /// Returns the smallest rule that covers this request. A path that hides a slash or a dot
    /// segment is only covered by a rule for its whole host.
    #[must_use]
    pub fn smallest(method: Method, target: &Target) -> Self {
        let path = if has_hidden_part(target.path()) { "/" } else { target.path() };
        Self {
            methods: vec![method],
            scheme: target.scheme().to_owned(),
            host: HostRule::Exact(target.host()),
            port: target.port(),
            path: path.to_owned(),
            private: Vec::new(),
        }
    }
}

/// Returns true if a path equals the rule's path or is below it. A path with a percent-encoded
/// slash or dot segment is not below another one.
fn covers_path(rule: &str, path: &str) -> bool {
    let prefix = rule.strip_suffix('/').unwrap_or(rule);
    let below = path.strip_prefix(prefix);
    let is_below = below
        .is_some_and(|rest| rest.starts_with('/') || (rest.is_empty() && !rule.ends_with('/')));
    // A server may decode the path before it resolves it. Such a path may then leave the prefix.
    is_below && (prefix.is_empty() || !has_hidden_part(path) || !enforced!(HiddenPaths))
}

fn has_hidden_part(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    ["%2f", "%5c", "%00"].iter().any(|hidden| lower.contains(hidden))
        || lower
            .replace("%2e", ".")
            .split('/')
            .any(|part| matches!(part, "." | "..") || part.starts_with("..;"))
}

impl HostRule {
    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Exact(rule), host) => rule == host,
            (Self::Subdomains(suffix), Host::Name(name)) => {
                let suffix =
                    if enforced!(HostSuffix) { suffix } else { suffix.trim_start_matches('.') };
                name.len() > suffix.len() && name.ends_with(suffix)
            }
            (Self::Subdomains(_), Host::Address(_)) => false,
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(host), other) => other.covers(host),
            (Self::Subdomains(name), Self::Subdomains(suffix)) => name.ends_with(suffix),
            (Self::Subdomains(_), Self::Exact(_)) => false,
        }
    }
}

impl Rule for HttpRule {
    fn place(&self) -> String {
        self.to_string().split_once(' ').map(|(_, place)| place.to_owned()).unwrap_or_default()
    }

    /// The result names no private networks: only granted rules have them.
    fn intersect(&self, other: &Self) -> Option<Self> {
        let mut methods = self.methods.clone();
        methods.retain(|method| other.methods.contains(method));
        if methods.is_empty() || (&self.scheme, self.port) != (&other.scheme, other.port) {
            return None;
        }
        let host = inner(&self.host, &other.host, HostRule::is_within)?.clone();
        let is_in_both =
            |path: &&String| covers_path(&self.path, path) && covers_path(&other.path, path);
        let path = [&self.path, &other.path].into_iter().find(is_in_both)?.clone();
        let (scheme, port) = (self.scheme.clone(), self.port);
        Some(Self { methods, scheme, host, port, path, private: Vec::new() })
    }

    /// One rule a method.
    fn parts(&self) -> Vec<Self> {
        let part = |method| Self { methods: vec![method], private: Vec::new(), ..self.clone() };
        self.methods.iter().copied().map(part).collect()
    }

    fn count<'a>(rules: impl Iterator<Item = &'a Self>) -> usize {
        let split = |rule: &'a Self| {
            let mut host = rule.place();
            host.truncate(host.len() - rule.path.len());
            (host, rule.path.as_str())
        };
        let (hosts, paths): (BTreeSet<_>, BTreeSet<_>) = rules.map(split).unzip();
        hosts.len() * paths.len()
    }

    /// One line a place, with its methods and the private networks that the granted rules name.
    fn shown(rules: Vec<Self>, granted: &[Self]) -> Vec<String> {
        let mut places = BTreeMap::<String, (BTreeSet<Method>, BTreeSet<String>)>::new();
        for rule in &rules {
            let (methods, private) = places.entry(rule.place()).or_default();
            methods.extend(&rule.methods);
            let granted = granted.iter().filter(|granted| granted.includes(rule));
            private.extend(granted.flat_map(Self::private).map(ToString::to_string));
        }
        let line = |(place, (methods, private)): (String, (BTreeSet<Method>, BTreeSet<String>))| {
            let methods: Vec<_> = methods.iter().map(|method| method.as_str()).collect();
            let private: Vec<_> = private.into_iter().collect();
            let private = if private.is_empty() {
                String::new()
            } else {
                format!(" (also at PRIVATE addresses: {})", private.join(", "))
            };
            format!("{} {place}{private}", methods.join(","))
        };
        places.into_iter().map(line).collect()
    }
}

impl FromStr for HttpRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let fault = |problem: String| InvalidRule::new(text, problem, HINT);
        let (methods, url) = match text.split_once(' ') {
            Some((methods, url)) => (parse_methods(methods).map_err(fault)?, url.trim_matches(' ')),
            None => (vec![Method::Get, Method::Head], text),
        };
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| fault("the scheme is missing (`https://`)".into()))?;
        if rest.contains(['?', '#']) {
            return Err(fault("a rule must not have a query or a fragment".into()));
        }
        let (is_suffix, rest) = rest.strip_prefix('.').map_or((false, rest), |rest| (true, rest));
        if rest.split('/').next().is_some_and(|authority| authority.contains('*')) {
            return Err(fault(
                "`*` in a host is refused: use a leading `.` for all subdomains".into(),
            ));
        }
        let target = Target::parse(&format!("{scheme}://{rest}"))
            .map_err(|problem| fault(problem.to_string()))?;
        let host = match (is_suffix, target.host()) {
            (false, host) => HostRule::Exact(host),
            (true, Host::Name(name)) if name.contains('.') => {
                HostRule::Subdomains(format!(".{name}"))
            }
            (true, _) => {
                return Err(fault(
                    "the name after the leading `.` needs at least two labels, such as `.example.com`".into(),
                ));
            }
        };
        let path = if rest.contains('/') { target.path().to_owned() } else { "/".to_owned() };
        Ok(Self {
            methods,
            scheme: target.scheme().to_owned(),
            host,
            port: target.port(),
            path,
            private: Vec::new(),
        })
    }
}

fn parse_methods(text: &str) -> Result<Vec<Method>, String> {
    let unknown = |name: &str| format!("`{name}` is not a method that a tool can use");
    let named = text.split(',').map(|name| Method::parse(name).ok_or_else(|| unknown(name)));
    Ok(Vec::from_iter(named.collect::<Result<BTreeSet<_>, _>>()?))
}

impl fmt::Display for HttpRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { methods, scheme, host, port, path, private: _ } = self;
        let methods: Vec<_> = methods.iter().map(|method| method.as_str()).collect();
        write!(f, "{} {scheme}://", methods.join(","))?;
        match host {
            HostRule::Exact(host) => write!(f, "{host}")?,
            HostRule::Subdomains(suffix) => f.write_str(suffix)?,
        }
        let usual = if scheme == "https" { 443 } else { 80 };
        if *port != usual {
            write!(f, ":{port}")?;
        }
        f.write_str(path)
    }
}
