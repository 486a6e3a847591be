//! Grants: the access that an embedder gives to a component, with the overlays that narrow it.
//!
//! [`Grants`] list HTTP rules, directories, environment variables, secrets, key-value data and
//! callable tools. An embedder (the program that uses this library) or the configuration builds
//! them and passes them when a component is loaded; the default grants nothing. An [`Overlay`] of a
//! tool, a tenant or a call has lists of the same kinds and can only take away. Rules are parsed
//! from text, and a text that is not a rule gives an [`InvalidRule`] with a hint. A rule for HTTP
//! or for tools that would match everything is refused.
//!
//! One table has a row for each kind: its words, and its rules as text. Code that handles every
//! kind goes through the table; a row stands beside the rules of its kind.
//!
//! Not here: the decision about one request, in `rights`; the limits of usage, such as fuel
//! (executed instructions) and memory, in `limits`.

#[doc(hidden)]
pub mod addresses;
mod http;
mod invoke;
mod keys;
mod kind;
mod name;
mod path;
pub mod rights;
mod rule;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use addresses::has_metadata_service;
#[doc(hidden)]
pub use addresses::is_metadata_service;
pub use http::{HttpRule, Method};
pub use invoke::InvokeRule;
pub use keys::KeyRule;
pub use kind::GrantKind;
#[doc(hidden)]
pub use kind::Row;
pub use path::PathRule;
pub use target::{Host, InvalidTarget, Target};

pub(crate) use addresses::private_networks;
#[doc(hidden)]
pub use addresses::{is_allowed_address, networks_of};
pub(crate) use path::check as check_path;
#[doc(hidden)]
pub use path::is_below;

/// The path under which a tool sees the call's own directory.
#[doc(hidden)]
pub const SCRATCH: &str = "/scratch";
/// A second path for the same directory, which programs expect.
#[doc(hidden)]
pub const TEMPORARY: &str = "/tmp";

macro_rules! kinds {
    ($($kind:ident: $row:path,)*) => {
        impl GrantKind {
            /// Returns every kind.
            #[doc(hidden)]
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$kind,)*].into_iter()
            }

            /// Returns everything that the table says about the kind.
            #[doc(hidden)]
            pub fn row(self) -> &'static Row {
                match self {
                    $(Self::$kind => &$row,)*
                }
            }
        }
    };
}

// The table of the kinds. A kind without a row does not compile.
kinds! {
    Http: http::HTTP,
    Directories: path::DIRECTORIES,
    Environment: name::ENVIRONMENT,
    Secrets: name::SECRETS,
    Reveal: name::REVEAL,
    Kv: keys::KV,
    Invoke: invoke::INVOKE,
    Scratch: path::CALL_DIRECTORY,
}

/// Read access, or write access, which includes reading.
///
/// # Shape
/// As text and as JSON: `read` or `write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

