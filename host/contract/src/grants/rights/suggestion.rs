//! Writes grants that are missing as lines of configuration that an operator can paste.
//!
//! Denials, refusals, and the commands that explain or learn grants collect requests and declared
//! needs in a [`Suggestion`]. It returns TOML with each kind of grant once, in a fixed order, and
//! merges nested directories. It also returns warnings (a private network, a revealed secret) and
//! the steps that remain for the operator, such as replacing the placeholder `…` by a value.
//!
//! The texts in it come from untrusted tools. Each is written as a TOML string in one line, so it
//! cannot end the string or add a grant.

use std::collections::{BTreeMap, BTreeSet};

use super::{ANY_TOOL, Request};
use crate::definition::Need;
use crate::grants::{
    Access, GrantKind, HttpRule, Row, SCRATCH, TEMPORARY, Target, is_below, is_metadata_service,
    private_networks,
};

/// Grants that could be added, as lines of configuration.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// Rules, each with the private networks that it has to name.
    http: BTreeMap<String, BTreeSet<String>>,
    directories: BTreeMap<String, Access>,
    scratch: bool,
    /// Names, each with the rules of the requests that contain the secret.
    secrets: BTreeMap<String, BTreeSet<String>>,
    /// The rules of the other kinds.
    rules: BTreeMap<GrantKind, BTreeSet<String>>,
    /// Hosts that serve credentials of the machine.
    metadata: BTreeSet<String>,
}

impl Suggestion {
    /// The text in a suggested line that the operator has to replace.
    pub const PLACEHOLDER: &str = "…";

    /// Returns the grants that one request requires.
    #[must_use]
    pub fn of(request: &Request<'_>) -> Self {
        let mut suggestion = Self::default();
        suggestion.add(request);
        suggestion
    }

    /// Returns the grant for requests of this rule.
    #[must_use]
    pub fn of_rule(rule: &HttpRule) -> Self {
        let mut suggestion = Self::default();
        suggestion.add_http(rule);
        suggestion
    }

    /// Returns the grant for requests of this rule to a host on a private network, with the
    /// networks that are known without resolving a name, or a [`Suggestion::PLACEHOLDER`].
    pub(super) fn of_private(rule: &HttpRule) -> Self {
        let mut suggestion = Self::of_rule(rule);
        for networks in suggestion.http.values_mut().filter(|networks| networks.is_empty()) {
            networks.insert(Self::PLACEHOLDER.to_owned());
        }
        suggestion
    }

    /// Returns the grants that a declared need requires.
    pub(super) fn of_need(need: &Need) -> Self {
        let mut suggestion = Self::default();
        suggestion.add_need(need);
        suggestion
    }

    /// Adds the smallest grant for a request; nothing if no grant can allow it.
    pub fn add(&mut self, request: &Request<'_>) {
        if request.has_rule() {
            self.add_of(request.kind(), &request.rule());
        }
    }

    fn add_of(&mut self, kind: GrantKind, rule: &str) {
        match kind {
            GrantKind::Http => self.add_rule(rule),
            GrantKind::Directories => {
                if let Some((word, path)) = rule.split_once(' ')
                    && let Some(access) = Access::parse(word)
                {
                    self.add_directory(path, access);
                }
            }
            GrantKind::Secrets => drop(self.secrets.entry(rule.to_owned()).or_default()),
            GrantKind::Scratch
            | GrantKind::Environment
            | GrantKind::Reveal
            | GrantKind::Kv
            | GrantKind::Invoke => {
                self.rules.entry(kind).or_default().insert(rule.to_owned());
            }
        }
    }

    fn rules(&self, kind: GrantKind) -> impl Iterator<Item = &String> {
        self.rules.get(&kind).into_iter().flatten()
    }

    /// Returns the names of all secrets, sorted.
    fn secret_names(&self) -> BTreeSet<&String> {
        self.secrets.keys().chain(self.rules(GrantKind::Reveal)).collect()
    }

    /// Adds a rule with the private networks that it names.
    pub fn add_http(&mut self, rule: &HttpRule) {
        let text = rule.to_string();
        self.add_rule(&text);
        self.http.entry(text).or_default().extend(rule.private().iter().map(ToString::to_string));
    }

    /// Adds a secret that the host puts into requests of this rule.
    pub fn add_secret(&mut self, name: &str, rule: &HttpRule) {
        self.secrets.entry(name.to_owned()).or_default().insert(rule.to_string());
    }

    /// Returns the directories by the tool's names for them.
    pub fn directories(&self) -> impl Iterator<Item = (&str, Access)> {
        self.directories.iter().map(|(name, access)| (name.as_str(), *access))
    }

    /// Returns the suggestion without the directories of these names.
    #[must_use]
    pub fn without_directories(&self, left_out: &[&str]) -> Self {
        let mut rest = self.clone();
        rest.directories.retain(|name, _| !left_out.contains(&name.as_str()));
        rest
    }