impl Access {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "read" => Some(Self::Read),
            "write" => Some(Self::Write),
            _ => None,
        }
    }

    /// Splits a rule into its access and the rest, which may be empty.
    fn before<'a>(rule: &'a str, hint: &'static str) -> Result<(Self, &'a str), InvalidRule> {
        let (word, rest) = rule.split_once(' ').unwrap_or((rule, ""));
        let Some(access) = Self::parse(word) else {
            let shown: String = word.chars().take(20).collect();
            let problem = if word == rule {
                "the access is missing: `read` or `write`".to_owned()
            } else {
                format!("`{}` is not an access: `read` or `write`", shown.escape_debug())
            };
            return Err(InvalidRule::new(rule, problem, hint));
        };
        Ok((access, rest.trim_matches(' ')))
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// The error for a rule or a request that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {problem}")]
pub struct InvalidRule {
    /// The text that cannot be parsed; a long one is shortened.
    pub text: String,
    /// The problem with it.
    pub problem: String,
    /// The text to write instead.
    pub hint: String,
}

impl InvalidRule {
    #[doc(hidden)]
    pub fn new(text: &str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { text: text.chars().take(200).collect(), problem: problem.into(), hint: hint.into() }
    }
}

/// The grants of a component, set by `LoadOptions::grants`. A tool can use those that it also
/// declares.
///
/// To grant what tools declare, load the component with `OnMissingGrant::Denied`, and add the
/// [needs](crate::definition::Need) of its definitions to a
/// [`Suggestion`](rights::Suggestion::add_need). Build grants from the needs that you accept (for
/// directories, from [`Suggestion::directories`](rights::Suggestion::directories)), and load the
/// component again with these grants.
///
/// ```
/// # mod toolcell { pub use toolcell_contract::grants::{self, Grants}; }
/// use toolcell::Grants;
/// use toolcell::grants::{
///     Access, Directory, HttpRule, Injection, KeyRule, Method, SecretGrant, Target,
/// };
///
/// let api: HttpRule = "GET,POST https://api.example.com/v1".parse()?;
/// let mut grants = Grants::default();
/// grants.http.push(api.clone());
/// grants.kv.push("write notes/*".parse()?);
/// grants.directories.push(Directory::new("/data", "/srv/data", Access::Read)?);
/// // The host puts the secret into requests to this API; the tool does not see its value.
/// grants.secrets.insert("api_token".into(), SecretGrant::new(api, Injection::Bearer));
///
/// assert!(grants.http[0].covers(Method::Get, &Target::parse("https://api.example.com/v1/users")?));
/// assert!(!grants.http[0].covers(Method::Get, &Target::parse("https://example.org/v1/users")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Needs
/// | `kind` | `pattern` | Example |
/// |---|---|---|
/// | `http` | an [`HttpRule`] | `GET,POST https://api.example.com/v1` |
/// | `filesystem` | a [`PathRule`] | `read /data` |
/// | `environment` | the name of a variable | `LANG` |
/// | `secret` | the name of a secret that the host puts into requests | `api_token` |
/// | `reveal` | the name of a secret whose value the tool reads | `api_token` |
/// | `kv` | a [`KeyRule`] | `write notes/*` |
/// | `invoke` | an [`InvokeRule`], or `*` | `lookup` |
///
/// `invoke` with `*` means every tool that is granted. `filesystem` with `/scratch` or `/tmp` means
/// the directory of [`Grants::scratch`](Self::scratch).
///
/// # Defaults
/// Nothing is granted.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Grants {
    /// Directories of the host.
    pub directories: Vec<Directory>,
    /// The quota of an empty directory `/scratch` for each call, which is removed after the call.
    /// `None` means no such directory.
    pub scratch: Option<DirectoryQuota>,
    /// The requests that are allowed.
    pub http: Vec<HttpRule>,
    /// Environment variables and their values. Not for secrets: the tool reads them.
    pub environment: BTreeMap<String, String>,
    /// Secrets that the host puts into requests, by the name under which the tool asks for them.
    pub secrets: BTreeMap<String, SecretGrant>,
    /// Names of secrets whose values the tool can read. It can send such a value to every server
    /// that it is granted.
    pub reveal: BTreeSet<String>,
    /// The keys of the component's store that the tool can use.
    pub kv: Vec<KeyRule>,
    /// The other tools that the tool can call.
    pub invoke: Vec<InvokeRule>,
    /// The name of the store. All tools of a component, and of components with the same store name,
    /// share their keys. `None` means the component's digest: no other component, not even a new
    /// version, can read the keys.
    pub store: Option<String>,
    /// The overlays of single tools, by the tool's name. A tool that is not named keeps everything.
    pub tools: BTreeMap<String, Overlay>,
}