    /// Returns the suggestion without the secrets of these names.
    #[must_use]
    pub fn without_secrets<'a>(&self, left_out: impl IntoIterator<Item = &'a str>) -> Self {
        let mut rest = self.clone();
        for name in left_out {
            rest.secrets.remove(name);
            if let Some(revealed) = rest.rules.get_mut(&GrantKind::Reveal) {
                revealed.remove(name);
            }
        }
        rest.rules.retain(|_, rules| !rules.is_empty());
        rest
    }

    /// Adds a directory under this name. A directory below or above another one is merged with it,
    /// under the upper name and with the greater access of the two, because a configuration does
    /// not accept nested directories with different access.
    pub fn add_directory(&mut self, name: &str, access: Access) {
        if is_below(name, SCRATCH) || is_below(name, TEMPORARY) {
            self.scratch = true;
            return;
        }
        let (mut name, mut access) = (name.to_owned(), access);
        let nested = |one: &str, other: &str| is_below(one, other) || is_below(other, one);
        while let Some(other) = self.directories.keys().find(|other| nested(other, &name)).cloned()
        {
            let granted = self.directories.remove(&other);
            access = granted.map_or(access, |granted| access.max(granted));
            if is_below(&name, &other) {
                name = other;
            }
        }
        self.directories.insert(name, access);
    }

    /// Adds the grants that a declared need requires.
    pub fn add_need(&mut self, need: &Need) {
        let Need { kind, pattern, .. } = need;
        match GrantKind::of_need(kind) {
            // The operator decides which tools may be called.
            Some(kind @ GrantKind::Invoke) if pattern == ANY_TOOL => {
                self.add_of(kind, Self::PLACEHOLDER);
            }
            Some(kind) => self.add_of(kind, pattern),
            // A need of an unknown kind is refused when the component is loaded.
            None => {}
        }
    }

    fn add_rule(&mut self, rule: &str) {
        let networks = self.http.entry(rule.to_owned()).or_default();
        // A rule for all subdomains has a dot in front of the host.
        let url = rule.split_once(' ').map_or(rule, |(_, url)| url).replacen("://.", "://", 1);
        let Ok(target) = Target::parse(&url) else { return };
        let host = target.host();
        networks.extend(private_networks(&host).iter().map(ToString::to_string));
        if is_metadata_service(&host) {
            self.metadata.insert(host.to_string());
        }
    }

    /// Returns true if there are no grants.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns one line of configuration for each kind, with a [`Suggestion::PLACEHOLDER`] for
    /// unknown values.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let directory =
            |(name, access): (&String, &Access)| directory(name, *access, Self::PLACEHOLDER);
        let secrets = self
            .secrets
            .keys()
            .map(|name| format!("{} = {{ destination = \"{}\" }}", key(name), Self::PLACEHOLDER));
        lines(self.entries(self.directories.iter().map(directory).collect(), secrets.collect()))
    }

    /// Returns the lines as they can be pasted: a directory has a path beside the configuration; a
    /// secret has the requests that may contain it and the environment variable that holds its
    /// value. Values that only the operator knows are a [`Suggestion::PLACEHOLDER`]: see
    /// [`steps`](Self::steps).
    #[must_use]
    pub fn to_paste(&self) -> Vec<String> {
        lines(self.pasted())
    }

    /// Returns the same by key of the configuration's section, each with the items to add. The
    /// items of `environment` and `secrets` belong in a table, the others in a list.
    #[must_use]
    pub fn additions(&self) -> Vec<(&'static str, Vec<String>)> {
        self.pasted().into_iter().map(|(kind, items)| (kind.key(), items)).collect()
    }

    fn pasted(&self) -> BTreeMap<GrantKind, Vec<String>> {
        let directories =
            self.directories.iter().map(|(name, access)| directory(name, *access, beside(name)));
        let secrets = self.secret_names().into_iter().map(|name| {
            let bound = self.secrets.get(name).map(|rules| {
                let destination = toml_text(&self.bound_to(rules));
                format!("destination = {destination}, ")
            });
            let (bound, variable) = (bound.unwrap_or_default(), toml_text(name));
            format!("{} = {{ {bound}source = {{ env = {variable} }} }}", key(name))
        });
        self.entries(directories.collect(), secrets.collect())
    }

    /// Returns the steps that the operator has to take before the pasted lines work, one sentence
    /// each.
    #[must_use]
    pub fn steps(&self) -> Vec<String> {
        let directories = self.directories.keys().map(|name| {
            format!(
                "the tool's directory `{name}`: create `{}` beside the configuration, or write another directory's path in `path`",
                beside(name)
            )
        });
        let variables = self.rules(GrantKind::Environment).map(|name| {
            format!(
                "environment variable `{name}`: write its value in place of `{}`",
                Self::PLACEHOLDER
            )
        });
        let secrets = self.secret_names().into_iter().map(|name| {
            let is_unbound = self.secrets.get(name).is_some_and(|rules| self.bound_to(rules) == Self::PLACEHOLDER);
            let bind = if is_unbound {
                format!("replace `{}` by the requests that may contain the secret, and ", Self::PLACEHOLDER)
            } else {
                String::new()
            };
            format!("secret `{name}`: {bind}set the environment variable `{name}` to its value when you run the tool")
        });
        directories.chain(variables).chain(secrets).collect()
    }

    /// Returns the risks that an operator should know before granting this, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let metadata = self.metadata.iter().map(|host| {
            format!("`{host}` serves the credentials of this machine in most clouds: a tool that reaches it can act as the machine")
        });
        let private = self.http.iter().filter(|(_, networks)| !networks.is_empty()).map(|(rule, networks)| {
            let networks = networks.iter().cloned().collect::<Vec<_>>().join(", ");
            format!(
                "`{rule}` is not on the public internet: a grant with `private_networks` lets the tool connect to {networks}"
            )
        });
        let root = self.directories.contains_key("/").then(|| {
            "`/` is the root of the tool's files: map it to a directory made for the tool, never to the whole disk"
                .to_owned()
        });
        let revealed = self.rules(GrantKind::Reveal).map(|name| {
            format!(
                "`{}` lets the tool read the value of the secret `{name}`: the tool could send the value to any \
                 host that it is granted",
                GrantKind::Reveal.key()
            )
        });
        metadata.chain(private).chain(root).chain(revealed).collect()
    }

    /// Returns the rule that a secret is bound to, made from the rules of the requests that contain
    /// it, or from all HTTP rules if there are none. Several rules for one host become one rule for
    /// that host; several hosts become a [`Suggestion::PLACEHOLDER`].
    fn bound_to(&self, rules: &BTreeSet<String>) -> String {
        let mut methods = BTreeSet::new();
        let mut origins = BTreeSet::new();
        let all: Vec<_> =
            if rules.is_empty() { self.http.keys().collect() } else { rules.iter().collect() };
        if let [only] = all.as_slice() {
            return (*only).clone();
        }
        for rule in all {
            let (named, place) = rule.split_once(' ').unwrap_or(("GET,HEAD", rule));
            methods.extend(named.split(','));
            // The scheme with its slashes, and the host.
            origins.insert(place.splitn(4, '/').take(3).collect::<Vec<_>>().join("/"));
        }
        match origins.iter().collect::<Vec<_>>().as_slice() {
            [origin] => format!("{} {origin}", Vec::from_iter(methods).join(",")),
            _ => Self::PLACEHOLDER.to_owned(),
        }
    }

    /// Returns the items of each kind that has any, in the order in which they are printed.
    fn entries(
        &self,
        directories: Vec<String>,
        secrets: Vec<String>,
    ) -> BTreeMap<GrantKind, Vec<String>> {
        let http = self.http.iter().map(|(rule, networks)| {
            let networks: Vec<_> = networks.iter().map(|network| toml_text(network)).collect();
            let (rule, networks) = (toml_text(rule), networks.join(", "));
            if networks.is_empty() {
                rule
            } else {
                format!("{{ rule = {rule}, private_networks = [{networks}] }}")
            }
        });
        let mut entries: BTreeMap<GrantKind, Vec<String>> = [
            (GrantKind::Http, http.collect()),
            (GrantKind::Directories, directories),
            (GrantKind::Scratch, self.scratch.then(|| "true".to_owned()).into_iter().collect()),
            (GrantKind::Secrets, secrets),
        ]
        .into();
        for (kind, rules) in &self.rules {
            // `write` includes `read` of the same key.
            let is_less = |rule: &str| {
                let key = rule.strip_prefix("read ").filter(|_| *kind == GrantKind::Kv);
                key.is_some_and(|key| rules.contains(&format!("write {key}")))
            };
            let item = |rule: &String| match kind.row().is_table() {
                true => format!("{} = \"{}\"", key(rule), Self::PLACEHOLDER),
                false => toml_text(rule),
            };
            let items = rules.iter().filter(|rule| !is_less(rule)).map(item);
            entries.insert(*kind, items.collect());
        }
        entries.retain(|_, items| !items.is_empty());
        entries
    }
}

fn lines(entries: BTreeMap<GrantKind, Vec<String>>) -> Vec<String> {
    let line = |(kind, items): (GrantKind, Vec<String>)| {
        let Row { key, brackets: (open, close), .. } = kind.row();
        format!("{key} = {open}{}{close}", items.join(", "))
    };
    entries.into_iter().map(line).collect()
}

/// Writes a text as a TOML string in one line, whatever characters it contains.
#[must_use]
pub fn toml_text(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn key(name: &str) -> String {
    let is_bare = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_bare { name.to_owned() } else { toml_text(name) }
}

fn directory(name: &str, access: Access, path: &str) -> String {
    format!("{{ name = {}, path = {}, access = \"{access}\" }}", toml_text(name), toml_text(path))
}

/// Returns the path of a directory beside the configuration, named after the last part of the
/// tool's name for it.
fn beside(name: &str) -> &str {
    name.rsplit('/')
        .find(|part| !matches!(*part, "" | "." | "..") && !part.contains('*'))
        .unwrap_or("root")
}

#[cfg(test)]
mod tests;