impl Grants {
    /// Returns the kinds of which something is granted.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<GrantKind> {
        GrantKind::all().filter(|kind| (kind.row().is_granted)(self)).collect()
    }

    /// Adds a rule of a kind whose grants are nothing but rules.
    ///
    /// # Errors
    /// [`InvalidRule`] if the text is not a rule, or if a grant of this kind is more than a rule.
    #[doc(hidden)]
    pub fn add(&mut self, kind: GrantKind, rule: &str) -> Result<(), InvalidRule> {
        let Overlay { paths, http, environment, secrets, reveal, kv, invoke } =
            Overlay::only(kind, rule)?;
        if paths.is_some() || environment.is_some() || secrets.is_some() {
            let problem = format!("a grant of the kind `{}` is more than a rule", kind.key());
            return Err(InvalidRule::new(rule, problem, "add it to its field of the grants"));
        }
        self.http.extend(http.into_iter().flatten());
        self.reveal.extend(reveal.into_iter().flatten());
        self.kv.extend(kv.into_iter().flatten());
        self.invoke.extend(invoke.into_iter().flatten());
        Ok(())
    }

    /// Returns the granted rules of a kind that all layers leave, in the notation of a
    /// configuration.
    #[doc(hidden)]
    pub fn remaining(&self, kind: GrantKind, layers: &[&Overlay]) -> Vec<String> {
        let rules = kind.row().rules;
        rules.map(|rules| rules.remaining(self, layers)).unwrap_or_default()
    }

    /// Returns the names of the secrets that the host may inject or the tool may read, as far as
    /// the overlay leaves them.
    #[doc(hidden)]
    pub fn secret_names(&self, overlay: Option<&Overlay>) -> BTreeSet<&str> {
        let left = |list: Option<&BTreeSet<String>>, name: &str| {
            list.is_none_or(|list| list.contains(name))
        };
        let secrets = overlay.and_then(|overlay| overlay.secrets.as_ref());
        let reveal = overlay.and_then(|overlay| overlay.reveal.as_ref());
        let injected = self.secrets.keys().filter(|name| left(secrets, name));
        let revealed = self.reveal.iter().filter(|name| left(reveal, name));
        injected.chain(revealed).map(String::as_str).collect()
    }

    /// Returns true if a secret is granted, in either use.
    #[doc(hidden)]
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        !self.secrets.is_empty() || !self.reveal.is_empty()
    }

    /// Removes the grants of secrets, in both uses.
    #[doc(hidden)]
    pub fn clear_secrets(&mut self) {
        self.secrets.clear();
        self.reveal.clear();
    }
}

/// A directory of the host, as a tool sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Directory {
    /// The absolute path under which the tool sees the directory, for instance `/data`.
    pub name: String,
    /// The directory's path on the host.
    pub path: PathBuf,
    /// The access that the tool has.
    pub access: Access,
    /// The directory's quota, which applies to write access.
    pub quota: DirectoryQuota,
}

impl Directory {
    /// Creates a grant of a directory, with the default quota.
    ///
    /// # Errors
    /// [`InvalidRule`] if the name is not an absolute path in its shortest form.
    pub fn new(
        name: impl Into<String>,
        path: impl Into<PathBuf>,
        access: Access,
    ) -> Result<Self, InvalidRule> {
        let name = name.into();
        path::check(&name)?;
        Ok(Self { name, path: path.into(), access, quota: DirectoryQuota::default() })
    }

    /// Sets the quota.
    #[must_use]
    pub fn with_quota(mut self, quota: DirectoryQuota) -> Self {
        self.quota = quota;
        self
    }
}

/// The quota of a directory. Processes that share their counts
/// (`EngineBuilder::directory_counts`) share it.
///
/// # Defaults
/// [`DirectoryQuota::DEFAULT_BYTES`], [`DirectoryQuota::DEFAULT_FILES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryQuota {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Files and directories.
    pub files: u64,
}

impl DirectoryQuota {
    /// The quota of a directory in bytes, unless its grant sets another one: 64 MiB.
    pub const DEFAULT_BYTES: u64 = 64 << 20;
    /// The quota of a directory in files and directories, unless its grant sets another one:
    /// 10,000.
    pub const DEFAULT_FILES: u64 = 10_000;
}

impl Default for DirectoryQuota {
    fn default() -> Self {
        Self { bytes: Self::DEFAULT_BYTES, files: Self::DEFAULT_FILES }
    }
}

/// The grant of a secret: the requests that the host injects it into, and the place in the request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SecretGrant {
    /// The requests that the secret can be injected into. They need a grant of their own in
    /// [`Grants::http`].
    pub destination: HttpRule,
    /// The place in the request where the host injects the secret.
    pub injection: Injection,
}

impl SecretGrant {
    /// Creates a grant of a secret for requests within this rule.
    #[must_use]
    pub fn new(destination: HttpRule, placed: Injection) -> Self {
        Self { destination, injection: placed }
    }
}

/// The place in a request where the host injects a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Injection {
    /// `Authorization: Bearer VALUE`.
    Bearer,
    /// `Authorization: Basic base64(USER:VALUE)`.
    Basic {
        /// The user.
        user: String,
    },
    /// A header with the value of the secret.
    Header {
        /// The header's name.
        name: String,
    },
    /// A parameter of the query.
    Query {
        /// The parameter's name.
        name: String,
    },
}

/// Narrows the rights of a tool: for an operator, a tenant or a call.
///
/// # Defaults
/// Nothing is narrowed. A field that is `None` narrows nothing; an empty list takes away everything
/// of its kind.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Overlay {
    /// Paths in the tool's directories.
    pub paths: Option<Vec<PathRule>>,
    /// Requests.
    pub http: Option<Vec<HttpRule>>,
    /// Names of environment variables.
    pub environment: Option<BTreeSet<String>>,
    /// Names of secrets that the host may inject.
    pub secrets: Option<BTreeSet<String>>,
    /// Names of secrets whose values the tool may read.
    pub reveal: Option<BTreeSet<String>>,
    /// Keys of the store.
    pub kv: Option<Vec<KeyRule>>,
    /// Calls of other tools.
    pub invoke: Option<Vec<InvokeRule>>,
}

impl Overlay {
    /// Creates an overlay that takes everything away.
    #[must_use]
    pub fn deny_all() -> Self {
        Self {
            paths: Some(Vec::new()),
            http: Some(Vec::new()),
            environment: Some(BTreeSet::new()),
            secrets: Some(BTreeSet::new()),
            reveal: Some(BTreeSet::new()),
            kv: Some(Vec::new()),
            invoke: Some(Vec::new()),
        }
    }

    /// Creates an overlay that leaves only this rule of its kind.
    ///
    /// # Errors
    /// [`InvalidRule`] if the text is not a rule.
    #[doc(hidden)]
    pub fn only(kind: GrantKind, rule: &str) -> Result<Self, InvalidRule> {
        let mut overlay = Self::default();
        overlay.narrow(kind, &[rule])?;
        Ok(overlay)
    }

    /// Narrows a kind to the rules that the overlay has already and these. Without any rule,
    /// everything of the kind is taken away.
    ///
    /// # Errors
    /// [`InvalidRule`] if a text is not a rule. The overlay is then as before.
    #[doc(hidden)]
    pub fn narrow(&mut self, kind: GrantKind, rules: &[&str]) -> Result<(), InvalidRule> {
        let hint = "narrow the paths in it: `read /scratch`";
        let none = || InvalidRule::new(kind.key(), "it has no rules of its own", hint);
        kind.row().rules.ok_or_else(none)?.narrow(self, rules)
    }

    /// Returns the rules of a kind. `None`: the overlay does not narrow it.
    #[doc(hidden)]
    pub fn rules(&self, kind: GrantKind) -> Option<Vec<String>> {
        kind.row().rules?.texts(self)
    }
}

#[cfg(test)]
mod tests;
